"""What telemetry refuses.

TelemetryError
├── BadAddress     an endpoint that cannot be read, is not on this machine, or is taken
└── BadPayload     bytes that are not a message of the log
"""


class TelemetryError(Exception):
    pass


class BadAddress(TelemetryError, ValueError):
    pass


class BadPayload(TelemetryError, ValueError):
    pass

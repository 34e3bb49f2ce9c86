"""What telemetry refuses.

TelemetryError
├── BadAddress     an endpoint that cannot be read, or is not on this machine
└── BadPayload     bytes that are not a message of the log
"""


class TelemetryError(Exception):
    pass


class BadAddress(TelemetryError, ValueError):
    pass


class BadPayload(TelemetryError, ValueError):
    pass

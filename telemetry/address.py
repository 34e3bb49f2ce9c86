"""Where an engine can be reached: its events (PUB), their replay, and its control endpoint."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from telemetry.errors import BadAddress


def require_loopback(endpoint: str) -> str:
    """The endpoint itself when it is ipc, inproc or tcp on this machine; BadAddress otherwise.

    Nothing here authenticates or encrypts yet, so nothing may be reachable from another machine.
    """
    scheme, _, rest = endpoint.partition("://")
    if scheme in ("ipc", "inproc") and rest:
        return endpoint
    if scheme != "tcp" or not rest:
        raise BadAddress(f"endpoint {endpoint!r}: expected tcp://127.0.0.1:PORT or ipc://PATH")
    host, _, port = rest.rpartition(":")
    if not host or not (port == "*" or (port.isdigit() and int(port) < 65536)):
        raise BadAddress(f"endpoint {endpoint!r}: expected tcp://127.0.0.1:PORT")
    if host != "localhost" and not _is_loopback(host):
        raise BadAddress(
            f"endpoint {endpoint!r} is not on this machine; only loopback is served, "
            "use tcp://127.0.0.1:PORT (through an ssh tunnel from elsewhere)"
        )
    return endpoint


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.IPv4Address(host).is_loopback
    except ValueError:
        return False


def after(endpoint: str, step: int) -> str:
    """The same tcp endpoint `step` ports further; a wildcard stays one."""
    base, _, port = endpoint.rpartition(":")
    if urlsplit(endpoint).scheme != "tcp":
        raise BadAddress(
            f"endpoint {endpoint!r}: only tcp has a next port; name the others in full"
        )
    return endpoint if port == "*" else f"{base}:{int(port) + step}"


@dataclass(frozen=True)
class EngineAddress:
    events: str
    replay: str
    control: str

    @staticmethod
    def parse(text: str) -> EngineAddress:
        """`tcp://host:port` (replay at port+1, control at port+2), or with either named:
        `tcp://host:port,replay=tcp://…,control=tcp://…`."""
        events, *rest = (part.strip() for part in text.split(","))
        named: dict[str, str] = {}
        for part in rest:
            key, _, value = part.partition("=")
            if key not in ("replay", "control") or key in named:
                raise BadAddress(f"engine address {text!r}: {part!r} is not replay=… or control=…")
            named[key] = require_loopback(value)
        require_loopback(events)
        replay = named.get("replay") or after(events, 1)
        control = named.get("control") or after(events, 2)
        if any(endpoint.endswith(":*") for endpoint in (events, replay, control)):
            raise BadAddress(f"engine address {text!r}: a port is needed to connect, not '*'")
        return EngineAddress(events, replay, control)

    def __str__(self) -> str:
        return f"{self.events},replay={self.replay},control={self.control}"

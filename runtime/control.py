"""The endpoint that operators talk to: a ROUTER on loopback, on a thread of its own.

The thread reads and validates requests and sends answers. It never touches the cache: commands go
to the engine's thread through `deliver`, which runs them in its step and answers through `reply`.
A request is one JSON frame after the routing frames; its answer goes back the same way.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import zmq

from runtime.commands import Args, Refused, Result, validate
from runtime.errors import ControlError
from telemetry.address import require_loopback
from telemetry.errors import BadAddress

VERSION = 1
REQUEST_MAX_BYTES = 64 << 10
MESSAGE_MAX_BYTES = 1 << 20
"""Beyond this the connection is cut unread."""
WAITING_MAX = 64
"""Commands that wait for the engine's step; more are answered `busy`."""
ROUTING_FRAMES_MAX = 2
"""An identity, and the empty delimiter that REQ sockets add."""


@dataclass
class Command:
    route: list[bytes]
    id: str
    verb: str
    args: Args


class ControlServer:
    """`deliver` is called on the control thread with each valid command. `reply`, `refuse` and
    `close` belong to the engine's thread. Every command that was delivered must be answered once.
    """

    def __init__(self, endpoint: str, deliver: Callable[[Command], None]) -> None:
        self._deliver = deliver
        self._waiting = 0
        self._context = zmq.Context(io_threads=1)
        try:
            self._router = self._context.socket(zmq.ROUTER)
            self._router.setsockopt(zmq.MAXMSGSIZE, MESSAGE_MAX_BYTES)
            self._router.setsockopt(zmq.LINGER, 200)
            self._router.bind(require_loopback(endpoint))
            self.endpoint = self._router.getsockopt_string(zmq.LAST_ENDPOINT)
            self._answers_in = self._context.socket(zmq.PULL)
            self._answers_in.bind("inproc://answers")
            self._answers = self._context.socket(zmq.PUSH)
            self._answers.connect("inproc://answers")
        except (zmq.ZMQError, BadAddress) as error:
            self._context.destroy(linger=0)
            raise ControlError(f"Cannot serve control at {endpoint}: {error}.") from error
        self._thread = threading.Thread(target=self._run, name="kv-control", daemon=True)
        self._thread.start()

    def reply(self, command: Command, result: Result) -> None:
        self._send(command, {"ok": True, "result": result})

    def refuse(self, command: Command, error: Refused) -> None:
        self._send(command, _failure(error))

    def close(self) -> None:
        """Send the answers given so far and stop. Closing again changes nothing."""
        if not self._context.closed:
            self._answers.send_multipart([b""])
            self._thread.join()
            self._answers.close()
            self._context.term()

    def _send(self, command: Command, answer: dict[str, Any]) -> None:
        if not self._context.closed:
            self._answers.send_multipart([*command.route, _encode(command.id, answer)])

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._router, zmq.POLLIN)
        poller.register(self._answers_in, zmq.POLLIN)
        with self._router, self._answers_in:
            while True:
                ready = dict(poller.poll())
                if self._answers_in in ready:
                    frames = self._answers_in.recv_multipart()
                    if frames == [b""]:
                        return
                    self._waiting -= 1
                    self._router.send_multipart(frames)
                if self._router in ready:
                    self._receive(self._router.recv_multipart())

    def _receive(self, frames: list[bytes]) -> None:
        *route, payload = frames
        ident = ""
        try:
            if not 1 <= len(route) <= ROUTING_FRAMES_MAX:
                raise Refused("bad_request", f"{len(frames)} frames; send one frame of JSON.")
            request = _decode(payload)
            ident = request["id"] if isinstance(request.get("id"), str) else ""
            if request.get("v") != VERSION:
                raise Refused(
                    "bad_version", f"v is {request.get('v')!r}; this engine speaks {VERSION}."
                )
            if not 0 < len(ident) <= 128:
                raise Refused("bad_request", "id must be a text of 1 to 128 characters.")
            validate(request.get("verb"), request)
            if self._waiting >= WAITING_MAX:
                raise Refused(
                    "busy", f"{WAITING_MAX} commands wait for the engine; try again later."
                )
        except Refused as error:
            self._router.send_multipart([*route, _encode(ident, _failure(error))])
            return
        self._waiting += 1
        self._deliver(Command(route, ident, request["verb"], request))


def _decode(payload: bytes) -> dict[str, Any]:
    if len(payload) > REQUEST_MAX_BYTES:
        raise Refused("too_large", f"{len(payload)} bytes; at most {REQUEST_MAX_BYTES} are read.")
    try:
        request = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise Refused("bad_request", f"not JSON: {error}.") from error
    if not isinstance(request, dict):
        raise Refused("bad_request", f"a JSON {type(request).__name__}; send an object.")
    return request


def _encode(ident: str, answer: dict[str, Any]) -> bytes:
    return json.dumps({"v": VERSION, "id": ident, **answer}).encode()


def _failure(error: Refused) -> dict[str, Any]:
    return {"ok": False, "error": {"code": error.code, "message": str(error)}}

"""Takes the core's rows off the engine's hands and sends them, on a thread of its own."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Protocol

import zmq

from telemetry.address import after, require_loopback
from telemetry.errors import BadAddress
from telemetry.ring import Ring

FLUSH_S = 0.010
"""A row waits at most this long. The tick is the timer: an idle engine's rows leave just the
same."""
MESSAGE_ROWS = 4096
"""A burst is cut into messages of at most this many rows."""
REPLAYS_MAX = 64
REPLAY_SLICE = 64
"""Messages of one replay sent before live ones get their turn again."""
LINGER_MS = 1000
NONE_YET = b"\xff" * 8
REPLAY_END = b"\xff" * 8


class Batch(Protocol):
    @property
    def payload(self) -> bytes: ...
    @property
    def rows(self) -> int: ...


class Drain(Protocol):
    """The part of `runtime._core.Log` that publishing needs."""

    def drain(self, max_rows: int = ...) -> Batch | None: ...
    def dropped(self) -> int: ...


@dataclass
class _Replay:
    identity: bytes
    next: int


class Publisher:
    """Sends the log as it grows and answers replays. The engine never waits for it: rows pile up in
    the core's own bounded buffer, and what a slow subscriber loses it fetches again from the ring.

    endpoint, replay_endpoint: where to bind, loopback only; the port may be `*`. BadAddress when
    they are no such endpoints, or taken.
    Replay is at the next port when not given. The attributes of these names say where it really is.
    """

    def __init__(
        self,
        log: Drain,
        endpoint: str,
        replay_endpoint: str | None = None,
        *,
        topic: str = "kv",
        ring_messages: int = 10_000,
        ring_bytes: int = 256 << 20,
        heartbeat_s: float = 1.0,
    ) -> None:
        require_loopback(endpoint)
        replay_endpoint = require_loopback(replay_endpoint or after(endpoint, 1))
        self._log = log
        self._topic = topic.encode()
        self._ring = Ring(ring_messages, ring_bytes)
        self._heartbeat_s = heartbeat_s
        self._life = os.urandom(8)
        self._replays: deque[_Replay] = deque()
        self.rows = 0
        self.bad_requests = 0
        self.errors = 0
        """Drains that failed; their rows stay in the log."""
        self._context = zmq.Context(io_threads=1)
        try:
            self._pub = self._context.socket(zmq.PUB)
            self._router = self._context.socket(zmq.ROUTER)
            self._router.setsockopt(zmq.ROUTER_MANDATORY, 1)
            self._router.setsockopt(zmq.MAXMSGSIZE, 1024)
            self.endpoint = _bind(self._pub, endpoint)
            self.replay_endpoint = _bind(self._router, replay_endpoint)
        except zmq.ZMQError as error:
            self._context.destroy(linger=0)
            raise BadAddress(str(error)) from error
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kv-publisher", daemon=True)
        self._thread.start()

    @property
    def messages(self) -> int:
        return self._ring.next

    @property
    def dropped(self) -> int:
        """Rows lost because they came faster than they could be sent."""
        return self._log.dropped()

    def close(self) -> None:
        """Send what is left, then stop. Calling it again does nothing."""
        if not self._context.closed:
            self._stop.set()
            self._thread.join()
            self._context.destroy(linger=LINGER_MS)

    def __enter__(self) -> Publisher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        beat = 0.0
        while not self._stop.is_set():
            wait_s = 0.001 if self._replays else FLUSH_S
            if self._router.poll(int(wait_s * 1000)):
                self._accept()
            sent = self._publish()
            self._answer()
            if sent or time.monotonic() - beat >= self._heartbeat_s:
                beat = time.monotonic()
                if not sent:
                    self._heartbeat()
        self._publish()
        self._heartbeat()

    def _publish(self) -> bool:
        """Everything the log has, into the ring first: what was sent can always be asked for
        again."""
        before = self._ring.next
        try:
            while batch := self._log.drain(MESSAGE_ROWS):
                number = self._ring.append(batch.payload)
                self.rows += batch.rows
                self._pub.send_multipart([self._topic, number.to_bytes(8, "big"), batch.payload])
        except Exception:  # a thread that dies here would silence the engine for good
            self.errors += 1
        return self._ring.next > before

    def _heartbeat(self) -> None:
        ring = self._ring
        last = (ring.next - 1).to_bytes(8, "big") if ring.next else NONE_YET
        oldest = ring.oldest.to_bytes(8, "big") if ring.next else NONE_YET
        self._pub.send_multipart([self._topic, last, b"", oldest, self._life])

    def _accept(self) -> None:
        while self._router.poll(0):
            frames = self._router.recv_multipart()
            if len(frames) == 3 and len(frames[2]) == 8 and len(self._replays) < REPLAYS_MAX:
                self._replays.append(_Replay(frames[0], int.from_bytes(frames[2], "big")))
            else:
                self.bad_requests += 1

    def _answer(self) -> None:
        """A slice of every replay under way. A reader that does not keep up waits, not the
        others."""
        for _ in range(len(self._replays)):
            replay = self._replays.popleft()
            try:
                if not self._send_slice(replay):
                    self._replays.append(replay)
            except zmq.Again:
                self._replays.append(replay)
            except zmq.ZMQError:
                self.bad_requests += 1

    def _send_slice(self, replay: _Replay) -> bool:
        ring, send = self._ring, self._router.send_multipart
        replay.next = max(replay.next, ring.oldest)
        for number in range(replay.next, min(replay.next + REPLAY_SLICE, ring.next)):
            frame = number.to_bytes(8, "big")
            send([replay.identity, b"", self._topic, frame, ring.get(number)], zmq.NOBLOCK)
            replay.next = number + 1
        if replay.next < ring.next:
            return False
        send([replay.identity, b"", b"", REPLAY_END, b""], zmq.NOBLOCK)
        return True


def _bind(socket: zmq.Socket[bytes], endpoint: str) -> str:
    try:
        socket.bind(endpoint)
    except zmq.ZMQError as error:
        raise zmq.ZMQError(error.errno, f"cannot bind {endpoint}: {error.strerror}") from error
    return socket.getsockopt_string(zmq.LAST_ENDPOINT)

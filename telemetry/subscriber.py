"""Follows one engine's log: SUB for what is new, DEALER for what was missed."""

from __future__ import annotations

import time

import zmq

from telemetry.address import EngineAddress
from telemetry.errors import BadPayload
from telemetry.message import Item, Message, Silence
from telemetry.publisher import REPLAY_END
from telemetry.sequence import Sequence

FRAMES_PER_POLL = 256
MESSAGE_BYTES_MAX = 256 << 20


class Subscriber:
    """Yields messages in order, each once, and says what is missing. One thread owns it.

    resume: epoch and number of the last message that is safe already; None asks for all there is.
    silence_s: quiet time (the engine's heartbeat is one second) after which `Silence` is said.
    replay_timeout_s: an answer that makes no progress for so long is asked for again.
    """

    def __init__(
        self,
        address: EngineAddress,
        *,
        resume: tuple[str, int] | None = None,
        silence_s: float = 3.0,
        replay_timeout_s: float = 2.0,
    ) -> None:
        self._address = address
        self._silence_s = silence_s
        self._replay_timeout_s = replay_timeout_s
        self._sequence = Sequence(resume)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context(io_threads=1)
        self._sub = self._context.socket(zmq.SUB)
        self._sub.setsockopt(zmq.RCVHWM, 1000)
        self._sub.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
        self._sub.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES_MAX)
        self._sub.setsockopt(zmq.SUBSCRIBE, b"")
        self._sub.connect(address.events)
        self._dealer = self._connect_replay()
        self._deadline = 0.0
        self._heard_at = time.monotonic()
        self.silent = self.heard = False
        self.replays = 0
        """Times that messages were asked for again."""
        self.malformed = 0
        """Frames that are no message of ours at all; skipped."""

    @property
    def bad(self) -> int:
        """Payloads that could not be read; each that was due is a Gap."""
        return self._sequence.bad

    @property
    def said(self) -> tuple[str, int]:
        """Epoch and highest number that the engine is known to have sent, received or not."""
        return self._sequence.epoch, self._sequence.said

    @property
    def duplicates(self) -> int:
        return self._sequence.duplicates

    def poll(self, timeout_s: float) -> list[Item]:
        """What has come, waiting up to `timeout_s` for something to come."""
        sequence = self._sequence
        if sequence.wanted is not None and not sequence.asking:
            self._dealer.send_multipart([b"", sequence.asked().to_bytes(8, "big")])
            self._deadline = time.monotonic() + self._replay_timeout_s
            self.replays += 1
        zmq.select([self._sub, self._dealer], [], [], timeout_s)
        items: list[Item] = []
        for _ in range(FRAMES_PER_POLL):
            # The answers first: they are older than what is live.
            if self._dealer.poll(0):
                items += self._on_answer(self._dealer.recv_multipart())
            elif self._sub.poll(0):
                items += self._on_live(self._sub.recv_multipart())
            else:
                break
        now = time.monotonic()
        if sequence.asking and now >= self._deadline:
            self._dealer.close(linger=0)
            self._dealer = self._connect_replay()
            items += sequence.unanswered()
        if not self.silent and now - self._heard_at >= self._silence_s:
            self.silent = True
            items.append(Silence(now - self._heard_at))
        return items

    def close(self) -> None:
        self._context.destroy(linger=0)

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect_replay(self) -> zmq.Socket[bytes]:
        """A new socket is a new identity: answers to forgotten questions go nowhere."""
        dealer = self._context.socket(zmq.DEALER)
        dealer.setsockopt(zmq.RCVHWM, 0)
        dealer.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
        dealer.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES_MAX)
        dealer.connect(self._address.replay)
        return dealer

    def _on_live(self, frames: list[bytes]) -> list[Item]:
        if not 3 <= len(frames) <= 5 or len(frames[1]) != 8:
            self.malformed += 1
            return []
        self._hear()
        if not frames[2]:
            return self._sequence.heartbeat(
                int.from_bytes(frames[1], "big", signed=True), frames[-1]
            )
        return self._take(frames[1], frames[2], replayed=False)

    def _on_answer(self, frames: list[bytes]) -> list[Item]:
        if len(frames) not in (3, 4) or frames[0] or len(frames[-2]) != 8:
            self.malformed += 1
            return []
        if not self._sequence.asking:
            return []
        self._hear()
        self._deadline = time.monotonic() + self._replay_timeout_s
        if frames[-2] == REPLAY_END:
            return self._sequence.answered()
        return self._take(frames[-2], frames[-1], replayed=True)

    def _hear(self) -> None:
        self._heard_at, self.heard, self.silent = time.monotonic(), True, False

    def _take(self, number_frame: bytes, payload: bytes, *, replayed: bool) -> list[Item]:
        number = int.from_bytes(number_frame, "big")
        try:
            message = Message.decode(number, payload)
        except BadPayload as error:
            return self._sequence.damaged(number, str(error))
        return self._sequence.replayed(message) if replayed else self._sequence.live(message)

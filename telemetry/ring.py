"""The last messages, kept for replay: bounded in number and in bytes."""

from __future__ import annotations

from collections import deque


class Ring:
    """Numbers are contiguous from 0. Not thread-safe: one thread owns it."""

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        if max_messages < 1 or max_bytes < 1:
            raise ValueError(f"a ring of {max_messages} messages, {max_bytes} bytes keeps nothing")
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._payloads: deque[bytes] = deque()
        self.bytes = 0
        self.next = 0
        """Number that the next message gets."""

    def append(self, payload: bytes) -> int:
        """Keep a message, forgetting the oldest; the newest is kept whatever its size."""
        self._payloads.append(payload)
        self.bytes += len(payload)
        while len(self._payloads) > 1 and (
            len(self._payloads) > self._max_messages or self.bytes > self._max_bytes
        ):
            self.bytes -= len(self._payloads.popleft())
        self.next += 1
        return self.next - 1

    @property
    def oldest(self) -> int:
        """Lowest number kept; equals `next` while the ring is empty."""
        return self.next - len(self._payloads)

    def get(self, number: int) -> bytes:
        return self._payloads[number - self.oldest]

    def check(self) -> None:
        assert self.bytes == sum(map(len, self._payloads))
        assert len(self._payloads) <= self._max_messages
        assert self.bytes <= self._max_bytes or len(self._payloads) == 1

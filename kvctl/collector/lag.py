"""How long the tables have been behind what an engine has said."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable


class Lag:
    """Zero while everything that the engine has said is stored, however long ago that was. Safe
    from several threads. resume: epoch and number of the last message stored already."""

    def __init__(
        self, resume: tuple[str, int] | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._epoch, self._said = resume or ("", -1)
        self._clock = clock
        self._waiting: deque[tuple[int, float]] = deque()
        """(number, when the engine was first known to have sent it), ascending."""
        self._lock = threading.Lock()

    def said(self, epoch: str, number: int) -> None:
        """The engine is known to have sent messages up to `number`; -1 for none."""
        with self._lock:
            if epoch != self._epoch:
                self._epoch, self._said = epoch, -1
                self._waiting.clear()
            if number > self._said:
                self._said = number
                self._waiting.append((number, self._clock()))

    def stored(self, epoch: str, number: int) -> None:
        with self._lock:
            while epoch == self._epoch and self._waiting and self._waiting[0][0] <= number:
                self._waiting.popleft()

    def ms(self) -> float:
        with self._lock:
            return (self._clock() - self._waiting[0][1]) * 1000 if self._waiting else 0.0

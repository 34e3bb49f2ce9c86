"""What whoever started the engine tells it, a word a line on stdin."""

from __future__ import annotations

import sys
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.cache import TieredCache

STEP_S = 0.05


class Ended(Exception):
    """Whoever started us is gone or has had enough."""


class Orders:
    """Lines from stdin, read beside the engine's loop."""

    def __init__(self, cache: TieredCache) -> None:
        self._cache = cache
        self._lines: SimpleQueue[str] = SimpleQueue()
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            self._lines.put(line.strip())
        self._lines.put("")

    def wait(self, word: str) -> None:
        """Step the cache until `word` arrives. Ended when it cannot arrive any more."""
        while self.look() != word:
            self._cache.step(STEP_S)

    def look(self) -> str | None:
        """The next line if there is one. Ended when stdin has ended or an operator wants us to."""
        if self._cache.stop_requested:
            raise Ended
        try:
            line = self._lines.get_nowait()
        except Empty:
            return None
        if not line:
            self._lines.put("")
            raise Ended
        return line

"""Our core, device tier only, as the engine's loop drives it: digests and the log are on.

Peers, ours and others', have the same verbs. A verb does one operation with all that it costs
in an engine. Its arguments are made beforehand, so that no tree pays for another's form of tokens.

Rows are appended inside every verb. Turning them into bytes is the publisher's, on its own thread:
`drain` stands for it, between measurements. A verb that inserts holds more than its peers': it
allocates pages and gives back what is left, locks the path and unlocks it, and moves the session.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import Event, Thread

import numpy as np

from runtime._core import Core

NOTHING = np.zeros(0, np.uint32)
DRAIN_EVERY_SECONDS = 0.01
MESSAGE_ROWS = 4 << 10


class OurTree:
    """tokens: room for that many on the device."""

    def __init__(self, page: int, tokens: int, log_rows: int = 1 << 18) -> None:
        self.page = page
        self._clock = count(1)
        self.core = Core(
            engine="bench",
            epoch="1",
            namespace="bench",
            page_size=page,
            device=tokens // page,
            write_through=False,
            log_rows=log_rows,
        )
        self._log = self.core.log()

    def open(self, session: str) -> None:
        self.core.open_session(next(self._clock), session)

    def prompt(self, tokens: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(tokens, np.uint32)

    def match(self, session: str, tokens: np.ndarray) -> int:
        """Tokens found."""
        return self.core.match(next(self._clock), session, "r", tokens).pages * self.page

    def match_from(self, session: str, new: np.ndarray, skip: int) -> int:
        """Tokens found, when only what comes after the session's path of `skip` pages is passed."""
        now = next(self._clock)
        return self.core.match(now, session, "r", new, skip=skip).pages * self.page

    def insert(self, session: str, tokens: np.ndarray) -> None:
        """A request of the whole prompt: acquire, reserve, commit, release."""
        core, now = self.core, next(self._clock)
        held = core.acquire(now, session, "r", tokens)
        grant = core.reserve(now, held.receipt, len(tokens) // self.page - held.pages)
        core.commit(now, grant.op, tokens, held.pages, grant.pages)
        core.release(now, held.receipt)

    def turn_from(self, session: str, new: np.ndarray, skip: int) -> None:
        """The same, passing only what comes after the session's path of `skip` pages."""
        core, now = self.core, next(self._clock)
        held = core.acquire(now, session, "r", new, skip=skip)
        grant = core.reserve(now, held.receipt, skip + len(new) // self.page - held.pages)
        core.commit(now, grant.op, new, held.pages, grant.pages, skip=skip)
        core.release(now, held.receipt)

    def lock_and_unlock(self, receipt: int) -> None:
        """One more lock on the path that a receipt holds, and back."""
        now = next(self._clock)
        self.core.release(now, self.core.hold(now, receipt))

    def evict(self, tokens: int) -> int:
        """Tokens freed."""
        return self.core.evict(next(self._clock), "device", tokens // self.page) * self.page

    def hold(self, session: str, skip: int = 0) -> int:
        """A receipt for the session's first `skip` pages."""
        return self.core.acquire(next(self._clock), session, "r", NOTHING, skip=skip).receipt

    def release(self, receipt: int) -> None:
        self.core.release(next(self._clock), receipt)

    def drain(self) -> None:
        while self._log.drain(MESSAGE_ROWS):
            pass

    @contextmanager
    def drained_by_a_thread(self) -> Iterator[None]:
        """As in an engine: every 10 ms, beside the operations and not between them."""
        stop = Event()

        def run() -> None:
            while not stop.wait(DRAIN_EVERY_SECONDS):
                self.drain()

        thread = Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            self.drain()

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
CURSOR = "skip" in (Core.acquire.__text_signature__ or "")
"""Whether the core can be passed what is new alone (`skip`)."""
DRAIN_EVERY_SECONDS = 0.01
MESSAGE_ROWS = 4 << 10


class OurTree:
    """tokens: room for that many on the device."""

    def __init__(self, page: int, tokens: int) -> None:
        self.page = page
        self._clock = count(1)
        self.core = Core(
            engine="bench",
            epoch="1",
            namespace="bench",
            page_size=page,
            device=tokens // page,
            write_through=False,
            log_rows=1 << 18,
        )
        self._log = self.core.log()
        self._taken: list[int] = []

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

    def lock_and_unlock(self, session: str, skip: int) -> None:
        """The session's whole path of `skip` pages, by cursor."""
        now = next(self._clock)
        held = self.core.acquire(now, session, "r", NOTHING, skip=skip)
        self.core.release(now, held.receipt)

    def acquire_and_release(self, session: str, tokens: np.ndarray) -> None:
        now = next(self._clock)
        self.core.release(now, self.core.acquire(now, session, "r", tokens).receipt)

    def hold(self, session: str) -> int:
        """A receipt to reserve by."""
        return self.core.acquire(next(self._clock), session, "r", NOTHING).receipt

    def reserve(self, receipt: int, tokens: int) -> int:
        """Pages for that many tokens; in a full pool, as many are evicted. Returns what it got."""
        grant = self.core.reserve(next(self._clock), receipt, tokens // self.page)
        self._taken.append(grant.op)
        return grant.pages * self.page

    def free_tokens(self) -> int:
        return self.core.pools()[0].free * self.page

    def empty(self, receipt: int) -> None:
        """Give back all that was reserved so, and the receipt."""
        now = next(self._clock)
        while self._taken:
            self.core.abort(now, self._taken.pop())
        self.core.release(now, receipt)

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

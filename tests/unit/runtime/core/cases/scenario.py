"""A driver whose core proves its invariants, and whose log is folded, after every command."""

from array import array
from collections.abc import Sequence
from typing import Any

import pyarrow.ipc
from driver import Driver, pages

from runtime._core import Commit, Component, Core, Match, Replica, page_digests

__all__ = [
    "Case", "Checked", "Component", "chain", "digests", "found", "key", "mamba", "pages", "swa",
]  # fmt: skip


def chain(*tokens: int) -> list[bytes]:
    """Digests of the pages (of one token) of a path."""
    return page_digests(array("I", tokens), 1, "n")


def key(*tokens: int) -> bytes:
    """Digest of the last page (of one token) of a path."""
    return chain(*tokens)[-1]


def digests(row: dict[str, Any]) -> list[bytes]:
    """The digests of a row's pages, in order."""
    joined = row["digests"]
    return [joined[at : at + 32] for at in range(0, len(joined), 32)]


def swa(window: int, device: int = 32, **tiers: int) -> Component:
    return Component("swa", "swa", window=window, device=device, **tiers)


def mamba(device: int = 32, interval: int = 0, **tiers: int) -> Component:
    return Component("mamba", "mamba", interval=interval, device=device, **tiers)


class Checked:
    """A core and a replica that follows it: they agree, and both are sound, whatever was called."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.replica = Replica()
        self.rows: list[dict[str, Any]] = []
        self.prove()

    def __getattr__(self, name: str) -> Any:
        member = getattr(self.core, name)

        def call(*args: Any, **options: Any) -> Any:
            try:
                return member(*args, **options)
            finally:
                self.prove()

        return call

    def prove(self) -> None:
        self.core.check()
        while message := self.core.log().drain():
            self.rows += pyarrow.ipc.open_stream(message.payload).read_all().to_pylist()
            assert self.replica.fold(message.payload) == message.state_hash
        assert self.replica.state_hash() == self.core.state_hash()
        self.replica.check()


class Case(Driver):
    def __init__(self, *sessions: str, device: int, **options: Any) -> None:
        super().__init__(device=device, **options)
        self.core_page_size = options.get("page_size", 1)
        self.core: Any = Checked(self.core)
        for session in sessions:
            self.core.open_session(self.tick(), session)

    def rows(self, kind: str, *phases: str, since: int = 0) -> list[dict[str, Any]]:
        """Rows of the log after row `since`."""
        found = [row for row in self.core.rows if row["kind"] == kind and row["seq"] > since]
        return [row for row in found if not phases or row["phase"] in phases]

    def seq(self) -> int:
        return self.core.seq()

    def compute(self, found: Match, tokens: Sequence[int], start: int, count: int) -> Commit:
        """Pages [start, start + count) of the tokens, in one go."""
        got = self.core.reserve(self.tick(), found.receipt, count, start=start)
        assert got.pages == count
        return self.core.commit(self.tick(), got.op, array("I", tokens), start, count)

    def grow(self, session: str, tokens: Sequence[int], *ends: int, move: bool = True) -> None:
        """A request that computes its tokens in pieces, which end at these pages."""
        found = self.acquire(session, tokens)
        start = found.pages
        for end in ends:
            self.compute(found, tokens, start, end - start)
            start = end
        self.release(found)
        if move:
            self.finish()

    def fill(self, session: str, count: int, first: int = 1000, **options: Any) -> Match:
        """Hold `count` device pages of tokens that nobody else has."""
        found = self.acquire(session, range(first, first + count), **options)
        assert found.pages == 0
        assert self.core.reserve(self.tick(), found.receipt, count).pages == count
        return found

    def lose(self, component: str, *positions: int, tier: Any = "device") -> None:
        """Take away copies, as damage does."""
        for owner, _, position, _ in self.core.resident(tier, "", component):
            if position in positions:
                assert self.core.damaged(self.tick(), tier, owner & 0xFFFFFFFF, owner >> 32)

    def at(self, tier: Any, component: str = "full", session: str = "") -> list[int]:
        """Positions that have a copy in the tier."""
        copies = self.core.resident(tier, session, component)
        return sorted(position for _, _, position, _ in copies)

    def used_pages(self, component: str, tier: Any = "device") -> list[int]:
        """Pages of the tier's pool that hold a component's copies."""
        return sorted(page for _, page, _, _ in self.core.resident(tier, "", component))

    def room(self, component: str = "full", tier: str = "device") -> int:
        """Free pages of one component's pool."""
        pools = self.core.pools()
        return next(p.free for p in pools if (p.component, p.tier) == (component, tier))

    def fenced(self) -> int:
        return sum(pool.fenced for pool in self.core.pools())


def found(d: Case, tokens, session: str = "a") -> tuple[int, str, str]:
    match = d.look(session, tokens)
    return match.pages, match.reason, match.clipped_by

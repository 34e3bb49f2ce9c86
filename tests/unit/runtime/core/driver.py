"""A core with a clock of its own, and a shell that moves nothing: what an engine would do."""

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from runtime._core import Action, Core, Match, Outcome


class Driver:
    def __init__(self, *sessions: str, device: int, **options: Any) -> None:
        defaults = {"engine": "e", "epoch": "1", "namespace": "n", "page_size": 1}
        self.core = Core(device=device, **{**defaults, **options})
        self.now = 0
        for session in sessions:
            self.core.open_session(self.tick(), session)

    def tick(self) -> int:
        self.now += 1
        return self.now

    def acquire(self, session: str, tokens: Sequence[int], **options: Any) -> Match:
        return self.core.acquire(self.tick(), session, "r", array("I", tokens), **options)

    def look(self, session: str, tokens: Sequence[int]) -> Match:
        return self.core.match(self.tick(), session, "r", array("I", tokens))

    def release(self, found: Match) -> None:
        self.core.release(self.tick(), found.receipt)

    def write(self, found: Match, tokens: Sequence[int]) -> list[int]:
        """Compute what follows the match; the device pages of it as the tree has them."""
        size = self.core_page_size
        got = self.core.reserve(self.tick(), found.receipt, len(tokens) // size - found.pages)
        buffer = array("I", tokens)
        done = self.core.commit(self.tick(), got.op, buffer, found.pages, got.pages)
        return pages(done.runs)

    core_page_size = 1

    def serve(self, session: str, tokens: Sequence[int], *, move: bool = True) -> Match:
        """A whole request; with `move`, everything that it wanted moved arrives."""
        found = self.acquire(session, tokens)
        self.write(found, tokens)
        self.release(found)
        if move:
            self.finish()
        return found

    def finish(self, result: int = 1) -> list[Action]:
        """Answer every move, and those that follow, with one result."""
        done = []
        while actions := self.core.actions():
            for action in actions:
                self.answer(action, result)
            done += actions
        return done

    def answer(self, action: Action, result: int = 1) -> None:
        self.core.complete(self.tick(), action.op, bytes([result]) * action.pages)

    def pin(self, session: str, tier: Any = "host", ttl: int = 1000) -> Outcome:
        return self.core.pin(self.tick(), session, tier, ttl, "o")

    def demote(self, session: str) -> Outcome:
        return self.core.demote(self.tick(), session, "o")

    def flush(self, session: str) -> Outcome:
        return self.core.flush(self.tick(), session, "o")

    def free(self, tier: str = "device") -> int:
        return next(pool.free for pool in self.core.pools() if pool.tier == tier)

    def resident(self, tier: Any) -> set[bytes]:
        return {key for *_, key in self.core.resident(tier)}


def pages(runs: Iterable[tuple[int, int, int]]) -> list[int]:
    return [page + i for _, page, count in runs for i in range(count)]

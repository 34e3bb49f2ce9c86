"""State families: which lengths can be resumed, what is computed and what of it stays.

Lengths and positions are in pages. A length is legal when every page that it needs is there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol


class Family(Protocol):
    path: bool
    """One slot for every page; else only where there are bytes."""

    def needs(self, length: int) -> Iterable[int]:
        """Pages that a request at this length reads."""

    def plan(self, start: int, end: int, branch: int) -> list[int]:
        """Pages to reserve before computing start to end."""

    def keeps(self, page: int, landmarks: Iterable[int]) -> bool:
        """Whether a planned page stays, for who resumes at one of `landmarks`."""


@dataclass(frozen=True)
class Full:
    path = True

    def needs(self, length: int) -> Iterable[int]:
        return range(length)

    def plan(self, start: int, end: int, branch: int) -> list[int]:
        return list(range(start, end))

    def keeps(self, page: int, landmarks: Iterable[int]) -> bool:
        return True


@dataclass(frozen=True)
class Window:
    pages: int
    path = False

    def needs(self, length: int) -> Iterable[int]:
        return range(max(0, length - self.pages), length)

    def plan(self, start: int, end: int, branch: int) -> list[int]:
        return list(range(start, end))

    def keeps(self, page: int, landmarks: Iterable[int]) -> bool:
        return any(page in self.needs(length) for length in landmarks)


@dataclass(frozen=True)
class Checkpoints:
    interval: int
    path = False

    def needs(self, length: int) -> Iterable[int]:
        return [length - 1] if length else []

    def plan(self, start: int, end: int, branch: int) -> list[int]:
        """A checkpoint at page p is the state after it: at length p + 1."""
        lengths = {branch, end}
        if self.interval:
            lengths |= set(range(self.interval, end + 1, self.interval))
        return sorted(at - 1 for at in lengths if start < at <= end)

    def keeps(self, page: int, landmarks: Iterable[int]) -> bool:
        return True

"""What the model of the core remembers.

A page is named by its path: all tokens from the start of the sequence to the page's end.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

Path = tuple[int, ...]
TIERS = DEVICE, HOST, STORAGE = "device", "host", "storage"
KINDS = {
    "backup": (DEVICE, HOST),
    "offload": (HOST, STORAGE),
    "prefetch": (STORAGE, HOST),
    "load": (HOST, DEVICE),
}
LOAD_FAILED = {"failed", "damaged", "timeout"}


class Refused(Exception):
    """args[0] is the name of the exception that the core has to raise."""


@dataclass
class Page:
    last_use: int
    here: set[str] = field(default_factory=set)
    bad: set[str] = field(default_factory=set)
    lost: tuple[int, str] | None = None
    """(moment, why) of the last copy's end."""


@dataclass(eq=False)
class Lock:
    path: Path
    session: str
    tokens: Path = ()
    failed: set[Path] = field(default_factory=set)
    open: bool = True


@dataclass(eq=False)
class Move:
    kind: str
    pages: list[Path]
    session: str
    lock: Lock | None
    draining: bool = False

    @property
    def source(self) -> str:
        return KINDS[self.kind][0]

    @property
    def target(self) -> str:
        return KINDS[self.kind][1]


@dataclass(eq=False)
class Reserved:
    lock: Lock
    pages: int


@dataclass
class Lease:
    session: str
    owner: str
    tier: str
    path: Path
    expires: int


@dataclass(eq=False)
class Hint:
    verb: str
    tier: str
    session: str
    lock: Lock
    waits_for: list[Move] = field(default_factory=list)


@dataclass
class Session:
    parent: str
    last_use: int
    path: Path = ()
    prompt: Path | None = None


class Found(NamedTuple):
    pages: int
    by_tier: list[int]
    reason: str
    offset: int = -1
    lost: int = -1
    """Moment at which the page was lost."""


class Outcome(NamedTuple):
    outcome: str
    reason: str
    pages: int
    asked: int
    pending: int
    lease: int | None = None


class Evicted(NamedTuple):
    tier: str
    path: Path
    reason: str
    last_use: int


def covers(path: Path, page: Path) -> bool:
    """Whether a path goes through a page."""
    return path[: len(page)] == page


def leading(flags: Iterable[bool]) -> int:
    count = 0
    for flag in flags:
        if not flag:
            break
        count += 1
    return count


def why_lost(lost: tuple[int, str] | None) -> tuple[str, int, int]:
    if lost is None:
        return "unknown", -1, -1
    return "load_failed" if lost[1] in LOAD_FAILED else "evicted", -1, lost[0]

"""What the model of the core remembers.

A page is named by its path: the namespace's number, then the key of every page from the start of
the sequence to this one. The path of a namespace alone is its root.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Path = tuple[Any, ...]
TIERS = DEVICE, HOST, STORAGE = "device", "host", "storage"
FULL = "full"
Way = tuple[str, str, str]
"""What a move is called, from where it goes and to where."""
BACKUP = ("backup", DEVICE, HOST)
OFFLOAD = ("offload", HOST, STORAGE)
PREFETCH = ("prefetch", STORAGE, HOST)
LOAD = ("load", HOST, DEVICE)
DIRECT_DOWN = ("offload", DEVICE, STORAGE)
DIRECT_UP = ("load", STORAGE, DEVICE)
"""Without a host tier, storage is next to the device."""
LOAD_FAILED = {"failed", "damaged", "timeout"}


class Refused(Exception):
    """args[0] is the name of the exception that the core has to raise."""


@dataclass(eq=False)
class Place:
    """Where an item stands in the queues of s3fifo, for one component in one tier."""

    queue: str
    """small | main | ghost"""
    number: int
    uses: int = 0


@dataclass(eq=False)
class Item:
    """What a policy ranks: all pages of a node share one, every spot slot has its own."""

    created: int
    last_use: int
    uses: int = 0
    user: str = ""
    """The session that used it last."""
    priority: int = 0
    """Of a node: that session's, as it was then."""
    returns_at: int = 0
    """Of a node: when a session whose path it is comes back; 0: at any moment. A use ends that."""
    longest: int = 0
    """Pages of the longest path that was ever used through it."""
    superseded: bool = False
    """Of a node: a session left it and nobody has used it since."""
    places: dict[tuple[str, str], Place] = field(default_factory=dict)


@dataclass(eq=False)
class Slot:
    component: str
    path: Path
    here: set[str] = field(default_factory=set)
    bad: set[str] = field(default_factory=set)
    item: Item | None = None
    """Of a spot slot. Slots of path components have their node's."""
    lost: tuple[int, str] | None = None
    """(moment, why) of the last copy's end."""
    block: int | None = None
    """In an observed device tier: the engine's page."""

    def usable(self, tier: str) -> bool:
        return tier in self.here - self.bad

    @property
    def best(self) -> str | None:
        return next((tier for tier in TIERS if self.usable(tier)), None)


@dataclass(eq=False)
class Lock:
    path: Path
    session: str
    units: tuple = ()
    branch: int = 0
    holds: list[Slot] = field(default_factory=list)
    """Spot slots, one by one. What path components have is held by the path."""
    failed: set[Slot] = field(default_factory=set)
    open: bool = True


@dataclass(eq=False)
class Move:
    way: Way
    component: str
    slots: list[Slot]
    session: str
    lock: Lock | None
    started: int
    draining: bool = False
    blocks: dict[Slot, int] = field(default_factory=dict)
    """Where a load to an observed device goes."""
    void: set[Slot] = field(default_factory=set)
    """Forgotten by the engine meanwhile."""

    @property
    def kind(self) -> str:
        return self.way[0]

    @property
    def source(self) -> str:
        return self.way[1]

    @property
    def target(self) -> str:
        return self.way[2]


@dataclass(eq=False)
class Reserved:
    lock: Lock
    pages: int
    parts: dict[str, list[int]] = field(default_factory=dict)
    """Positions by component."""


@dataclass(eq=False)
class Lease:
    kind: str
    """pin | retain | share"""
    session: str
    owner: str
    tier: str
    """Of a pin; else ""."""
    path: Path
    expires: int
    ttl: int
    holds: list[Slot] = field(default_factory=list)
    forks: int = 0
    """Of a share: how many are still to come."""


@dataclass(eq=False)
class Hint:
    verb: str
    tier: str
    session: str
    lock: Lock
    waits_for: list[Move] = field(default_factory=list)


@dataclass(eq=False)
class Session:
    parent: str
    last_use: int
    group: str = ""
    priority: int = 0
    path: Path = ()
    said: tuple[int, tuple] | None = None
    """(namespace, units beyond the path) of what it last asked for or committed."""


class Found(NamedTuple):
    pages: int
    by_tier: list[int]
    reason: str
    offset: int = -1
    lost: int = -1
    """Moment at which the page was lost."""
    clipped_by: str = ""
    full_pages: int = 0
    branch: int = 0


class Outcome(NamedTuple):
    outcome: str
    reason: str
    pages: int
    asked: int
    pending: int
    lease: int | None = None


class Evicted(NamedTuple):
    component: str
    tier: str
    path: Path
    reason: str
    last_use: int
    skipped: int = 0


def steps(path: Path) -> list[Path]:
    """The path of each page of a path."""
    return [path[:end] for end in range(2, len(path) + 1)]


def length(path: Path) -> int:
    """Pages of a path, which may be empty: a session has none before its first commit."""
    return max(0, len(path) - 1)


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
    """(reason, offset, moment), as a match says it."""
    if lost is None:
        return "unknown", -1, -1
    moment, why = lost
    if why in LOAD_FAILED:
        return "load_failed", -1, moment
    return "admission" if why == "admission" else "evicted", -1, moment

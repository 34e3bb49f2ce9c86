"""The state of the model, what follows from it, and how room is made.

No nodes, no counters, no indexes: what the core keeps at hand is counted again from the records.
"""

from model_records import (
    DEVICE,
    TIERS,
    Evicted,
    Found,
    Hint,
    Lease,
    Lock,
    Move,
    Page,
    Path,
    Refused,
    Reserved,
    Session,
    covers,
    why_lost,
)


class Pages:
    def __init__(self, page_size: int, capacity: dict[str, int], budget: float):
        self.page_size, self.capacity = page_size, capacity
        self.budget = {tier: int(capacity[tier] * budget) for tier in TIERS}
        self.now = 0
        self.pages: dict[Path, Page] = {}
        self.ghosts: dict[Path, tuple[int, str]] = {}
        self.sessions: dict[str, Session] = {}
        self.locks: list[Lock] = []
        self.leases: dict[int, Lease] = {}
        self.moves: list[Move] = []
        self.reserved: list[Reserved] = []
        self.hints: list[Hint] = []
        self.numbers = 0
        # What this call did, for comparison: moves wanted, evictions in order, hints completed.
        self.wanted: list[Move] = []
        self.evicted: list[Evicted] = []
        self.completed: list[tuple[str, str, int]] = []

    # what there is

    def steps(self, tokens: Path) -> list[Path]:
        """The path of each whole page of a sequence."""
        return [
            tokens[: end + self.page_size]
            for end in range(0, len(tokens) - self.page_size + 1, self.page_size)
        ]

    def usable(self, path: Path, tier: str) -> bool:
        return tier in self.pages[path].here - self.pages[path].bad

    def coming(self, path: Path, tier: str) -> bool:
        return any(m.target == tier and path in m.pages for m in self.moves)

    def read(self, path: Path, tier: str) -> bool:
        return any(m.source == tier and path in m.pages for m in self.moves)

    def best(self, path: Path) -> str | None:
        return next((tier for tier in TIERS if self.usable(path, tier)), None)

    def lacks(self, path: Path, tier: str) -> bool:
        return tier not in self.pages[path].here and not self.coming(path, tier)

    def gone(self, path: Path) -> bool:
        return not self.pages[path].here and not any(self.coming(path, tier) for tier in TIERS)

    def locked(self, path: Path, without: Lock | None = None) -> bool:
        return any(covers(lock.path, path) for lock in self.locks if lock is not without)

    def leased(self, path: Path, tier: str) -> bool:
        return any(covers(x.path, path) for x in self.leases.values() if x.tier == tier)

    def owners(self, path: Path) -> list[str]:
        return [name for name, s in self.sessions.items() if covers(s.path, path)]

    def free(self, tier: str) -> int:
        taken = sum(tier in page.here for page in self.pages.values()) + self.fenced(tier)
        return self.capacity[tier] - taken

    def fenced(self, tier: str) -> int:
        moving = sum(len(m.pages) for m in self.moves if m.target == tier)
        return moving + (sum(r.pages for r in self.reserved) if tier == DEVICE else 0)

    # room

    def make_room(self, tier: str, want: int, older_than: int | None = None) -> int:
        while self.free(tier) < want:
            victims = [path for path in self.pages if self.evictable(path, tier)]
            if older_than is not None:
                victims = [path for path in victims if self.pages[path].last_use < older_than]
            if not victims:
                break
            self.drop(
                min(victims, key=lambda p: (self.pages[p].last_use, -len(p))), tier, "pressure"
            )
        return min(want, self.free(tier))

    def evictable(self, path: Path, tier: str) -> bool:
        below = (p for p in self.pages if len(p) > len(path) and covers(p, path))
        return (
            tier in self.pages[path].here
            and not self.locked(path)
            and not self.leased(path, tier)
            and not self.read(path, tier)
            and not any(tier in self.pages[p].here for p in below)
        )

    def drop(self, path: Path, tier: str, reason: str) -> None:
        page = self.pages[path]
        page.here.discard(tier)
        page.bad.discard(tier)
        self.evicted.append(Evicted(tier, path, reason, page.last_use))
        if self.gone(path):
            page.lost = (self.now, reason)

    def settle(self) -> None:
        """Damaged copies go when nobody uses them, pages without bytes when nobody names them."""
        for path, page in self.pages.items():
            for tier in sorted(page.bad):
                if not self.read(path, tier) and not (tier == DEVICE and self.locked(path)):
                    self.drop(path, tier, "damaged")
        for path in sorted(self.pages, key=len, reverse=True):
            child = any(len(p) > len(path) and covers(p, path) for p in self.pages)
            leased = any(self.leased(path, tier) for tier in TIERS)
            if self.gone(path) and not (child or leased or self.locked(path) or self.owners(path)):
                lost = self.pages.pop(path).lost
                assert lost
                self.ghosts[path] = lost

    def own(
        self, name: str, tier: str | None, without: Lock | None = None
    ) -> tuple[list[Path], str]:
        """The end of a session's path that only it names and nobody holds; and what ends it."""
        own: list[Path] = []
        for p in reversed(self.steps(self.sessions[name].path if name in self.sessions else ())):
            if self.locked(p, without):
                return own[::-1], "locked"
            if len(self.owners(p)) > 1:
                return own[::-1], "shared"
            if any(self.leased(p, t) for t in ([tier] if tier else TIERS)):
                return own[::-1], "leased"
            own.append(p)
        return own[::-1], ""

    def use(self, path: Path) -> None:
        for step in self.steps(path):
            self.pages[step].last_use = self.now

    # finding

    def known(self, name: str) -> Session:
        if name not in self.sessions:
            raise Refused("UnknownSession")
        return self.sessions[name]

    def match(self, session: str, tokens: Path, grid: int = 1) -> Found:
        self.known(session)
        known = [path for path in self.steps(tokens) if path in self.pages]
        pages = next((i for i, path in enumerate(known) if self.best(path) is None), len(known))
        miss = self.explain(session, tokens, pages)
        pages -= pages % grid
        tiers = [self.best(path) for path in known[:pages]]
        return Found(pages, [tiers.count(tier) for tier in TIERS], *miss)

    def explain(self, session: str, tokens: Path, pages: int) -> tuple[str, int, int]:
        size = self.page_size
        if (pages + 1) * size > len(tokens):
            return ("below_page" if len(tokens) % size else "", -1, -1)
        path = tokens[: (pages + 1) * size]
        if path in self.pages:
            if any(self.coming(path, tier) for tier in TIERS):
                return "pending_write", -1, -1
            if self.pages[path].bad:
                return "load_failed", -1, -1
            return why_lost(self.pages[path].lost)
        for r in self.reserved:
            begin = len(r.lock.path) // size
            if begin <= pages < begin + r.pages and covers(r.lock.tokens, path):
                return "pending_write", -1, -1
        if path in self.ghosts:
            return why_lost(self.ghosts[path])
        return self.compare(session, tokens, pages)

    def compare(self, session: str, tokens: Path, pages: int) -> tuple[str, int, int]:
        """With the session's last prompt, or else its parent's."""
        owner = self.sessions[session]
        if owner.prompt is None and owner.parent in self.sessions:
            owner = self.sessions[owner.parent]
        if owner.prompt is None:
            return "never_stored", -1, -1
        pairs = zip(owner.prompt, tokens, strict=False)
        same = next(
            (i for i, (a, b) in enumerate(pairs) if a != b), min(len(owner.prompt), len(tokens))
        )
        if same // self.page_size == pages and same < len(owner.prompt):
            return "diverged", same, -1
        lost_track = same // self.page_size > pages and pages < len(owner.path) // self.page_size
        return ("unknown" if lost_track else "never_stored"), -1, -1

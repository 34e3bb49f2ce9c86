"""What a prompt finds: the longest length at which all components could resume; why no longer."""

from dataclasses import dataclass

from .records import FULL, TIERS, Found, Path, Refused, covers, length, steps, why_lost
from .room import Room


@dataclass(frozen=True)
class Request:
    session: str
    path: Path
    """All whole pages that were asked for."""
    units: tuple

    @property
    def namespace(self) -> int:
        return self.path[0]


class Finding(Room):
    def request(self, session: str, units: tuple, skip: int = 0, namespace: int = 0) -> Request:
        """With `skip`, the session's own path stands for the pages before the tokens."""
        own = self.known(session).path
        if namespace not in self.namespaces or namespace in self.retired:
            raise Refused("BadArgument")
        if skip and (skip > length(own) or own[0] != namespace):
            raise Refused("BadArgument")
        units = self.keys.flat(own[: skip + 1]) + units
        return Request(session, self.keys.path(namespace, units), units)

    def legal(self, component: str, path: Path, tiers: list[str]) -> bool:
        """Whether a request could resume at the end of a path, as far as the component goes."""
        pages, known = steps(path), self.slots[component]
        needed = [known.get(pages[p]) for p in self.families[component].needs(len(pages))]
        return all(slot and any(map(slot.usable, tiers)) for slot in needed)

    def resumable(self, path: Path, tiers: list[str], grid: int = 1) -> int:
        """The longest length that all components allow; 0 always is one."""
        return max(
            pages
            for pages in range(0, len(path), grid)
            if all(self.legal(name, path[: pages + 1], tiers) for name in self.families)
        )

    def match(self, request: Request, grid: int = 1) -> Found:
        if grid < 1:
            raise Refused("BadArgument")
        tiers, path = list(TIERS), request.path
        lengths = range(len(path))
        full = max(p for p in lengths if self.legal(FULL, path[: p + 1], tiers))
        found = self.resumable(path, tiers)
        against = [n for n in self.families if not self.legal(n, path[: full + 1], tiers)]
        miss = ("component_gap", -1, -1) if against else self.explain(request, found)
        pages = self.resumable(path, tiers, grid)
        best = [slot.best for slot in self.along(FULL, path[: pages + 1])]
        return Found(
            pages,
            [best.count(tier) for tier in TIERS],
            *miss,
            clipped_by=against[0] if against else "",
            full_pages=full,
            branch=full if full > pages else 0,
        )

    def explain(self, request: Request, pages: int) -> tuple[str, int, int]:
        if pages == length(request.path):
            rest = len(request.units) - pages * self.keys.per_page
            return ("below_page" if rest else "", -1, -1)
        page = request.path[: pages + 2]
        if page in self.nodes:
            slot = self.full(page)
            if self.coming(slot):
                return "pending_write", -1, -1
            return ("load_failed", -1, -1) if slot.bad else why_lost(slot.lost)
        for r in self.reserved:
            begin = length(r.lock.path)
            asked = self.keys.path(r.lock.path[0], r.lock.units)
            if begin <= pages < begin + r.pages and covers(asked, page):
                return "pending_write", -1, -1
        if page in self.ghosts:
            return why_lost(self.ghosts[page])
        return self.compare(request, pages)

    def compare(self, request: Request, pages: int) -> tuple[str, int, int]:
        """With what the session, or else its parent, had here: its path and what it said beyond."""
        owner = self.sessions[request.session]
        if owner.said is None and owner.parent in self.sessions:
            owner = self.sessions[owner.parent]
        if owner.said is None:
            return "never_stored", -1, -1
        namespace, further = owner.said
        known = owner.path or (namespace,)
        if known[0] != request.namespace:
            return "namespace_changed", -1, -1
        earlier = self.keys.flat(known)
        if length(known) <= pages and namespace == known[0]:
            earlier += further
        pairs = list(zip(earlier, request.units, strict=False))
        same = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
        if same // self.keys.per_page == pages and same < len(earlier):
            return "diverged", self.keys.offset(earlier, request.units, same), -1
        return "never_stored", -1, -1

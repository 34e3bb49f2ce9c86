"""The state of the model, and what follows from it.

No tree, no counters, no indexes: what the core keeps at hand is counted again from the records.
"""

from copy import copy, deepcopy

from .config import Config
from .keys import Keys
from .records import (
    BACKUP,
    DEVICE,
    DIRECT_DOWN,
    FULL,
    HOST,
    OFFLOAD,
    STORAGE,
    TIERS,
    Evicted,
    Hint,
    Item,
    Lease,
    Lock,
    Move,
    Path,
    Refused,
    Reserved,
    Session,
    Slot,
    Way,
    covers,
    length,
    steps,
)


class Pages:
    def __init__(self, config: Config):
        self.config = config
        self.keys = Keys(config.key, config.page_size)
        self.families = config.families()
        self.capacity = config.capacity()
        self.now = 0
        self.nodes: dict[Path, Item] = {}
        """Every page that the tree knows; neighbours with one item are one node."""
        self.slots: dict[str, dict[Path, Slot]] = {name: {} for name in self.families}
        self.namespaces: dict[int, str] = {0: ""}
        self.retired: set[int] = set()
        self.ghosts: dict[Path, tuple[int, str]] = {}
        self.sessions: dict[str, Session] = {}
        self.locks: list[Lock] = []
        self.leases: dict[int, Lease] = {}
        self.moves: list[Move] = []
        self.reserved: list[Reserved] = []
        self.hints: list[Hint] = []
        self.numbers = 0
        self.victims: dict[tuple[str, str], list[Slot]] | None = None
        """By component and tier, what a core evicted in this command; None: there is no core."""
        # What this call did, for comparison: moves wanted, evictions in order, hints completed.
        self.wanted: list[Move] = []
        self.evicted: list[Evicted] = []
        self.completed: list[tuple[str, str, int]] = []

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    # slots

    def full(self, path: Path) -> Slot:
        return self.slots[FULL][path]

    def along(self, component: str, path: Path) -> list[Slot]:
        """The component's slots on a path, in order."""
        known = self.slots[component]
        return [known[page] for page in steps(path) if page in known]

    def needed(self, component: str, path: Path) -> list[Slot]:
        """Of them, those that a request at the path's end reads."""
        pages, known = steps(path), self.slots[component]
        wanted = [pages[p] for p in self.families[component].needs(len(pages))]
        return [known[page] for page in wanted if page in known]

    def spots(self, path: Path) -> list[Slot]:
        """The spot slots that a request at the path's end reads."""
        names = [name for name, family in self.families.items() if not family.path]
        return [slot for name in names for slot in self.needed(name, path)]

    def of_path(self, slot: Slot) -> bool:
        return self.families[slot.component].path

    def item(self, slot: Slot) -> Item:
        return slot.item or self.nodes[slot.path]

    # copies

    def coming(self, slot: Slot, tier: str | None = None) -> bool:
        return any(slot in m.slots for m in self.moves if tier in (None, m.target))

    def read(self, slot: Slot, tier: str | None = None) -> bool:
        return any(slot in m.slots for m in self.moves if tier in (None, m.source))

    def lacks(self, slot: Slot, tier: str) -> bool:
        return tier not in slot.here and not self.coming(slot, tier)

    def gone(self, slot: Slot) -> bool:
        return not slot.here and not self.coming(slot)

    def direct(self, component: str) -> bool:
        """Whether storage is next to the device."""
        rooms = self.capacity[component]
        return rooms[STORAGE] > 0 and not rooms[HOST]

    def way_down(self, component: str, tier: str) -> Way | None:
        """How copies in a tier are written down, if they are."""
        down = DIRECT_DOWN if self.direct(component) else BACKUP
        way = down if tier == DEVICE else OFFLOAD
        there = tier != STORAGE and self.capacity[component][way[2]] > 0
        return way if there else None

    # who holds what

    def locked(self, slot: Slot, without: Lock | None = None) -> bool:
        if self.of_path(slot):
            return self.crossed(slot.path, without)
        return any(slot in lock.holds for lock in self.locks if lock is not without)

    def crossed(self, page: Path, without: Lock | None = None) -> bool:
        """Whether a lock goes through a page."""
        return any(covers(lock.path, page) for lock in self.locks if lock is not without)

    def kept(self, slot: Slot) -> bool:
        """A spot slot that a receipt or a pin names stays, with or without copies."""
        pins = [lease for lease in self.leases.values() if lease.kind == "pin"]
        return self.locked(slot) or any(slot in pin.holds for pin in pins)

    def leased(self, slot: Slot, tier: str) -> bool:
        pins = [lease for lease in self.leases.values() if lease.tier == tier]
        if self.of_path(slot):
            return any(covers(pin.path, slot.path) for pin in pins)
        return any(slot in pin.holds for pin in pins)

    def leased_pages(self, component: str, tier: str) -> int:
        return sum(self.leased(slot, tier) for slot in self.slots[component].values())

    def budget(self, component: str, tier: str) -> int:
        return int(self.capacity[component][tier] * self.config.pin_share)

    def owners(self, page: Path) -> list[str]:
        return [name for name, s in self.sessions.items() if covers(s.path, page)]

    def known(self, name: str) -> Session:
        if name not in self.sessions:
            raise Refused("UnknownSession")
        return self.sessions[name]

    # pools

    def free(self, component: str, tier: str) -> int:
        taken = sum(tier in slot.here for slot in self.slots[component].values())
        return self.capacity[component][tier] - taken - self.fenced(component, tier)

    def fenced(self, component: str, tier: str) -> int:
        moves = [m for m in self.moves if (m.component, m.target) == (component, tier)]
        reserved = [r.parts.get(component, []) for r in self.reserved if tier == DEVICE]
        return sum(len(m.slots) for m in moves) + sum(map(len, reserved))

    def owned(self) -> list[str]:
        """Tiers in which copies are the core's to drop."""
        return [t for t in TIERS if not (t == DEVICE and self.config.observed_device)]

    # nodes

    def extent(self, item: Item) -> tuple[int, int]:
        """(start, end) of a node, in pages."""
        lengths = [length(page) for page, other in self.nodes.items() if other is item]
        return min(lengths) - 1, max(lengths)

    def node(self, slot: Slot) -> Item:
        return self.nodes[slot.path]

    def below(self, page: Path) -> list[Path]:
        return [p for p in self.nodes if len(p) > len(page) and covers(p, page)]

    def cut(self, path: Path) -> None:
        """A node ends where the path ends; from here on the two halves have their own histories."""
        item = self.nodes.get(path)
        if item and any(self.nodes[p] is item for p in self.below(path)):
            head = copy(item)
            head.places = deepcopy(item.places)
            for page in steps(path):
                if self.nodes[page] is item:
                    self.nodes[page] = head

    def use(self, path: Path, spots: list[Slot], session: str) -> None:
        """What was used counts it: nodes by path, spot slots one by one."""
        items = [self.nodes[page] for page in steps(path)]
        items += [slot.item for slot in spots if slot.item]
        known = self.sessions.get(session)
        for item in dict.fromkeys(items):
            item.priority, item.returns_at = known.priority if known else 0, 0
            item.last_use = self.now
            item.uses += 1
            item.user = session
            item.superseded = False
            item.longest = max(item.longest, length(path))
            for place in item.places.values():
                place.uses = min(3, place.uses + 1)

"""Pages for what a request computes: reserve, then commit or abort."""

from collections import Counter

from .families import Checkpoints
from .moves import Moves
from .records import (
    DEVICE,
    FULL,
    Item,
    Lock,
    Move,
    Path,
    Refused,
    Reserved,
    Slot,
    leading,
    length,
    steps,
)


class Computing(Moves):
    def reserve(self, lock: Lock, pages: int, start: int | None = None) -> Reserved:
        """As many pages as every component that needs one for each has room for. Checkpoints come
        after that; where room is short, the deepest."""
        self.held(lock)
        held = length(lock.path)
        start = held if start is None else start
        if start > held or DEVICE not in self.owned():
            raise Refused("BadArgument")
        r = Reserved(lock, pages)
        self.reserved.append(r)
        marks = [n for n, family in self.families.items() if isinstance(family, Checkpoints)]
        every = [name for name in self.families if name not in marks]
        for name in every:
            r.pages = self.make_room(name, DEVICE, r.pages)
        end = start + r.pages
        for name in every:
            r.parts[name] = list(range(start, end))
        for name in marks:
            plan = self.families[name].plan(start, end, lock.branch)
            room = self.make_room(name, DEVICE, len(plan))
            r.parts[name] = plan[len(plan) - room :]
        self.settle()
        return r

    def commit(
        self, r: Reserved, tokens: tuple[int, ...], start: int, pages: int, skip: int = 0
    ) -> dict:
        if r not in self.reserved:
            raise Refused("UnknownOperation")
        path = self.agreed(r.lock, tokens, start, pages, skip)
        if pages > r.pages:
            raise Refused("BadArgument")
        self.reserved.remove(r)
        self.insert(path, start, r.lock)
        # Kept pages by component, given that the first one reserved is now page `start`.
        stay = {}
        for name, family in self.families.items():
            ours = r.parts[name] if isinstance(family, Checkpoints) else range(start, start + pages)
            stay[name] = [p for p in ours if p in family.keeps(start, start + pages)]
        done = Counter(self.put(name, path, p) for name in stay for p in stay[name])
        self.advance_lock(r.lock, path)
        self.write_down(r.lock)
        parts = {name: self.present(name, path, start, stay[name]) for name in stay}
        self.settle()
        return self.answer(done, parts)

    def agreed(
        self, lock: Lock, tokens: tuple[int, ...], start: int, pages: int, skip: int
    ) -> Path:
        """The path that is committed; refused when it leaves the locked one."""
        held, end = length(lock.path), start + pages
        units = self.keys.flat(lock.path[: skip + 1]) + self.keys.units(tokens)
        path = self.keys.path(lock.path[0], units)[: end + 1]
        agreed = min(held, end)
        if (
            start > held
            or skip > held
            or length(path) < end
            or path[: agreed + 1] != lock.path[: agreed + 1]
        ):
            raise Refused("BadArgument")
        return path

    def insert(self, path: Path, start: int, lock: Lock) -> None:
        """New pages continue the node they follow when nothing else ends there, or are a node."""
        new = [page for page in steps(path)[start:] if page not in self.nodes]
        before = path[: len(path) - len(new)]
        self.cut(before)
        item = self.nodes[before] if new and self.continues(before, lock) else None
        item = item or Item(self.now, self.now)
        for page in new:
            self.nodes[page] = item
            for name, family in self.families.items():
                if family.path:
                    self.slots[name][page] = Slot(name, page)

    def continues(self, end: Path, lock: Lock) -> bool:
        locks = [other.path for other in self.locks if other is not lock]
        leases = [lease.path for lease in self.leases.values()]
        others = [s.path for name, s in self.sessions.items() if name != lock.session]
        return end in self.nodes and not self.below(end) and end not in locks + leases + others

    def put(self, component: str, path: Path, position: int) -> tuple[str, str]:
        """A computed page takes its place, or is not needed: (component, what it was)."""
        page, slots = steps(path)[position], self.slots[component]
        fate = "healed"
        if page not in slots:
            slots[page] = Slot(component, page, item=Item(self.now, self.now))
        slot = slots[page]
        if not slot.here and slot.lost is None and not self.coming(slot):
            fate = "inserted"
        elif not self.lacks(slot, DEVICE):
            return component, "duplicate"
        self.arrive(slot, DEVICE)
        return component, fate

    def advance_lock(self, lock: Lock, path: Path) -> None:
        if len(path) >= len(lock.path):
            lock.path = path
        self.hold(lock)
        session = self.sessions.get(lock.session)
        if session:
            self.supersede(session.path, lock)
            session.path, session.last_use = lock.path, self.now

    def supersede(self, old: Path, lock: Lock) -> None:
        """A session moves on: what it leaves goes before what nobody ever left, until somebody
        comes back to it."""
        left = set(steps(old)) - set(steps(lock.path))
        for component in self.families:
            for slot in self.along(component, old):
                self.item(slot).superseded |= slot.path in left
            for slot in self.along(component, lock.path):
                self.item(slot).superseded = False

    def present(self, component: str, path: Path, start: int, stay: list[int]) -> list[int]:
        """Of the committed pages, those that can be read on the device now."""
        known, pages = self.slots[component], steps(path)
        if self.families[component].path:
            flags = (known[page].usable(DEVICE) for page in pages[start:])
            return list(range(start, start + leading(flags)))
        return [p for p in stay if pages[p] in known and known[pages[p]].usable(DEVICE)]

    def answer(self, done: Counter, parts: dict[str, list[int]]) -> dict:
        counts = {fate: done[FULL, fate] for fate in ("inserted", "healed", "duplicate")}
        return {**counts, "runs": len(parts[FULL]), "parts": parts}

    def abort(self, op: Reserved | Move) -> None:
        if isinstance(op, Reserved):
            if op not in self.reserved:
                raise Refused("UnknownOperation")
            self.reserved.remove(op)
        else:
            if op not in self.moves:
                raise Refused("UnknownOperation")
            op.draining = True
        self.settle()

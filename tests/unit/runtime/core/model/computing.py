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

    def commit(self, r: Reserved, units: tuple, start: int, pages: int, skip: int = 0) -> dict:
        if r not in self.reserved:
            raise Refused("UnknownOperation")
        path, said = self.agreed(r.lock, units, start, pages, skip)
        if pages > r.pages:
            raise Refused("BadArgument")
        self.reserved.remove(r)
        self.insert(path, start, r.lock)
        # Kept pages by component, given that the first one reserved is now page `start`.
        done: Counter = Counter()
        end = start + pages
        planned = {
            p + 1
            for n, f in self.families.items()
            if isinstance(f, Checkpoints)
            for p in r.parts[n]
        }
        landmarks = {at for at in {end, r.lock.branch} | planned if at <= end}
        for name, family in self.families.items():
            ours = r.parts[name] if isinstance(family, Checkpoints) else range(start, start + pages)
            stay = [p for p in ours if p < end and family.keeps(p, landmarks)]
            done.update(self.put(name, path, p) for p in stay)
        r.lock.units = said
        return self.conclude(r.lock, path, start, done)

    def agreed(
        self, lock: Lock, units: tuple, start: int, pages: int, skip: int
    ) -> tuple[Path, tuple]:
        """The path that is committed, and all known units; refused where it leaves the locked
        one."""
        held, end = length(lock.path), start + pages
        units = self.keys.flat(lock.path[: skip + 1]) + units
        path = self.keys.path(lock.path[0], units)[: end + 1]
        agreed = min(held, end)
        if (
            start > held
            or skip > held
            or length(path) < end
            or path[: agreed + 1] != lock.path[: agreed + 1]
        ):
            raise Refused("BadArgument")
        return path, units

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
        return (
            end in self.nodes
            and not self.below(end)
            and lock.path == end
            and end not in locks + leases + others
        )

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

    def conclude(self, lock: Lock, path: Path, start: int, done: Counter) -> dict:
        self.advance_lock(lock, path)
        self.write_down(lock)
        parts = {name: self.present(name, path, start) for name in self.families}
        self.settle()
        counts = {fate: done[FULL, fate] for fate in ("inserted", "healed", "duplicate")}
        return {**counts, "runs": len(parts[FULL]), "parts": parts}

    def advance_lock(self, lock: Lock, path: Path) -> None:
        if len(path) >= len(lock.path):
            lock.path = path
        self.hold(lock)
        session = self.sessions.get(lock.session)
        if session:
            old, session.path = session.path, lock.path
            session.last_use = self.now
            session.said = (lock.path[0], lock.units[length(lock.path) * self.keys.per_page :])
            # It moves on: what no session has any more goes before what none ever left.
            for page in steps(old):
                self.nodes[page].superseded |= not self.owners(page)

    def present(self, component: str, path: Path, start: int) -> list[int]:
        """Of the committed pages those that can be read on the device: of full up to the first
        gap."""
        slots = [s for s in self.along(component, path) if len(s.path) - 2 >= start]
        flags = [slot.usable(DEVICE) for slot in slots]
        if component == FULL:
            slots = slots[: leading(flags)]
        return [len(slot.path) - 2 for slot in slots if slot.usable(DEVICE)]

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

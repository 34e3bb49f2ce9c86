"""How room is made, what a lost copy takes with it, and what goes when nobody holds it any more."""

from .policies import Policies
from .records import DEVICE, FULL, HOST, TIERS, Evicted, Refused, Slot, covers


class Room(Policies):
    def make_room(self, component: str, tier: str, want: int, older_than: int | None = None) -> int:
        while self.free(component, tier) < want:
            slots = [s for s in self.ends(component, tier) if not self.read(s, tier)]
            victims = [s for s in slots if not self.aside(s, tier)]
            if older_than is not None:
                victims = [s for s in victims if self.item(s).last_use < older_than]
            if not victims:
                break
            victim = self.choose(component, tier, victims)
            self.drop(victim, tier, "pressure", self.skipped(component, tier, victim))
        return max(0, min(want, self.free(component, tier)))

    def evict(self, tier: str, pages: int, component: str) -> int:
        """Room made ahead of need. How many pages went."""
        if tier not in self.owned():
            raise Refused("BadArgument")
        before = self.free(component, tier)
        self.make_room(component, tier, before + pages)
        self.settle()
        return self.free(component, tier) - before

    def ends(self, component: str, tier: str) -> list[Slot]:
        """Slots with a copy in the tier that could be next: on a path, those with none below."""
        here = [s for s in self.slots[component].values() if tier in s.here]
        if not self.families[component].path:
            return here
        longer = {s: [o for o in here if len(o.path) > len(s.path)] for s in here}
        return [s for s in here if not any(covers(o.path, s.path) for o in longer[s])]

    def aside(self, slot: Slot, tier: str) -> bool:
        return self.locked(slot) or self.leased(slot, tier)

    def skipped(self, component: str, tier: str, victim: Slot) -> int:
        """Items that stand aside and would have gone first."""
        held = [s for s in self.ends(component, tier) if self.aside(s, tier)]
        rank = self.rank(tier, victim)
        return len({self.item(s) for s in held if self.rank(tier, s) < rank})

    def arrive(self, slot: Slot, tier: str) -> None:
        slot.here.add(tier)
        self.enter(slot, tier)

    def drop(self, slot: Slot, tier: str, reason: str, skipped: int = 0) -> None:
        slot.here.discard(tier)
        slot.bad.discard(tier)
        if tier == DEVICE:
            slot.block = None
        item, last = self.item(slot), self.gone(slot)
        if last and reason == "pressure" and self.was_not_admitted(slot, tier):
            reason = "admission"
        self.evicted.append(
            Evicted(slot.component, tier, slot.path, reason, item.last_use, skipped)
        )
        self.leave(slot, tier, reason in ("pressure", "admission"))
        if not last:
            return
        slot.lost = (self.now, reason)
        self.forget_spot(slot)
        if slot.component == FULL:
            self.orphan(slot)

    def was_not_admitted(self, slot: Slot, tier: str) -> bool:
        """Whether the copy would have been written down, had it been used more often."""
        way = self.way_down(slot.component, tier)
        return bool(way and self.config.write_through and not self.admitted(slot, way[2]))

    def admitted(self, slot: Slot, tier: str) -> bool:
        """A page counts its uses, whatever lies there."""
        needed = self.config.admit_host if tier == HOST else self.config.admit_storage
        return self.node(slot).uses >= needed

    def others(self, page: tuple) -> list[Slot]:
        """What the other components have at a page."""
        slots = [self.slots[name].get(page) for name in self.slots if name != FULL]
        return [slot for slot in slots if slot]

    def orphan(self, lost: Slot) -> None:
        for slot in self.others(lost.path):
            self.drop_idle(slot, "orphaned")

    def drop_idle(self, slot: Slot, reason: str) -> None:
        """Copies that nobody reads, of a slot that nobody holds and nothing comes to."""
        if self.coming(slot) or self.kept(slot):
            return
        for tier in TIERS:
            if tier in slot.here and not self.read(slot, tier):
                self.drop(slot, tier, reason)
        self.forget_spot(slot)

    def forget_spot(self, slot: Slot) -> None:
        """A spot without copies that nobody holds is no slot any more."""
        slots = self.slots[slot.component]
        if not self.of_path(slot) and self.gone(slot) and not self.kept(slot):
            slots.pop(slot.path, None)

    # what goes by itself

    def settle(self) -> None:
        for name in self.slots:
            for slot in list(self.slots[name].values()):
                self.drop_damaged(slot)
                self.forget_spot(slot)
        for page, full in self.slots[FULL].items():
            if page[0] in self.retired and not self.crossed(page):
                self.drop_retired(full)
            if self.gone(full):
                self.orphan(full)
        for page in sorted(self.nodes, key=len, reverse=True):
            if not self.named(page):
                self.forget_page(page)

    def drop_damaged(self, slot: Slot) -> None:
        """On the device it waits for who holds it: it may be in use."""
        held = self.crossed(slot.path) if self.of_path(slot) else self.kept(slot)
        for tier in sorted(slot.bad):
            waits = tier == DEVICE and held
            if not waits and not self.read(slot, tier):
                self.drop(slot, tier, "damaged")

    def drop_retired(self, full: Slot) -> None:
        """The other components' copies follow as orphans."""
        for tier in TIERS:
            if tier in full.here and not self.read(full, tier):
                self.drop(full, tier, "retired")

    def named(self, page: tuple) -> bool:
        """Whether anything still needs the page's place."""
        paths = [lease.path for lease in self.leases.values()]
        return (
            not self.gone(self.full(page))
            or not all(self.gone(slot) and self.of_path(slot) for slot in self.others(page))
            or bool(self.below(page))
            or any(covers(path, page) for path in paths)
            or self.crossed(page)
            or bool(self.owners(page))
        )

    def forget_page(self, page: tuple) -> None:
        lost = self.full(page).lost
        assert lost
        self.ghosts[page] = lost
        del self.nodes[page]
        for slots in self.slots.values():
            slots.pop(page, None)

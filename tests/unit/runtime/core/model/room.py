"""How room is made, what a lost copy takes with it, and what goes when nobody holds it any more."""

from .policies import Policies
from .records import DEVICE, FULL, HOST, STORAGE, TIERS, Evicted, Slot, covers


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
        if not self.of_path(slot):
            del self.slots[slot.component][slot.path]
        if slot.component == FULL:
            self.orphan(slot)

    def was_not_admitted(self, slot: Slot, tier: str) -> bool:
        """Whether the copy would have been written down, had it been used more often."""
        below = {DEVICE: HOST, HOST: STORAGE}.get(tier)
        if not below or not self.config.write_through:
            return False
        return self.capacity[slot.component][below] > 0 and not self.admitted(slot, below)

    def admitted(self, slot: Slot, tier: str) -> bool:
        needed = self.config.admit_host if tier == HOST else self.config.admit_storage
        return self.item(slot).uses >= needed

    def others(self, page: tuple) -> list[Slot]:
        """What the other components have at a page."""
        slots = [self.slots[name].get(page) for name in self.slots if name != FULL]
        return [slot for slot in slots if slot]

    def orphan(self, lost: Slot) -> None:
        for slot in self.others(lost.path):
            self.drop_idle(slot, "orphaned")

    def drop_idle(self, slot: Slot, reason: str) -> None:
        """Copies that nobody holds, reads or waits for."""
        for tier in TIERS:
            idle = not (self.aside(slot, tier) or self.coming(slot) or self.read(slot, tier))
            if tier in slot.here and idle:
                self.drop(slot, tier, reason)

    # what goes by itself

    def settle(self) -> None:
        for name in self.slots:
            for slot in list(self.slots[name].values()):
                self.drop_damaged(slot)
        for page, full in self.slots[FULL].items():
            if self.gone(full):
                self.orphan(full)
            if page[0] in self.retired:
                for slot in [full, *self.others(page)]:
                    self.drop_idle(slot, "retired")
        for page in sorted(self.nodes, key=len, reverse=True):
            if not self.named(page):
                self.forget_page(page)

    def drop_damaged(self, slot: Slot) -> None:
        """A held copy waits: on the device because it may be in use, of a spot slot because the
        receipt names it."""
        for tier in sorted(slot.bad):
            waits = self.locked(slot) and (tier == DEVICE or not self.of_path(slot))
            if not waits and not self.read(slot, tier):
                self.drop(slot, tier, "damaged")

    def named(self, page: tuple) -> bool:
        """Whether anything still needs the page's place."""
        slots = [self.full(page), *self.others(page)]
        paths = [lease.path for lease in self.leases.values()]
        return (
            not all(self.gone(slot) for slot in slots)
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

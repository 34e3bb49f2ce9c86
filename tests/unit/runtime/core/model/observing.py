"""An observed device tier: the engine says which of its own pages hold what, and takes it back."""

from collections import Counter

from .namespaces import Namespaces
from .records import DEVICE, FULL, Lock, Refused, Slot, steps


class Observing(Namespaces):
    def observe(
        self,
        lock: Lock,
        units: tuple,
        start: int,
        blocks: list[int],
        skip: int = 0,
        component: str = FULL,
    ) -> dict:
        """Like a commit of pages that nobody reserved. Of a component other than full only what
        the tree knows already can be told."""
        self.held(lock)
        path, said = self.agreed(lock, units, start, len(blocks), skip)
        if DEVICE in self.owned():
            raise Refused("BadArgument")
        self.claim(blocks, [component])
        if component != FULL and path not in self.nodes and len(path) > 1:
            raise Refused("BadArgument")
        for page, block in zip(steps(path)[start:], blocks, strict=True):
            self.forget_block(component, block, keep=page)
        self.settle()
        self.insert(path, start, lock)
        done: Counter = Counter()
        for position, block in enumerate(blocks, start):
            _, fate = self.put(component, path, position)
            if fate != "duplicate":
                self.slots[component][steps(path)[position]].block = block
            # Only full inserts pages; the others fill places that are known.
            done[FULL, fate if component == FULL or fate == "duplicate" else "healed"] += 1
        lock.units = said
        return self.conclude(lock, path, start, done)

    def forget(self, blocks: list[int], component: str = FULL) -> int:
        """How many of the engine's pages held something; also of what is being read or written."""
        if DEVICE in self.owned():
            raise Refused("BadArgument")
        forgotten = sum(self.forget_block(component, block) for block in dict.fromkeys(blocks))
        self.settle()
        return forgotten

    def forget_block(self, component: str, block: int, keep: tuple = ()) -> bool:
        for move in self.moves:
            for slot in move.slots:
                here = slot.block if move.source == DEVICE else move.blocks.get(slot)
                if (slot.component, here) == (component, block) and slot.path != keep:
                    move.void.add(slot)
        slots: list[Slot] = [s for s in self.slots[component].values() if s.block == block]
        for slot in slots:
            if slot.path != keep:
                self.drop(slot, DEVICE, "forgotten")
        return any(slot.path != keep for slot in slots)

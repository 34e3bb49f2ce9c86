"""Copies on their way between tiers: one component a move, as many pages as there is room for."""

from collections.abc import Callable

from .holds import Holds
from .records import DEVICE, FULL, HOST, KINDS, STORAGE, Lock, Move, Path, Refused, Slot

Wanted = Callable[[Slot], bool]


class Moves(Holds):
    def start(
        self,
        kind: str,
        component: str,
        slots: list[Slot],
        session: str,
        lock: Lock | None,
        into: list[int] | None = None,
    ) -> Move | None:
        """None when nothing is to be moved, or nothing can be."""
        target = KINDS[kind][1]
        if not slots:
            return None
        if target not in self.owned():
            return self.load_into(component, slots, session, lock, into or [])
        if not self.capacity[component][target]:
            return None
        down = kind in ("backup", "offload")
        oldest = min(self.item(slot).last_use for slot in slots)
        room = self.make_room(component, target, len(slots), oldest if down else None)
        return self.move(Move(kind, component, slots[:room], session, lock, self.now))

    def load_into(
        self, component: str, slots: list[Slot], session: str, lock: Lock | None, into: list[int]
    ) -> Move | None:
        """To an observed device: the engine says where, and how many there go."""
        blocks = dict(zip(slots, into, strict=False))
        return self.move(
            Move("load", component, list(blocks), session, lock, self.now, blocks=blocks)
        )

    def move(self, move: Move) -> Move | None:
        if not move.slots:
            return None
        self.moves.append(move)
        self.wanted.append(move)
        return move

    def back_up(self, component: str, path: Path, lock: Lock, wanted: Wanted) -> None:
        bare = [s for s in self.along(component, path) if s.usable(DEVICE) and self.lacks(s, HOST)]
        self.start("backup", component, [s for s in bare if wanted(s)], lock.session, lock)

    def fetch(self, component: str, path: Path, lock: Lock) -> None:
        slots = self.along(component, path)
        stored = [s for s in slots if s.best == STORAGE and self.lacks(s, HOST)]
        wanted = [s for s in stored if s not in lock.failed]
        self.start("prefetch", component, wanted, lock.session, lock)

    def write_down(self, lock: Lock) -> None:
        """What write-through does after a commit."""
        if not self.config.write_through:
            return
        for name in self.families:
            self.back_up(
                name,
                lock.path,
                lock,
                lambda s: not s.usable(STORAGE) and self.admitted(s, HOST),
            )
            if self.config.admit_storage > 1:
                # What reaches its count after its backup has no other occasion.
                held = [s for s in self.along(name, lock.path) if s.usable(HOST)]
                self.offload(name, held, lock.session)

    def offload(self, component: str, slots: list[Slot], session: str) -> None:
        bare = [s for s in slots if self.lacks(s, STORAGE) and self.admitted(s, STORAGE)]
        self.start("offload", component, bare, session, None)

    # bringing up

    def restore(self, lock: Lock, into: list[int] | None = None) -> tuple[int, int, int]:
        """(ready, pending, moves started)"""
        self.held(lock)
        if into is not None and DEVICE in self.owned():
            raise Refused("BadArgument")
        up = self.bring_up(lock, list(into or []))
        self.settle()
        return up

    def bring_up(self, lock: Lock, into: list[int] | None = None) -> tuple[int, int, int]:
        pending = started = 0
        for name, family in self.families.items():
            slots = self.along(name, lock.path)
            if not family.path:
                slots = [slot for slot in slots if slot in lock.holds]
            load, prefetch, waiting = self.to_bring(slots, lock)
            moves = [
                self.start("load", name, load, lock.session, lock, into if name == FULL else None),
                self.start("prefetch", name, prefetch, lock.session, lock),
            ]
            pending += waiting + sum(len(m.slots) for m in moves if m)
            started += sum(move is not None for move in moves)
        return self.resumable(lock.path, [DEVICE]), pending, started

    def to_bring(self, slots: list[Slot], lock: Lock) -> tuple[list[Slot], list[Slot], int]:
        """(to load, to prefetch, on their way), up to the first that cannot come."""
        load: list[Slot] = []
        prefetch: list[Slot] = []
        waiting = 0
        for slot in slots:
            if slot.usable(DEVICE):
                continue
            if self.coming(slot, DEVICE):
                waiting += 1
            elif slot in lock.failed or DEVICE in slot.here:
                break
            elif slot.usable(HOST):
                load.append(slot)
            elif self.coming(slot, HOST):
                waiting += 1
            elif slot.usable(STORAGE) and self.lacks(slot, HOST):
                prefetch.append(slot)
            else:
                break
        return load, prefetch, waiting

    # the end of a move

    def complete(self, move: Move, results: bytes) -> None:
        if move not in self.moves:
            raise Refused("UnknownOperation")
        if len(results) != len(move.slots) or max(results) > 2:
            raise Refused("BadArgument")
        self.moves.remove(move)
        arrived = []
        for slot, result in zip(move.slots, results, strict=True):
            came = result == 1 and slot not in move.void
            if came and not move.draining:
                self.settle_copy(slot, move)
                arrived.append(slot)
            elif not came and move.lock:
                move.lock.failed.add(slot)
            if result == 2 and slot.usable(move.source):
                slot.bad.add(move.source)
        if move.kind == "backup" and self.config.write_through:
            self.offload(move.component, arrived, move.session)
        for hint in [hint for hint in self.hints if move in hint.waits_for]:
            self.advance(hint)
        self.settle()

    def settle_copy(self, slot: Slot, move: Move) -> None:
        if slot in move.blocks:
            slot.block = move.blocks[slot]
        self.arrive(slot, move.target)

    def damaged(self, slot: Slot, tier: str) -> bool:
        if not slot.usable(tier):
            return False
        slot.bad.add(tier)
        self.settle()
        return True

"""Copies on their way between tiers: one component a move, as many pages as there is room for."""

from collections.abc import Callable

from .holds import Holds
from .records import (
    BACKUP,
    DEVICE,
    DIRECT_UP,
    HOST,
    LOAD,
    OFFLOAD,
    PREFETCH,
    STORAGE,
    TIERS,
    Lock,
    Move,
    Path,
    Refused,
    Slot,
    Way,
    length,
)

Wanted = Callable[[Slot], bool]


class Moves(Holds):
    def start(
        self,
        way: Way,
        component: str,
        slots: list[Slot],
        session: str,
        lock: Lock | None,
        into: list[int] | None = None,
    ) -> Move | None:
        """None when nothing is to be moved, or nothing can be."""
        _, source, target = way
        if not slots:
            return None
        move = Move(way, component, [], session, lock, self.now)
        if target not in self.owned():
            # The engine says where, and how many there go.
            move.blocks = dict(zip(slots, into or [], strict=False))
            move.slots = list(move.blocks)
        elif self.capacity[component][target]:
            down = TIERS.index(target) > TIERS.index(source)
            oldest = min(self.item(slot).last_use for slot in slots)
            room = self.make_room(component, target, len(slots), oldest if down else None)
            move.slots = slots[:room]
        if not move.slots:
            return None
        self.moves.append(move)
        self.wanted.append(move)
        return move

    def back_up(self, component: str, path: Path, lock: Lock, wanted: Wanted) -> None:
        way = self.way_down(component, DEVICE)
        if not way:
            return
        slots = self.along(component, path)
        bare = [s for s in slots if s.usable(DEVICE) and self.lacks(s, way[2]) and wanted(s)]
        self.start(way, component, bare, lock.session, lock)

    def fetch(self, component: str, path: Path, lock: Lock) -> None:
        if self.direct(component):
            return
        slots = self.along(component, path)
        stored = [s for s in slots if s.best == STORAGE and self.lacks(s, HOST)]
        wanted = [s for s in stored if s not in lock.failed]
        self.start(PREFETCH, component, wanted, lock.session, lock)

    def write_down(self, lock: Lock) -> None:
        """What write-through does after a commit."""
        if not self.config.write_through:
            return
        for name in self.families:
            way = self.way_down(name, DEVICE)
            if not way:
                continue
            below = way[2]
            self.back_up(
                name,
                lock.path,
                lock,
                lambda s, below=below: not s.usable(STORAGE) and self.admitted(s, below),
            )
            if below == HOST:
                # What failed after its backup, or reaches its count later, has no other occasion.
                held = [s for s in self.along(name, lock.path) if s.usable(HOST)]
                self.offload(name, held, lock.session)

    def offload(self, component: str, slots: list[Slot], session: str) -> None:
        bare = [s for s in slots if self.lacks(s, STORAGE) and self.admitted(s, STORAGE)]
        self.start(OFFLOAD, component, bare, session, None)

    # bringing up

    def restore(self, lock: Lock, into: list[int] | None = None) -> tuple[int, int, int]:
        """(ready, pending, moves started)"""
        self.held(lock)
        if (into is None) != (DEVICE in self.owned()):
            raise Refused("BadArgument")
        if into is not None:
            self.claim(into, list(self.families))
            for name in self.families:
                for block in into:
                    self.forget_block(name, block)
        ready, pending, started = self.bring_up(lock, into)
        ready = self.hold_ready(lock, ready, pending)
        self.settle()
        return ready, pending, started

    def hold_ready(self, lock: Lock, ready: int, pending: int) -> int:
        """What is said to be ready is held: where the spots of the lock's end did not come, or
        others have made them since, the lock ends where the device can be resumed."""
        if all(family.path for family in self.families.values()):
            return ready
        whole = length(lock.path)
        held = {id(slot) for slot in lock.holds}
        if ready == whole and {id(slot) for slot in self.spots(lock.path)} == held:
            return ready
        if pending or any(reserved.lock is lock for reserved in self.reserved):
            return 0
        lock.path = lock.path[: ready + 1]
        self.cut(lock.path)
        self.hold(lock)
        if ready < whole:
            lock.branch = max(lock.branch, whole)
        return ready

    def claim(self, blocks: list[int], components: list[str]) -> None:
        """Blocks of the engine that are named together must differ, and none may be loaded into."""
        loads = [move for move in self.moves if move.component in components]
        loading = {block for move in loads for block in move.blocks.values()}
        if len(set(blocks)) < len(blocks) or loading & set(blocks):
            raise Refused("BadArgument")

    def bring_up(self, lock: Lock, into: list[int] | None = None) -> tuple[int, int, int]:
        """Each component numbers its device pages for itself: `into` is read from its start."""
        pending = started = 0
        for name, family in self.families.items():
            slots = self.along(name, lock.path)
            if not family.path:
                slots = [slot for slot in slots if slot in lock.holds]
            load, prefetch, waiting = self.to_bring(slots, lock)
            up = DIRECT_UP if self.direct(name) else LOAD
            moves = [
                self.start(up, name, load, lock.session, lock, into),
                self.start(PREFETCH, name, prefetch, lock.session, lock),
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
            if self.given_up(slot):
                break
            if self.coming(slot, DEVICE):
                waiting += 1
            elif slot in lock.failed or DEVICE in slot.here:
                break
            elif slot.usable(HOST) or (self.direct(slot.component) and slot.usable(STORAGE)):
                load.append(slot)
            elif self.coming(slot, HOST):
                waiting += 1
            elif slot.usable(STORAGE) and self.lacks(slot, HOST):
                prefetch.append(slot)
            else:
                break
        return load, prefetch, waiting

    def given_up(self, slot: Slot) -> bool:
        """What comes to it is not waited for any more, though somebody may still write it."""
        return any(m.draining and slot in m.slots and m.target != STORAGE for m in self.moves)

    # the end of a move

    def complete(self, move: Move, results: bytes) -> None:
        if move not in self.moves:
            raise Refused("UnknownOperation")
        if len(results) != len(move.slots) or max(results) > 2:
            raise Refused("BadArgument")
        self.moves.remove(move)
        arrived = []
        for slot, result in zip(move.slots, results, strict=True):
            came = result == 1 and slot not in move.void and move.source not in slot.bad
            if came and not move.draining:
                self.settle_copy(slot, move)
                arrived.append(slot)
            elif not came and move.lock:
                move.lock.failed.add(slot)
            if self.gone(slot):
                # Its source was forgotten meanwhile.
                slot.lost = (self.now, "aborted" if move.draining else "failed")
            if result == 2 and slot.usable(move.source):
                slot.bad.add(move.source)
        if move.way == BACKUP and self.config.write_through:
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

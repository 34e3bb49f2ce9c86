"""What operators and routers ask about a session. Counts of an outcome are pages of `full`;
`pending` counts what is on its way for any component."""

from .observing import Observing
from .records import (
    DEVICE,
    FULL,
    HOST,
    STORAGE,
    Hint,
    Lease,
    Lock,
    Outcome,
    Path,
    Refused,
    Slot,
    covers,
    length,
    steps,
)


class Hints(Observing):
    def about(self, path: Path) -> list[Slot]:
        """What a request at the path's end reads, of every component."""
        return [slot for name in self.families for slot in self.needed(name, path)]

    # leases

    def pin(self, name: str, tier: str, ttl: int, owner: str) -> Outcome:
        path = self.known(name).path
        if ttl <= 0 or tier not in self.owned() or not self.capacity[FULL][tier]:
            raise Refused("BadArgument")
        asked = length(path)
        if all(self.gone(slot) for slot in self.along(FULL, path)):
            return Outcome("rejected", "not_stored", 0, asked, 0)
        granted = self.grantable(path, tier)
        if not granted:
            return Outcome("rejected", "budget", 0, asked, 0)
        path = path[: granted + 1]
        missing = [
            slot
            for slot in self.about(path)
            if self.capacity[slot.component][tier]
            and not slot.usable(tier)
            and (slot.best or self.coming(slot, tier))
        ]
        pending = 0 if tier == STORAGE else len(missing)
        clipped = granted < asked
        outcome = "deferred" if pending else "clipped" if clipped else "accepted"
        holds = self.spots(path)
        lease = Lease("pin", name, owner, tier, path, self.now + ttl, ttl, holds)
        number = self.grant(lease)
        if pending:
            self.wait("pin", tier, name, path)
        self.settle()
        return Outcome(outcome, "budget" if clipped else "", granted, asked, pending, number)

    def retain(self, name: str, ttl: int, owner: str) -> Outcome:
        return self.prefer("retain", name, ttl, owner)

    def share(self, name: str, forks: int, ttl: int, owner: str) -> Outcome:
        if forks < 1:
            raise Refused("BadArgument")
        return self.prefer("share", name, ttl, owner, forks)

    def prefer(self, kind: str, name: str, ttl: int, owner: str, forks: int = 0) -> Outcome:
        """A lease that holds nothing: the path goes last. It has no budget."""
        path = self.known(name).path
        if ttl <= 0:
            raise Refused("BadArgument")
        slots = self.along(FULL, path)
        present, asked = sum(not self.gone(slot) for slot in slots), len(slots)
        if not present:
            return Outcome("rejected", "not_stored", 0, asked, 0)
        lease = Lease(kind, name, owner, "", path, self.now + ttl, ttl, [], forks)
        number = self.grant(lease)
        self.settle()
        if present < asked:
            return Outcome("clipped", "not_stored", present, asked, 0, number)
        return Outcome("accepted", "", asked, asked, 0, number)

    def tick(self) -> int:
        due = [number for number, lease in self.leases.items() if lease.expires <= self.now]
        for number in due:
            del self.leases[number]
        if self.config.move_timeout:
            for move in self.moves:
                move.draining |= move.started + self.config.move_timeout <= self.now
        self.settle()
        return len(due)

    # moves and drops

    def demote(self, name: str) -> Outcome:
        path = self.known(name).path
        if DEVICE not in self.owned():
            raise Refused("BadArgument")
        asked = sum(DEVICE in slot.here for slot in self.along(FULL, path))
        if not asked:
            return Outcome("rejected", "nothing_to_do", 0, asked, 0)
        if not self.way_down(FULL, DEVICE):
            return Outcome("rejected", "no_room", 0, asked, 0)
        own, obstacle = self.own(name, DEVICE)
        device = [self.full(p) for p in own if self.full(p).usable(DEVICE)]
        bare = [slot for slot in device if self.bare(slot)]
        pending = len(bare) + sum(self.bare(s) for p in own for s in self.others(p))
        if not device:
            outcome, reason = "rejected", obstacle or "nothing_to_do"
        elif pending:
            outcome, reason = "deferred", ""
        elif len(device) < asked:
            outcome, reason = "clipped", obstacle or "in_flight"
        else:
            outcome, reason = "accepted", ""
        if device:
            self.drop_demoted(own)
        if device and pending:
            self.wait("demote", STORAGE if self.direct(FULL) else HOST, name, path)
        self.settle()
        done = len(device) - len(bare)
        return Outcome(outcome, reason, done, asked, pending if device else 0)

    def bare(self, slot: Slot) -> bool:
        """On the device and nowhere below, though its component has a tier there."""
        if not self.way_down(slot.component, DEVICE):
            return False
        return slot.usable(DEVICE) and not slot.usable(HOST) and not slot.usable(STORAGE)

    def drop_demoted(self, own: list[Path]) -> None:
        for page in own:
            for slot in self.slots_at(page):
                below = slot.usable(HOST) or slot.usable(STORAGE)
                if DEVICE in slot.here and below and not self.read(slot, DEVICE):
                    self.drop(slot, DEVICE, "demote")

    def prefetch(self, name: str) -> Outcome:
        path = self.known(name).path
        slots = self.about(path)
        missing = sum(slot.best == STORAGE for slot in slots)
        if not missing:
            stored = any(slot.best for slot in self.along(FULL, path))
            reason = "nothing_to_do" if stored else "not_stored"
            return Outcome("rejected", reason, 0, length(path), 0)
        self.wait("prefetch", HOST, name, path)
        self.settle()
        return Outcome("deferred", "", 0, length(path), missing)

    def flush(self, name: str) -> Outcome:
        slots = self.along(FULL, self.known(name).path)
        if all(self.gone(slot) for slot in slots):
            return Outcome("rejected", "nothing_to_do", 0, len(slots), 0)
        dropped, left, obstacle = self.drop_own(name, "flush")
        self.settle()
        outcome = "rejected" if not dropped else "clipped" if left else "accepted"
        return Outcome(outcome, obstacle if left else "", dropped, dropped + left, 0)

    # hints that wait

    def wait(self, verb: str, tier: str, session: str, path: Path) -> None:
        self.hints.append(Hint(verb, tier, session, self.lock(path, session)))
        self.advance(self.hints[-1])

    def advance(self, hint: Hint) -> None:
        lock, path = hint.lock, hint.lock.path
        if hint.verb == "pin" and hint.tier == DEVICE:
            self.bring_up(lock)
        else:
            for name in self.families:
                self.move_for(hint, name, lock)
        hint.waits_for = [
            m
            for m in self.moves
            if m.target in self.on_the_way(hint, m.component)
            and any(covers(path, slot.path) for slot in m.slots)
        ]
        if not hint.waits_for:
            self.fulfil(hint)

    def on_the_way(self, hint: Hint, component: str) -> set[str]:
        if hint.verb == "pin":
            return {hint.tier, HOST}
        down = self.way_down(component, DEVICE)
        return {HOST} if hint.verb == "prefetch" else {down[2]} if down else set()

    def move_for(self, hint: Hint, component: str, lock: Lock) -> None:
        if hint.verb == "demote":
            self.back_up(
                component,
                lock.path,
                lock,
                lambda s: not s.usable(STORAGE) and s not in lock.failed,
            )
        if hint.verb == "pin":
            self.back_up(component, lock.path, lock, lambda s: s not in lock.failed)
        if hint.verb in ("pin", "prefetch"):
            self.fetch(component, lock.path, lock)

    def fulfil(self, hint: Hint) -> None:
        self.hints.remove(hint)
        if hint.verb == "demote":
            self.drop_demoted(self.own(hint.session, DEVICE, hint.lock)[0])
        slots = [self.full(page) for page in steps(hint.lock.path)]
        if hint.verb == "demote":
            there = [slot for slot in slots if DEVICE not in slot.here and slot.best]
        else:
            there = [slot for slot in slots if slot.usable(hint.tier)]
        reason = "" if len(there) == len(slots) else "failed"
        self.completed.append((hint.session, reason, len(there)))
        self.unlock(hint.lock)

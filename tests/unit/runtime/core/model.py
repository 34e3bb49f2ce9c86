"""The core's `full` component, page by page: small, slow, and meant to be obviously right.

Moments (`now`) differ from call to call, so that the order of eviction never depends on a tie.
"""

from collections.abc import Callable

from model_pages import Pages
from model_records import (
    DEVICE,
    HOST,
    KINDS,
    STORAGE,
    TIERS,
    Found,
    Hint,
    Lease,
    Lock,
    Move,
    Outcome,
    Page,
    Path,
    Refused,
    Reserved,
    Session,
    covers,
    leading,
)


class Model(Pages):
    def __init__(
        self, page_size: int, capacity: dict[str, int], write_through: bool, budget: float
    ):
        super().__init__(page_size, capacity, budget)
        self.write_through = write_through

    # sessions

    def open_session(self, name: str, parent: str) -> None:
        if parent:
            self.known(parent)
        if name not in self.sessions:
            self.sessions[name] = Session(parent, self.now)

    def close_session(self, name: str) -> int:
        dropped, *_ = self.drop_own(name, "close")
        del self.sessions[name]
        self.settle()
        return dropped

    # finding and holding

    def acquire(self, session: str, tokens: Path, grid: int) -> tuple[Found, Lock]:
        found = self.match(session, tokens, grid)
        lock = self.lock(tokens[: found.pages * self.page_size], session, tokens)
        self.sessions[session].prompt = tokens
        self.settle()
        return found, lock

    def lock(self, path: Path, session: str, tokens: Path = ()) -> Lock:
        self.locks.append(Lock(path, session, tokens))
        self.use(path)
        return self.locks[-1]

    def release(self, lock: Lock) -> None:
        self.held(lock)
        self.unlock(lock)
        self.reserved = [r for r in self.reserved if r.lock is not lock]
        self.settle()

    def unlock(self, lock: Lock) -> None:
        lock.open = False
        self.locks.remove(lock)

    def held(self, lock: Lock) -> None:
        if not lock.open:
            raise Refused("UnknownReceipt")

    def table(self, lock: Lock) -> int:
        """Leading pages on the device."""
        return leading(self.usable(path, DEVICE) for path in self.steps(lock.path))

    # computing

    def reserve(self, lock: Lock, pages: int) -> Reserved:
        self.held(lock)
        self.reserved.append(Reserved(lock, 0))
        self.reserved[-1].pages = self.make_room(DEVICE, pages)
        self.settle()
        return self.reserved[-1]

    def commit(self, r: Reserved, tokens: Path, start: int, pages: int) -> dict[str, int]:
        if r not in self.reserved:
            raise Refused("UnknownOperation")
        size, held = self.page_size, len(r.lock.path) // self.page_size
        end = (start + pages) * size
        agreed = min(len(r.lock.path), end)
        if (
            pages > r.pages
            or start > held
            or len(tokens) < end
            or tokens[:agreed] != r.lock.path[:agreed]
        ):
            raise Refused("BadArgument")
        done = dict.fromkeys(("inserted", "healed", "duplicate"), 0)
        ours = self.steps(tokens[:end])[start:]
        for path in ours:
            if path not in self.pages:
                done["inserted"] += 1
                self.pages[path] = Page(self.now, {DEVICE})
            elif self.lacks(path, DEVICE):
                done["healed"] += 1
                self.pages[path].here.add(DEVICE)
            else:
                done["duplicate"] += 1
        self.reserved.remove(r)
        if end >= len(r.lock.path):
            r.lock.path = tokens[:end]
        self.use(r.lock.path)
        if session := self.sessions.get(r.lock.session):
            session.path, session.last_use = r.lock.path, self.now
        done["runs"] = leading(self.usable(path, DEVICE) for path in ours)
        if self.write_through:
            self.back_up(r.lock.path, r.lock, lambda p: not self.usable(p, STORAGE))
        self.settle()
        return done

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

    # moving

    def start(self, kind: str, pages: list[Path], session: str, lock: Lock | None) -> Move | None:
        target = KINDS[kind][1]
        if not pages or not self.capacity[target]:
            return None
        down = kind in ("backup", "offload")
        oldest = min(self.pages[path].last_use for path in pages)
        room = self.make_room(target, len(pages), oldest if down else None)
        if not room:
            return None
        move = Move(kind, pages[:room], session, lock)
        self.moves.append(move)
        self.wanted.append(move)
        return move

    def back_up(self, path: Path, lock: Lock, pages: Callable[[Path], bool]) -> None:
        bare = [p for p in self.steps(path) if self.usable(p, DEVICE) and self.lacks(p, HOST)]
        self.start("backup", [p for p in bare if pages(p)], lock.session, lock)

    def fetch(self, path: Path, lock: Lock) -> None:
        stored = [p for p in self.steps(path) if self.best(p) == STORAGE and self.lacks(p, HOST)]
        self.start("prefetch", [p for p in stored if p not in lock.failed], lock.session, lock)

    def restore(self, lock: Lock) -> tuple[int, int, int]:
        """(ready, pending, moves started)"""
        self.held(lock)
        up = self.bring_up(lock)
        self.settle()
        return up

    def bring_up(self, lock: Lock) -> tuple[int, int, int]:
        ready = pending = 0
        load: list[Path] = []
        prefetch: list[Path] = []
        for path in self.steps(lock.path):
            if self.usable(path, DEVICE):
                ready += not (pending or load or prefetch)
            elif self.coming(path, DEVICE):
                pending += 1
            elif path in lock.failed or DEVICE in self.pages[path].here:
                break
            elif self.usable(path, HOST):
                load.append(path)
            elif self.coming(path, HOST):
                pending += 1
            elif self.usable(path, STORAGE) and self.lacks(path, HOST):
                prefetch.append(path)
            else:
                break
        moves = [self.start("load", load, lock.session, lock)]
        moves.append(self.start("prefetch", prefetch, lock.session, lock))
        started = [move for move in moves if move]
        return ready, pending + sum(len(m.pages) for m in started), len(started)

    def complete(self, move: Move, results: bytes) -> None:
        if move not in self.moves:
            raise Refused("UnknownOperation")
        if len(results) != len(move.pages) or max(results) > 2:
            raise Refused("BadArgument")
        self.moves.remove(move)
        arrived = []
        for path, result in zip(move.pages, results, strict=True):
            if result == 1 and not move.draining:
                self.pages[path].here.add(move.target)
                arrived.append(path)
            elif result != 1 and move.lock:
                move.lock.failed.add(path)
            if result == 2 and self.usable(path, move.source):
                self.pages[path].bad.add(move.source)
        if move.kind == "backup" and self.write_through:
            self.start(
                "offload", [p for p in arrived if self.lacks(p, STORAGE)], move.session, None
            )
        for hint in [hint for hint in self.hints if move in hint.waits_for]:
            self.advance(hint)
        self.settle()

    def damaged(self, path: Path, tier: str) -> bool:
        if not self.usable(path, tier):
            return False
        self.pages[path].bad.add(tier)
        self.settle()
        return True

    # hints

    def pin(self, name: str, tier: str, ttl: int, owner: str) -> Outcome:
        path = self.known(name).path
        if ttl <= 0 or not self.capacity[tier]:
            raise Refused("BadArgument")
        asked = self.steps(path)
        if not asked:
            return Outcome("rejected", "not_stored", 0, 0, 0)
        budget = self.budget[tier] - sum(self.leased(p, tier) for p in self.pages)
        new = 0
        granted = []
        for p in asked:
            new += not self.leased(p, tier)
            if new > budget:
                break
            granted.append(p)
        if not granted:
            return Outcome("rejected", "budget", 0, len(asked), 0)
        missing = [
            p
            for p in granted
            if not self.usable(p, tier) and (self.best(p) or self.coming(p, tier))
        ]
        pending = 0 if tier == STORAGE else len(missing)
        clipped = len(granted) < len(asked)
        outcome = "deferred" if pending else "clipped" if clipped else "accepted"
        lease = self.grant(Lease(name, owner, tier, granted[-1], self.now + ttl))
        if pending:
            self.wait("pin", tier, name, granted[-1])
        self.settle()
        return Outcome(
            outcome, "budget" if clipped else "", len(granted), len(asked), pending, lease
        )

    def grant(self, lease: Lease) -> int:
        same = (lease.session, lease.owner, lease.tier)
        for number, old in self.leases.items():
            if (old.session, old.owner, old.tier) == same:
                self.leases[number] = lease
                return number
        self.numbers += 1
        self.leases[self.numbers] = lease
        return self.numbers

    def unpin(self, lease: int) -> None:
        if lease not in self.leases:
            raise Refused("UnknownLease")
        del self.leases[lease]
        self.settle()

    def tick(self) -> int:
        due = [number for number, lease in self.leases.items() if lease.expires <= self.now]
        for number in due:
            del self.leases[number]
        self.settle()
        return len(due)

    def demote(self, name: str) -> Outcome:
        path = self.known(name).path
        asked = sum(DEVICE in self.pages[p].here for p in self.steps(path))
        if not asked:
            return Outcome("rejected", "nothing_to_do", 0, 0, 0)
        own, obstacle = self.own(name, DEVICE)
        device = [p for p in own if self.usable(p, DEVICE)]
        bare = [p for p in device if not self.usable(p, HOST) and not self.usable(p, STORAGE)]
        if not device:
            outcome, reason = "rejected", obstacle or "nothing_to_do"
        elif bare:
            outcome, reason = "deferred", ""
        elif len(device) < asked:
            outcome, reason = "clipped", obstacle or "in_flight"
        else:
            outcome, reason = "accepted", ""
        self.drop_demoted(own)
        if bare:
            self.wait("demote", HOST, name, path)
        self.settle()
        return Outcome(outcome, reason, len(device) - len(bare), asked, len(bare))

    def drop_demoted(self, own: list[Path]) -> None:
        for p in own:
            below = self.usable(p, HOST) or self.usable(p, STORAGE)
            if DEVICE in self.pages[p].here and below and not self.read(p, DEVICE):
                self.drop(p, DEVICE, "demote")

    def prefetch(self, name: str) -> Outcome:
        path = self.known(name).path
        pages = self.steps(path)
        missing = sum(self.best(p) == STORAGE for p in pages)
        if not missing:
            stored = any(self.best(p) for p in pages)
            return Outcome(
                "rejected", "nothing_to_do" if stored else "not_stored", 0, len(pages), 0
            )
        self.wait("prefetch", HOST, name, path)
        self.settle()
        return Outcome("deferred", "", 0, len(pages), missing)

    def flush(self, name: str) -> Outcome:
        pages = self.steps(self.known(name).path)
        if all(self.gone(p) for p in pages):
            return Outcome("rejected", "nothing_to_do", 0, len(pages), 0)
        dropped, left, obstacle = self.drop_own(name, "flush")
        self.settle()
        outcome = "rejected" if not dropped else "clipped" if left else "accepted"
        return Outcome(outcome, obstacle if left else "", dropped, dropped + left, 0)

    def drop_own(self, name: str, reason: str) -> tuple[int, int, str]:
        present = [p for p in self.steps(self.known(name).path) if not self.gone(p)]
        own, obstacle = self.own(name, None)
        idle = [
            p
            for p in own
            if self.pages[p].here and not any(self.coming(p, t) or self.read(p, t) for t in TIERS)
        ]
        for tier in TIERS:
            for p in idle:
                if tier in self.pages[p].here:
                    self.drop(p, tier, reason)
        left = len(present) - len(idle)
        return len(idle), left, obstacle or ("in_flight" if left else "")

    def wait(self, verb: str, tier: str, session: str, path: Path) -> None:
        self.hints.append(Hint(verb, tier, session, self.lock(path, session)))
        self.advance(self.hints[-1])

    def advance(self, hint: Hint) -> None:
        lock, path = hint.lock, hint.lock.path
        if hint.verb == "pin" and hint.tier == DEVICE:
            self.bring_up(lock)
        if hint.verb == "demote":
            self.back_up(path, lock, lambda p: not self.usable(p, STORAGE) and p not in lock.failed)
        if hint.verb == "pin" and hint.tier == HOST:
            self.back_up(path, lock, lambda p: p not in lock.failed)
        if hint.verb == "prefetch" or (hint.verb == "pin" and hint.tier == HOST):
            self.fetch(path, lock)
        on_the_way = {hint.tier, HOST}
        hint.waits_for = [
            m
            for m in self.moves
            if m.target in on_the_way and any(covers(path, p) for p in m.pages)
        ]
        if not hint.waits_for:
            self.fulfil(hint)

    def fulfil(self, hint: Hint) -> None:
        self.hints.remove(hint)
        if hint.verb == "demote":
            self.drop_demoted(self.own(hint.session, DEVICE, hint.lock)[0])
            there = [
                p
                for p in self.steps(hint.lock.path)
                if DEVICE not in self.pages[p].here and self.best(p)
            ]
        else:
            there = [p for p in self.steps(hint.lock.path) if self.usable(p, hint.tier)]
        whole = len(there) * self.page_size == len(hint.lock.path)
        self.completed.append((hint.session, "" if whole else "failed", len(there)))
        self.unlock(hint.lock)

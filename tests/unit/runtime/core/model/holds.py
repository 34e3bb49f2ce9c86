"""Locks and leases: what keeps copies from being evicted."""

from .finding import Finding, Request
from .records import (
    DEVICE,
    FULL,
    Found,
    Lease,
    Lock,
    Path,
    Refused,
    covers,
    leading,
    length,
    steps,
)

RENEWED_FROM = 16
"""A lease is renewed when one part in so many of its time has passed."""


class Holds(Finding):
    def acquire(
        self,
        session: str,
        units: tuple,
        grid: int = 1,
        skip: int = 0,
        namespace: int = 0,
    ) -> tuple[Found, Lock]:
        request = self.request(session, units, skip, namespace)
        found = self.match(request, grid)
        lock = self.lock(request.path[: found.pages + 1], session, request.units)
        lock.branch = found.branch
        self.remember(request)
        self.visit(request)
        self.settle()
        return found, lock

    def remember(self, request: Request) -> None:
        """What is asked for beyond the session's path counts if the tree has no more than that."""
        owner = self.sessions[request.session]
        known = leading(page in self.nodes for page in steps(request.path))
        own = owner.path or request.path[:1]
        goes_on = known == length(own) and covers(request.path, own)
        owner.said = (request.namespace, request.units[known * self.keys.per_page :] * goes_on)

    def look(self, session: str, units: tuple, skip: int = 0, namespace: int = 0) -> Found:
        return self.match(self.request(session, units, skip, namespace))

    def lock(self, path: Path, session: str, units: tuple = ()) -> Lock:
        self.cut(path)
        self.locks.append(Lock(path, session, units))
        self.hold(self.locks[-1])
        return self.locks[-1]

    def hold(self, lock: Lock) -> None:
        """Whatever is there of what a request at the lock's end reads; a use of it."""
        lock.holds = self.spots(lock.path)
        self.use(lock.path, lock.holds, lock.session)

    def hold_again(self, lock: Lock) -> Lock:
        """One more lock on the same path, to be released for itself."""
        self.held(lock)
        again = self.lock(lock.path, lock.session)
        self.settle()
        return again

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

    def table(self, lock: Lock, component: str = FULL) -> list[int]:
        """Positions of the pages that are on the device: of a path the leading ones, of spots those
        that the receipt holds."""
        if not self.families[component].path:
            return [len(slot.path) - 2 for slot in self.copies_of(lock, component)]
        slots = self.along(component, lock.path)
        return list(range(leading(slot.usable(DEVICE) for slot in slots)))

    def copies_of(self, lock: Lock, component: str = FULL) -> list:
        slots = self.along(component, lock.path)
        if not self.families[component].path:
            slots = [slot for slot in slots if slot in lock.holds]
        return [slot for slot in slots if slot.usable(DEVICE)]

    # leases

    def grantable(self, path: Path, tier: str) -> int:
        """Leading pages that the tier's budget allows; what is leased already costs nothing."""
        budget = self.budget(FULL, tier) - self.leased_pages(FULL, tier)
        granted = 0
        for page in steps(path):
            budget -= not self.leased(self.full(page), tier)
            if budget < 0:
                break
            granted += 1
        return granted

    def grant(self, lease: Lease) -> int:
        """A second lease of the same kind by the same owner takes the first one's place."""
        self.cut(lease.path)

        def same(x: Lease) -> tuple:
            return x.kind, x.session, x.owner, x.tier

        for number, old in self.leases.items():
            if same(old) == same(lease):
                self.leases[number] = lease
                return number
        number = self.number()
        self.leases[number] = lease
        return number

    def visit(self, request: Request) -> None:
        """An acquire renews the session's own leases that it covers. It is one fork less to wait
        for when the session that shared is its parent."""
        matched, session = self.locks[-1].path, self.sessions[request.session]
        for number, lease in list(self.leases.items()):
            passed = self.now + lease.ttl - lease.expires
            own = lease.session == request.session and passed >= lease.ttl // RENEWED_FROM
            forked = lease.kind == "share" and lease.session == session.parent
            if not covers(matched, lease.path) or not (own or forked):
                continue
            if own:
                lease.expires = self.now + lease.ttl
            else:
                lease.forks -= 1
            lease.holds = self.spots(lease.path)
            if lease.kind == "share" and not lease.forks:
                del self.leases[number]

    def unpin(self, lease: int) -> None:
        if lease not in self.leases:
            raise Refused("UnknownLease")
        del self.leases[lease]
        self.settle()

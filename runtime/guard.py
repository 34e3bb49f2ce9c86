"""Watches over the bytes that lie still: checks copies against their sentinels, damages one on
request.

What moves is checked by the pipelines; both end up in the same rows and counters here.
"""

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from canary import Mode, Violation, differences
from runtime.errors import NotResident

if TYPE_CHECKING:
    from runtime._core import Core, Tier
    from runtime.pools.pool import Pool
    from runtime.transfer.pipeline import Completion
    from runtime.transfer.storage import StoragePipeline

FLIPPED_BYTE = 0
"""Covered by every mode that looks at bytes at all."""


class Copy(NamedTuple):
    """A page's copy in a tier, as `Core.resident` and `Core.copies` list them."""

    owner: int
    page: int
    position: int
    key: bytes


class Guard:
    """Belongs to the engine's thread. `pools` maps the memory tiers that exist to their pools."""

    def __init__(
        self,
        core: "Core",
        pools: "dict[Tier, Pool]",
        storage: "StoragePipeline | None",
        mode: Mode,
    ) -> None:
        self.mode: Mode = mode
        self.checked = 0
        self.violations = 0
        self._core = core
        self._pools = pools
        self._storage = storage

    def copies(self, tier: "Tier", session: str = "") -> list[Copy]:
        """Every settled copy of a tier; with `session`, those of its path, in order."""
        return [Copy(*row) for row in self._core.resident(tier, session)]

    def check(
        self,
        now: int,
        tier: "Tier",
        copies: list[Copy],
        *,
        hop: str,
        session: str = "",
        request: str = "",
    ) -> list[Copy]:
        """Check copies in place. The damaged are returned, reported, and dropped by the core; so
        are stored objects that have gone missing, which is a loss but no violation."""
        found = [(copy, v) for copy in copies if (v := self._violation(tier, copy, hop, session))]
        violations = [v for _, v in found if v.reason != "missing"]
        self._note(now, hop, tier, len(copies), violations, session, request)
        for _, violation in found:
            self._core.damaged(now, tier, violation.slot, violation.generation)
        return [copy for copy, _ in found]

    def report(self, now: int, done: "Completion") -> None:
        """Put what a pipeline found into the log."""
        action = done.action
        self._note(
            now,
            action.kind,
            action.tier_from,
            done.checked,
            done.violations,
            action.session,
            "",
            action.op,
        )

    def sweep(self, now: int) -> dict[str, dict[str, int]]:
        """Check every settled copy of every tier, storage included: tier -> checked, damaged."""
        tiers: list[Tier] = [*self._pools]
        if self._storage:
            tiers.append("storage")
        counts: dict[str, dict[str, int]] = {}
        for tier in tiers:
            copies = self.copies(tier)
            damaged = self.check(now, tier, copies, hop="sweep")
            counts[tier] = {"checked": len(copies), "damaged": len(damaged)}
        return counts

    def inject(self, now: int, tier: "Tier", session: str) -> dict[str, Any]:
        """Flip one byte of the deepest page of the session's path that has a settled copy in
        `tier`, so that the checker is checked. Returns what was flipped; NotResident when there is
        nothing to flip, UnknownSession when the session is not open.
        """
        there = self.copies(tier, session)
        if not there:
            raise NotResident(
                f"Session {session!r} has no page on the {tier}; nothing was damaged."
            )
        target = there[-1]
        if tier == "storage":
            assert self._storage
            self._storage.flip(target.key, FLIPPED_BYTE)
        else:
            self._pools[tier].flip(target.page, FLIPPED_BYTE)
        flipped = {
            "hop": tier,
            "session": session,
            "slot": target.owner & 0xFFFF_FFFF,
            "position": target.position,
            "page": target.page,
            "byte": FLIPPED_BYTE,
        }
        self._core.note(
            now,
            "canary",
            "inject",
            session=session,
            slot=target.owner & 0xFFFF_FFFF,
            pages=1,
            tier_from=tier,
            detail=json.dumps(flipped),
        )
        return flipped

    def _violation(self, tier: "Tier", copy: Copy, hop: str, session: str) -> Violation | None:
        differs: dict[str, tuple[int, int]] = {}
        reason = ""
        if tier == "storage":
            assert self._storage
            reason = self._storage.fault(copy.key)
        else:
            pool = self._pools[tier]
            first_token = copy.position * pool.layout.page_size
            differs = differences(
                pool.sentinels[copy.page],
                copy.key,
                first_token,
                copy.owner,
                pool.page(copy.page),
                self.mode,
            )
        if not differs and not reason:
            return None
        return Violation(hop, tier, session, copy.owner, copy.page, copy.position, differs, reason)

    def _note(
        self,
        now: int,
        hop: str,
        tier: str,
        checked: int,
        violations: list[Violation],
        session: str,
        request: str,
        op: int = 0,
    ) -> None:
        self.checked += checked
        self.violations += len(violations)
        for violation in violations:
            self._core.note(
                now,
                "canary",
                "violation",
                session=violation.session or self._core.user(violation.slot),
                request=request,
                reason=hop,
                op=op,
                slot=violation.slot,
                pages=1,
                tier_from=violation.tier,
                detail=violation.detail(),
            )
        if checked:
            self._core.note(
                now,
                "canary",
                "check",
                session=session,
                request=request,
                reason=hop,
                op=op,
                pages=checked,
                tier_from=tier,
            )

"""All that can be seen of the core after a command, compared with what the model says."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pyarrow.ipc
from identity import page_digest
from model import Model
from model.families import Checkpoints
from model.policies import REMEMBERING
from model.records import (
    FULL,
    TIERS,
    Evicted,
    Found,
    Lock,
    Move,
    Outcome,
    Path,
    Reserved,
    Slot,
    length,
    steps,
)

from runtime import _core

NAMESPACE, SECRET = "model", b"secret"
PRESSURE = ("pressure", "admission")
COLUMNS = [
    *("kind", "phase", "reason", "op", "session", "cause"),
    *("node", "component", "tier_from", "slot_from", "pages", "score", "skipped"),
]
"""What is read of the log."""


class Comparison:
    core: _core.Core
    model: Model
    log: _core.Log
    batch: int
    payloads: list[bytes]
    rows: list[dict]
    rows_of: dict[int, range]
    receipts: dict[int, Lock]
    ops: dict[int, Move | Reserved]
    leases: dict[int, int]
    slots: dict[int, Slot]
    deferred: set[int]

    def digest(self, path: Path) -> bytes:
        name = self.model.namespaces[path[0]] or NAMESPACE
        return page_digest(path, self.model.config.key, name, SECRET)

    def compare(self) -> None:
        self.compare_moves()
        self.compare_rows()
        self.compare_residents()
        self.compare_reports()
        for receipt, lock in self.receipts.items():
            if lock.open:
                self.compare_lock(receipt, lock)
        self.core.check()

    def compare_lock(self, receipt: int, lock: Lock) -> None:
        assert self.core.keys(receipt) == [self.digest(page) for page in steps(lock.path)]
        for name in self.model.families:
            of = {} if name == FULL else {"component": name}
            table, copies = self.core.table(receipt, **of), self.core.copies(receipt, **of)
            assert sum(n for *_, n in table) == len(self.model.table(lock, name)), name
            held = self.model.copies_of(lock, name)
            assert [(position, key) for *_, position, key in copies] == [
                (length(slot.path) - 1, self.digest(slot.path)) for slot in held
            ], name

    def compare_moves(self) -> None:
        actions = self.core.actions()
        assert [a.kind for a in actions] == [m.kind for m in self.model.wanted]
        for action, move in zip(actions, self.model.wanted, strict=True):
            assert action.component == move.component
            assert action.keys == [self.digest(slot.path) for slot in move.slots]
            assert action.positions == [length(slot.path) - 1 for slot in move.slots]
            assert (action.tier_from, action.tier_to) == (move.source, move.target)
            assert action.session == move.session
            assert sum(n for *_, n in action.runs) == action.pages == len(move.slots)
            if move.blocks:
                assert [page + i for *_, page, n in action.runs for i in range(n)] == list(
                    move.blocks.values()
                )
            self.ops[action.op] = move

    # the log

    def drain(self) -> Iterator[dict]:
        while message := self.log.drain(self.batch):
            self.payloads.append(message.payload)
            table = pyarrow.ipc.open_stream(message.payload).read_all()
            yield from table.select(COLUMNS).to_pylist()
        assert self.log.dropped() == 0

    def compare_rows(self) -> None:
        """What the log says was evicted, for what reason, in which order; and which hints ended."""
        evicted = [r for r in self.rows if r["kind"] == "evict" and r["phase"] != "marked"]
        self.compare_pressure([row for row in evicted if row["reason"] in PRESSURE])
        others = [e for e in self.model.evicted if e.reason not in PRESSURE]
        assert sorted(
            said for row in evicted if row["reason"] not in PRESSURE for said in self.evictions(row)
        ) == sorted(self.expected(e) for e in others)
        hints = [row for row in self.rows if row["kind"] == "hint"]
        done = [
            (r["session"], r["reason"] or "", r["pages"])
            for r in hints
            if r["phase"] == "completed"
        ]
        assert done == self.model.completed
        for row in hints:
            if row["phase"] == "deferred":
                self.deferred.add(row["op"])
            elif row["phase"] == "completed":
                self.deferred.remove(row["op"])
        assert len(self.deferred) == len(self.model.hints)

    def victims(self) -> dict[tuple[str, str], list[Slot]]:
        """What was evicted for want of room, in order, by component and tier."""
        found: dict[tuple[str, str], list[Slot]] = defaultdict(list)
        for row in self.rows:
            if row["kind"] == "evict" and row["reason"] in PRESSURE:
                # Of a run the last goes first.
                slots = range(row["slot_from"], row["slot_from"] + row["pages"])
                went = [self.slots[slot] for slot in reversed(slots)]
                found[row["component"] or FULL, row["tier_from"]] += went
        return found

    def compare_pressure(self, rows: list[dict]) -> None:
        """Rows say in path order what went from the end of a node: in groups, the order agrees."""
        groups: list[tuple[Any, list[dict]]] = []
        for row in rows:
            key = (row["node"], row["cause"], row["tier_from"], row["component"])
            if not groups or groups[-1][0] != key:
                groups.append((key, []))
            groups[-1][1].append(row)
        order = [e for e in self.model.evicted if e.reason in PRESSURE]
        for _, group in groups:
            said = {e for row in group for e in self.evictions(row)}
            went, order = order[: len(said)], order[len(said) :]
            assert said == {self.expected(e) for e in went}
            policy = self.model.policy(went[0].tier)[0]
            if policy == "lru":
                assert {row["score"] for row in group} == {e.last_use for e in went}
            if policy not in REMEMBERING:
                assert group[0]["skipped"] == went[0].skipped, (group[0], went)
        assert not order

    def evictions(self, row: dict) -> list[tuple]:
        slots = range(row["slot_from"], row["slot_from"] + row["pages"])
        return [
            (
                self.slots[s].component,
                row["tier_from"],
                self.digest(self.slots[s].path),
                row["reason"],
            )
            for s in slots
        ]

    def expected(self, e: Evicted) -> tuple:
        return e.component, e.tier, self.digest(e.path), e.reason

    # copies and reports

    def compare_residents(self) -> None:
        for name in self.model.families:
            of = {} if name == FULL else {"component": name}
            slots = {self.digest(s.path): s for s in self.model.slots[name].values()}
            for tier in TIERS:
                copies = self.core.resident(tier, **of)
                here = [
                    (key, length(slot.path) - 1) for key, slot in slots.items() if slot.usable(tier)
                ]
                found = sorted((key, position) for *_, position, key in copies)
                assert found == sorted(here), (name, tier, found, sorted(here))
                assert len({page for _, page, *_ in copies}) == len(copies)
                for owner, page, _, key in copies:
                    self.slots[owner & 0xFFFFFFFF] = slots[key]
                    assert slots[key].block in (None, page) or tier != "device"

    def compare_reports(self) -> None:
        model = self.model
        for pool in self.core.pools():
            name, tier = pool.component, pool.tier
            if tier not in model.owned():
                continue
            capacity = model.capacity[name][tier]
            assert (pool.fenced, pool.free) == (model.fenced(name, tier), model.free(name, tier)), (
                pool
            )
            if name == FULL:
                assert pool.leased == model.leased_pages(name, tier), pool
            assert pool.used + pool.fenced + pool.free == pool.capacity == capacity
        infos = self.core.sessions()
        assert [info.name for info in infos] == sorted(model.sessions)
        for info in infos:
            self.compare_session(info)

    def compare_session(self, info: _core.SessionInfo) -> None:
        model, session = self.model, self.model.sessions[info.name]
        slots = model.along(FULL, session.path)
        by_tier = [sum(t in slot.here for slot in slots) for t in TIERS]
        assert [info.device_pages, info.host_pages, info.storage_pages] == by_tier
        assert (info.pages, info.parent, info.last_use) == (
            len(slots),
            session.parent,
            session.last_use,
        )
        assert info.shared_pages == sum(len(model.owners(slot.path)) > 1 for slot in slots)
        mine = {n: x for n, x in model.leases.items() if x.session == info.name}
        assert {self.leases[n]: rest for n, _, *rest in info.leases} == {
            n: [x.owner, length(x.path), x.expires] for n, x in mine.items()
        }
        for lease, tier, *_ in info.leases:
            # What is only preferred is so in every tier.
            assert mine[self.leases[lease]].tier in ("", tier)

    # answers

    def compare_match(self, answer: _core.Match, found: Found) -> None:
        by_tier = [answer.device_pages, answer.host_pages, answer.storage_pages]
        assert (answer.pages, by_tier) == (found.pages, found.by_tier)
        assert (answer.reason, answer.offset) == found[2:4], (answer.reason, answer.offset, found)
        if found.lost < 0:
            assert answer.lost_seq == 0
        else:
            assert answer.lost_seq in self.rows_of[found.lost]
        further = (answer.clipped_by, answer.full_pages, answer.branch)
        assert further == found[5:], (further, found)

    def compare_commit(self, answer: _core.Commit, done: dict) -> None:
        counts = (answer.inserted, answer.healed, answer.duplicate)
        assert counts == (done["inserted"], done["healed"], done["duplicate"]), (counts, done)
        assert sum(n for *_, n in answer.runs) == done["runs"]
        said: dict[str, list[int]] = {name: [] for name in done["parts"] if name != FULL}
        for name, _, _, count, position in answer.parts:
            if name != FULL:
                said[name] += range(position, position + count)
        assert said == {name: at for name, at in done["parts"].items() if name != FULL}

    def compare_reserved(self, answer: _core.Reservation, reserved: Reserved) -> None:
        assert answer.pages == reserved.pages == sum(n for *_, n in answer.runs)
        counts = dict.fromkeys(reserved.parts, 0)
        for name, _, _, count, position in answer.parts:
            counts[name] += count
            if isinstance(self.model.families[name], Checkpoints):
                assert set(range(position, position + count)) <= set(reserved.parts[name])
        assert counts == {name: len(at) for name, at in reserved.parts.items()}

    def compare_outcome(self, answer: _core.Outcome, expected: Outcome | None) -> None:
        if expected is None:
            return
        got = (answer.outcome, answer.reason, answer.pages, answer.asked, answer.pending)
        assert got == expected[:5], (got, expected)
        assert (answer.lease > 0) == (expected.lease is not None)

"""One command to the core and to its model, and all that can be seen after it compared."""

from array import array
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pyarrow.ipc
import pytest
from model import Model
from model_records import TIERS, Lock, Move, Path, Refused, Reserved

from runtime import _core

PAGE = 2
NAMESPACE, SECRET = "model", b"secret"


@cache
def digest(path: Path) -> bytes:
    return _core.page_digests(array("I", path), PAGE, NAMESPACE, SECRET)[-1]


class Agreement:
    def start(
        self, capacity: dict[str, int], *, write_through: bool, budget: float, batch: int
    ) -> None:
        self.core = _core.Core(
            engine="e",
            epoch="1",
            namespace=NAMESPACE,
            page_size=PAGE,
            secret=SECRET,
            write_through=write_through,
            pin_share=budget,
            journal=True,
            **capacity,
        )
        self.model = Model(PAGE, capacity, write_through, budget)
        self.log, self.batch = self.core.log(), batch
        self.replica = _core.Replica()
        self.payloads: list[bytes] = []
        self.folded = 0
        self.now = 0
        self.rows_of: dict[int, range] = {}
        self.receipts: dict[int, Lock] = {}
        self.ops: dict[int, Move | Reserved] = {}
        self.leases: dict[int, int] = {}
        self.prompts: list[Path] = [()]
        self.tokens: dict[Lock, Path] = {}
        self.slots: dict[int, bytes] = {}
        self.deferred: set[int] = set()

    def both(
        self, verb: str, *args: Any, model: Callable[[], Any], **options: Any
    ) -> tuple[Any, Any]:
        """Answers of the core and of the model; (None, None) when both refuse alike."""
        self.agreed = False
        self.now += 1
        self.model.now = self.now
        self.model.wanted, self.model.evicted, self.model.completed = [], [], []
        first, before = self.core.seq() + 1, self.core.state_hash()
        try:
            expected = model()
        except Refused as refused:
            with pytest.raises(getattr(_core, refused.args[0])):
                getattr(self.core, verb)(self.now, *args, **options)
            assert self.core.state_hash() == before
            assert self.core.seq() == first - 1
            self.agreed = True
            return None, None
        answer = getattr(self.core, verb)(self.now, *args, **options)
        self.rows_of[self.now] = range(first, self.core.seq() + 1)
        self.compare()
        return answer, expected

    def compare(self) -> None:
        self.compare_moves()
        self.compare_rows()
        self.compare_residents()
        self.compare_reports()
        for receipt, lock in self.receipts.items():
            if lock.open:
                assert self.core.keys(receipt) == [digest(p) for p in self.model.steps(lock.path)]
                assert sum(n for *_, n in self.core.table(receipt)) == self.model.table(lock)
        self.core.check()
        self.agreed = True

    def compare_moves(self) -> None:
        actions = self.core.actions()
        assert [a.kind for a in actions] == [m.kind for m in self.model.wanted]
        for action, move in zip(actions, self.model.wanted, strict=True):
            assert action.keys == [digest(path) for path in move.pages]
            assert action.positions == [len(path) // PAGE - 1 for path in move.pages]
            assert (action.tier_from, action.tier_to) == (move.source, move.target)
            assert action.session == move.session
            assert sum(n for *_, n in action.runs) == action.pages == len(move.pages)
            self.ops[action.op] = move

    def compare_rows(self) -> None:
        """What the log says was evicted, for what reason, in which order; and which hints ended."""
        rows = list(self.drain())
        expected = list(self.model.evicted)
        pressed = [row for row in rows if row["kind"] == "evict" and row["reason"] == "pressure"]
        groups: list[tuple[Any, list[dict]]] = []
        for row in pressed:
            key = (row["node"], row["cause"], row["tier_from"])
            if not groups or groups[-1][0] != key:
                groups.append((key, []))
            groups[-1][1].append(row)
        order = [e for e in expected if e.reason == "pressure"]
        for _, group in groups:
            pages = {e for row in group for e in self.evictions(row, row["score"])}
            assert pages == {
                (e.tier, digest(e.path), e.reason, e.last_use) for e in order[: len(pages)]
            }
            del order[: len(pages)]
        assert not order
        others = [
            e
            for row in rows
            if row["kind"] == "evict" and row["reason"] != "pressure" and row["phase"] != "marked"
            for e in self.evictions(row, None)
        ]
        assert sorted(others) == sorted(
            (e.tier, digest(e.path), e.reason, None) for e in expected if e.reason != "pressure"
        )
        hints = [row for row in rows if row["kind"] == "hint"]
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

    def evictions(self, row: dict, score: int | None) -> list[tuple]:
        slots = range(row["slot_from"], row["slot_from"] + row["pages"])
        return [(row["tier_from"], self.slots[s], row["reason"], score) for s in slots]

    def drain(self) -> Iterator[dict]:
        while message := self.log.drain(self.batch):
            self.payloads.append(message.payload)
            yield from pyarrow.ipc.open_stream(message.payload).read_all().to_pylist()
        assert self.log.dropped() == 0

    def compare_residents(self) -> None:
        for tier in TIERS:
            copies = self.core.resident(tier)
            here = [
                (digest(p), len(p) // PAGE - 1)
                for p in self.model.pages
                if self.model.usable(p, tier)
            ]
            assert sorted((key, position) for *_, position, key in copies) == sorted(here), tier
            assert len({page for _, page, *_ in copies}) == len(copies)
            for owner, _, _, key in copies:
                self.slots[owner & 0xFFFFFFFF] = key

    def compare_reports(self) -> None:
        model = self.model
        for pool in self.core.pools():
            leased = sum(model.leased(p, pool.tier) for p in model.pages)
            fenced, free = model.fenced(pool.tier), model.free(pool.tier)
            assert (pool.fenced, pool.free, pool.leased) == (fenced, free, leased), pool
            assert pool.used + pool.fenced + pool.free == pool.capacity == model.capacity[pool.tier]
        infos = self.core.sessions()
        assert [info.name for info in infos] == sorted(model.sessions)
        for info in infos:
            session = model.sessions[info.name]
            pages = model.steps(session.path)
            by_tier = [sum(t in model.pages[p].here for p in pages) for t in TIERS]
            assert [info.device_pages, info.host_pages, info.storage_pages] == by_tier
            assert (info.pages, info.parent, info.last_use) == (
                len(pages),
                session.parent,
                session.last_use,
            )
            assert info.shared_pages == sum(len(model.owners(p)) > 1 for p in pages)
            mine = {n: x for n, x in model.leases.items() if x.session == info.name}
            for lease, tier, owner, *_ in info.leases:
                same = [n for n, x in mine.items() if (x.tier, x.owner) == (tier, owner)]
                self.leases.setdefault(lease, *same)
            assert {self.leases[n]: rest for n, *rest in info.leases} == {
                n: [x.tier, x.owner, len(x.path) // PAGE, x.expires] for n, x in mine.items()
            }

    def compare_match(self, answer, found) -> None:
        by_tier = [answer.device_pages, answer.host_pages, answer.storage_pages]
        assert (answer.pages, by_tier) == (found.pages, found.by_tier)
        assert (answer.reason, answer.offset) == (found.reason, found.offset)
        if found.lost < 0:
            assert answer.lost_seq == 0
        else:
            assert answer.lost_seq in self.rows_of[found.lost]

    def compare_outcome(self, answer, expected) -> None:
        if expected is None:
            return
        got = (answer.outcome, answer.reason, answer.pages, answer.asked, answer.pending)
        assert got == expected[:5]
        assert (answer.lease > 0) == (expected.lease is not None)

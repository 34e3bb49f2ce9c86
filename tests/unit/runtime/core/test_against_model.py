"""Random commands to the core and to a model of it: answers, copies and evictions agree."""

import os
from array import array

from agreement import PAGE, Agreement, digest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from model_records import DEVICE, HOST, STORAGE, TIERS, Lock, Move, Path, Reserved

from runtime import _core

NAMES = ["s0", "s1", "s2", "s3"]
SOAK = bool(os.environ.get("KVCTL_SOAK"))

names = st.sampled_from([*NAMES[:3] * 4, NAMES[3]])
tiers = st.sampled_from(TIERS)
words = st.sampled_from(
    [(), (0,), (0, 0), (0, 1), (0, 0, 0, 1), (1, 0, 1, 1), (0, 1, 0, 1, 1, 1), (1,) * 8]
)
cuts = st.integers(0, 9)
indexes = st.integers(0, 30)


class CoreAgainstModel(Agreement, RuleBasedStateMachine):
    @initialize(
        device=st.integers(1, 8),
        host=st.integers(0, 8),
        storage=st.integers(0, 12),
        write_through=st.booleans(),
        budget=st.sampled_from([0.25, 0.5, 1.0]),
        batch=st.integers(1, 20),
    )
    def begin(self, device, host, storage, write_through, budget, batch) -> None:
        self.start(
            {DEVICE: device, HOST: host, STORAGE: storage if host else 0},
            write_through=write_through,
            budget=budget,
            batch=batch,
        )
        for name in NAMES[:3]:
            self.both(
                "open_session", name, "", model=lambda name=name: self.model.open_session(name, "")
            )

    # sessions, matching, holding

    @rule(name=names, parent=st.sampled_from(["", *NAMES]))
    def open_session(self, name, parent) -> None:
        self.both("open_session", name, parent, model=lambda: self.model.open_session(name, parent))

    @rule(name=names, sure=st.integers(0, 3))
    def close_session(self, name, sure) -> None:
        if sure:
            return
        answer, expected = self.both(
            "close_session", name, model=lambda: self.model.close_session(name)
        )
        assert answer == expected

    def prompt(self, index: int, cut: int, more: list[int]) -> Path:
        """Something said before, cut short, continued."""
        known = self.prompts[index % len(self.prompts)]
        tokens = (*known[: len(known) - cut], *more)[:16]
        if tokens not in self.prompts:
            self.prompts.append(tokens)
        return tokens

    @rule(name=names, index=indexes, cut=cuts, more=words)
    def look(self, name, index, cut, more) -> None:
        tokens, before = self.prompt(index, cut, more), self.core.state_hash()
        answer, found = self.both(
            "match", name, "r", list(tokens), model=lambda: self.model.match(name, tokens)
        )
        if found:
            self.compare_match(answer, found)
            assert answer.receipt == 0
            assert self.core.state_hash() == before

    @rule(name=names, index=indexes, cut=cuts, more=words, grid=st.integers(1, 3))
    def acquire(self, name, index, cut, more, grid) -> None:
        self.arrive(name, self.prompt(index, cut, more), grid)

    def arrive(self, name: str, tokens: Path, grid: int) -> Lock | None:
        answer, expected = self.both(
            "acquire",
            name,
            "r",
            array("I", tokens),
            grid=grid,
            model=lambda: self.model.acquire(name, tokens, grid),
        )
        if not expected:
            return None
        found, lock = expected
        self.compare_match(answer, found)
        self.receipts[answer.receipt], self.tokens[lock] = lock, tokens
        # The lock came after the comparison that `both` makes.
        assert self.core.keys(answer.receipt) == [digest(p) for p in self.model.steps(lock.path)]
        return lock

    def receipt(self, index: int) -> int:
        return list(self.receipts)[-1 - index % len(self.receipts)]

    @precondition(lambda self: self.receipts)
    @rule(index=indexes)
    def release(self, index) -> None:
        """Also of what was released before."""
        receipt = self.receipt(index)
        self.both("release", receipt, model=lambda: self.model.release(self.receipts[receipt]))

    @precondition(lambda self: self.receipts)
    @rule(index=indexes)
    def restore(self, index) -> None:
        receipt = self.receipt(index)
        answer, up = self.both(
            "restore", receipt, model=lambda: self.model.restore(self.receipts[receipt])
        )
        if up:
            assert (answer.ready, answer.pending, len(answer.ops)) == up

    # computing

    @precondition(lambda self: self.receipts)
    @rule(index=indexes, pages=st.integers(0, 9))
    def reserve(self, index, pages) -> None:
        self.reserve_for(self.receipt(index), pages)

    def reserve_for(self, receipt: int, pages: int) -> int | None:
        lock = self.receipts[receipt]
        answer, reserved = self.both(
            "reserve", receipt, pages, model=lambda: self.model.reserve(lock, pages)
        )
        if reserved is None:
            return None
        assert answer.pages == reserved.pages == sum(n for *_, n in answer.runs)
        self.ops[answer.op] = reserved
        return answer.op

    def reservations(self) -> list[int]:
        return [op for op, what in self.ops.items() if isinstance(what, Reserved)]

    @precondition(lambda self: self.reservations())
    @rule(index=indexes, start=st.integers(0, 3), short=st.integers(-1, 2), more=words)
    def commit(self, index, start, short, more) -> None:
        """Where the lock ends, or before, or (wrongly) after; also of what has ended."""
        ops = self.reservations()
        op = ops[-1 - index % len(ops)]
        reserved = self.ops[op]
        lock = reserved.lock
        start = len(lock.path) // PAGE - start + 1 if start else len(lock.path) // PAGE
        tokens = (*self.tokens[lock], *more)
        pages = min(reserved.pages - short, len(tokens) // PAGE - start)
        if start >= 0 and pages >= 0:
            self.commit_op(op, tokens, start, pages)

    @precondition(lambda self: self.reservations())
    @rule(index=indexes, prompt=indexes)
    def commit_others(self, index, prompt) -> None:
        """Tokens of another path."""
        ops = self.reservations()
        op = ops[-1 - index % len(ops)]
        tokens = self.prompts[prompt % len(self.prompts)]
        start = min(len(self.ops[op].lock.path), len(tokens)) // PAGE
        self.commit_op(op, tokens, start, min(self.ops[op].pages, len(tokens) // PAGE - start))

    def commit_op(self, op: int, tokens: Path, start: int, pages: int) -> None:
        answer, done = self.both(
            "commit",
            op,
            array("I", tokens),
            start,
            pages,
            model=lambda: self.model.commit(self.ops[op], tokens, start, pages),
        )
        if done:
            assert {
                "inserted": answer.inserted,
                "healed": answer.healed,
                "duplicate": answer.duplicate,
                "runs": sum(n for *_, n in answer.runs),
            } == done

    @rule(name=names, index=indexes, cut=cuts, more=words)
    def turn(self, name, index, cut, more) -> None:
        """A whole request and all its moves, so that short runs get far."""
        if self.serve(name, self.prompt(index, cut, more)):
            self.release(0)
            self.complete_many(9)

    @rule(name=names, index=indexes, cut=cuts, more=words)
    def turn_that_holds(self, name, index, cut, more) -> None:
        self.serve(name, self.prompt(index, cut, more))

    @rule(name=names, more=words)
    def next_turn(self, name, more) -> None:
        session = self.model.sessions.get(name)
        if session and self.serve(name, (*session.path, *more)[:16], wait=True):
            self.release(0)

    def serve(self, name: str, tokens: Path, wait: bool = False) -> bool:
        lock = self.arrive(name, tokens, 1)
        if lock is None:
            return False
        start = len(lock.path) // PAGE
        self.restore(0)
        if wait:
            self.complete_many(9)
            self.restore(0)
        op = self.reserve_for(self.receipt(0), len(tokens) // PAGE - start)
        self.commit_op(op, tokens, start, self.ops[op].pages)
        return True

    # moving

    def moving(self) -> list[int]:
        return [op for op, what in self.ops.items() if isinstance(what, Move)]

    @precondition(lambda self: self.moving())
    @rule(
        index=indexes,
        results=st.lists(st.integers(0, 2), min_size=12, max_size=12),
        late=st.booleans(),
    )
    def complete_badly(self, index, results, late) -> None:
        self.complete(index, results, late)

    @precondition(lambda self: self.moving())
    @rule(index=indexes)
    def complete_well(self, index) -> None:
        self.complete(index, [1] * 12, False)

    @precondition(lambda self: self.model.moves)
    @rule(many=st.integers(1, 9))
    def complete_many(self, many) -> None:
        for _ in range(many):
            self.complete(0, [1] * 12, False)

    def complete(self, index: int, results: list[int], late: bool) -> None:
        """Mostly what is open; `late`: what has ended."""
        ops = [op for op in self.moving() if (self.ops[op] in self.model.moves) != late]
        if not ops:
            return
        op = ops[index % len(ops)]
        answers = bytes(results[: len(self.ops[op].pages)])
        self.both("complete", op, answers, model=lambda: self.model.complete(self.ops[op], answers))

    @precondition(lambda self: self.ops)
    @rule(index=indexes)
    def abort(self, index) -> None:
        op = list(self.ops)[-1 - index % len(self.ops)]
        self.both("abort", op, model=lambda: self.model.abort(self.ops[op]))

    @rule(tier=tiers, index=indexes)
    def damage(self, tier, index) -> None:
        copies = self.core.resident(tier)
        if copies:
            owner, _, _, key = copies[index % len(copies)]
            path = next(p for p in self.model.pages if digest(p) == key)
            generation, slot = owner >> 32, owner & 0xFFFFFFFF
            answer, _ = self.both(
                "damaged", tier, slot, generation, model=lambda: self.model.damaged(path, tier)
            )
            assert answer is True

    # hints and time

    @rule(name=names, tier=tiers, ttl=st.integers(0, 30), owner=st.sampled_from(["o", "p"]))
    def pin(self, name, tier, ttl, owner) -> None:
        answer, expected = self.both(
            "pin", name, tier, ttl, owner, model=lambda: self.model.pin(name, tier, ttl, owner)
        )
        self.compare_outcome(answer, expected)
        if expected and expected.lease is not None:
            assert self.leases[answer.lease] == expected.lease
            assert list(self.leases.values()).count(expected.lease) == 1

    @precondition(lambda self: self.leases)
    @rule(index=indexes)
    def unpin(self, index) -> None:
        lease = list(self.leases)[index % len(self.leases)]
        self.both("unpin", lease, model=lambda: self.model.unpin(self.leases[lease]))

    @rule(name=names, verb=st.sampled_from(["demote", "prefetch", "flush"]))
    def hint(self, name, verb) -> None:
        answer, expected = self.both(verb, name, "o", model=lambda: getattr(self.model, verb)(name))
        self.compare_outcome(answer, expected)

    @rule(wait=st.integers(0, 20))
    def tick(self, wait) -> None:
        self.now += wait
        answer, expired = self.both("tick", model=self.model.tick)
        assert answer == expired

    # the log

    @rule(batch=st.integers(1, 20))
    def fold(self, batch) -> None:
        self.batch = batch
        for payload in self.payloads[self.folded :]:
            self.replica.fold(payload)
        self.folded = len(self.payloads)
        assert self.replica.state_hash() == self.core.state_hash()
        assert self.replica.seq() == self.core.seq()
        self.replica.check()

    def teardown(self) -> None:
        if not getattr(self, "agreed", False):
            return
        self.fold(1)
        again = _core.Core.replay(self.core.journal())
        assert (again.state_hash(), again.seq()) == (self.core.state_hash(), self.core.seq())


TestCoreAgainstModel = CoreAgainstModel.TestCase
TestCoreAgainstModel.settings = settings(
    max_examples=600 if SOAK else 200,
    stateful_step_count=120 if SOAK else 80,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

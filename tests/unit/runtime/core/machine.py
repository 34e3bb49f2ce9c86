"""What random runs do: every command, mostly as an engine gives it and sometimes not."""

from agreement import Agreement
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from model.records import TIERS, Lock, Move, Reserved, length

from runtime import _core

NAMES = ["s0", "s1", "s2", "s3"]

names = st.sampled_from([*NAMES[:3] * 4, NAMES[3]])
tiers = st.sampled_from(TIERS)
words = st.sampled_from(
    [(), (0,), (0, 0), (0, 1), (0, 0, 0, 1), (1, 0, 1, 1), (0, 1, 0, 1, 1, 1), (1,) * 8]
)
cuts = st.integers(0, 9)
indexes = st.integers(0, 30)
Text = tuple[int, ...]


class Machine(Agreement, RuleBasedStateMachine):
    def open_sessions(self) -> None:
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

    def prompt(self, index: int, cut: int, more: Text) -> Text:
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
            "match",
            name,
            "r",
            list(self.words(tokens)),
            model=lambda: self.model.look(name, self.words(tokens)),
        )
        if found:
            self.compare_match(answer, found)
            assert answer.receipt == 0
            assert self.core.state_hash() == before

    @rule(name=names, index=indexes, cut=cuts, more=words, grid=st.integers(1, 3))
    def acquire(self, name, index, cut, more, grid) -> None:
        self.arrive(name, self.prompt(index, cut, more), grid)

    def arrive(
        self, name: str, tokens: Text, grid: int, skip: int = 0, namespace: int = 0
    ) -> Lock | None:
        """With `skip`, the session's own path stands for the first pages of the tokens."""
        said = self.words(tokens, skip, namespace)
        self.path(tokens, namespace)
        answer, expected = self.both(
            "acquire",
            name,
            "r",
            self.buffer(said),
            grid=grid,
            **self.of(skip=skip, namespace=namespace),
            model=lambda: self.model.acquire(name, said, grid, skip, namespace),
        )
        if not expected:
            return None
        found, lock = expected
        self.compare_match(answer, found)
        self.receipts[answer.receipt], self.tokens[lock] = lock, tokens
        # The lock came after the comparison that `both` makes.
        self.compare_lock(answer.receipt, lock)
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
    def hold(self, index) -> None:
        receipt = self.receipt(index)
        answer, lock = self.both(
            "hold", receipt, model=lambda: self.model.hold_again(self.receipts[receipt])
        )
        if lock:
            self.receipts[answer], self.tokens[lock] = lock, self.tokens[self.receipts[receipt]]
            self.compare_lock(answer, lock)

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

    def reserve_for(self, receipt: int, pages: int, start: int | None = None) -> int | None:
        lock = self.receipts[receipt]
        answer, reserved = self.both(
            "reserve",
            receipt,
            pages,
            **({} if start is None else {"start": start}),
            model=lambda: self.model.reserve(lock, pages, start),
        )
        if reserved is None:
            return None
        self.compare_reserved(answer, reserved)
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
        start = length(lock.path) - start + 1 if start else length(lock.path)
        tokens = (*self.tokens[lock], *more)
        pages = min(reserved.pages - short, self.pages(tokens) - start)
        if start >= 0 and pages >= 0:
            self.commit_op(op, tokens, start, pages)

    @precondition(lambda self: self.reservations())
    @rule(index=indexes, prompt=indexes)
    def commit_others(self, index, prompt) -> None:
        """Tokens of another path."""
        ops = self.reservations()
        op = ops[-1 - index % len(ops)]
        tokens = self.prompts[prompt % len(self.prompts)]
        start = min(length(self.ops[op].lock.path), self.pages(tokens))
        self.commit_op(op, tokens, start, min(self.ops[op].pages, self.pages(tokens) - start))

    def commit_op(self, op: int, tokens: Text, start: int, pages: int, skip: int = 0) -> None:
        namespace = self.ops[op].lock.path[0]
        said = self.words(tokens, skip, namespace)
        self.path(tokens, namespace)
        answer, done = self.both(
            "commit",
            op,
            self.buffer(said),
            start,
            pages,
            **self.of(skip=skip),
            model=lambda: self.model.commit(self.ops[op], said, start, pages, skip),
        )
        if done:
            self.compare_commit(answer, done)

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
        if session and self.serve(name, (*self.text(session.path), *more)[:16], wait=True):
            self.release(0)

    def serve(
        self, name: str, tokens: Text, wait: bool = False, skip: int = 0, namespace: int = 0
    ) -> bool:
        lock = self.arrive(name, tokens, 1, skip, namespace)
        if lock is None:
            return False
        start = length(lock.path)
        self.restore(0)
        if wait:
            self.complete_many(9)
            self.restore(0)
        op = self.reserve_for(self.receipt(0), self.pages(tokens) - start)
        self.commit_op(op, tokens, start, self.ops[op].pages, min(skip, start))
        return True

    # moving

    def moving(self) -> list[int]:
        return [op for op, what in self.ops.items() if isinstance(what, Move)]

    @precondition(lambda self: self.moving())
    @rule(
        index=indexes,
        results=st.lists(st.integers(0, 2), min_size=24, max_size=24),
        late=st.booleans(),
    )
    def complete_badly(self, index, results, late) -> None:
        self.complete(index, results, late)

    @precondition(lambda self: self.moving())
    @rule(index=indexes)
    def complete_well(self, index) -> None:
        self.complete(index, [1] * 24, False)

    @precondition(lambda self: self.model.moves)
    @rule(many=st.integers(1, 9))
    def complete_many(self, many) -> None:
        for _ in range(many):
            self.complete(0, [1] * 24, False)

    def complete(self, index: int, results: list[int], late: bool) -> None:
        """Mostly what is open; `late`: what has ended."""
        ops = [op for op in self.moving() if (self.ops[op] in self.model.moves) != late]
        if not ops:
            return
        op = ops[index % len(ops)]
        answers = bytes(results[: len(self.ops[op].slots)])
        self.both("complete", op, answers, model=lambda: self.model.complete(self.ops[op], answers))

    @precondition(lambda self: self.ops)
    @rule(index=indexes)
    def abort(self, index) -> None:
        op = list(self.ops)[-1 - index % len(self.ops)]
        self.both("abort", op, model=lambda: self.model.abort(self.ops[op]))

    @rule(tier=tiers, pages=st.integers(0, 4), which=indexes)
    def evict(self, tier, pages, which) -> None:
        component = list(self.model.families)[which % len(self.model.families)]
        answer, went = self.both(
            "evict",
            tier,
            pages,
            **self.of(component=component),
            model=lambda: self.model.evict(tier, pages, component),
        )
        assert answer == went

    @rule(tier=tiers, index=indexes)
    def damage(self, tier, index) -> None:
        copies = self.core.resident(tier)
        if copies:
            owner, *_ = copies[index % len(copies)]
            generation, slot = owner >> 32, owner & 0xFFFFFFFF
            model = self.slots[slot]
            answer, _ = self.both(
                "damaged", tier, slot, generation, model=lambda: self.model.damaged(model, tier)
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

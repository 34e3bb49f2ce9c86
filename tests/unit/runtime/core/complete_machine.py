"""The commands that came with components: namespaces, cursors, preferences, an observed device."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from machine import NAMES, Machine, Text, cuts, indexes, names, tiers, words
from model.records import FULL, Lock, length

BLOCKS = 12
ttls = st.integers(0, 30)
owners = st.sampled_from(["o", "p"])
spaces = st.sampled_from(["n1", "n2", "n3"])


class CompleteMachine(Machine):
    @property
    def observed(self) -> bool:
        return self.model.config.observed_device

    # sessions and namespaces

    @rule(
        name=names, parent=st.sampled_from(["", *NAMES]), group=owners, priority=st.integers(0, 3)
    )
    def open_in_group(self, name, parent, group, priority) -> None:
        self.both(
            "open_session",
            name,
            parent,
            group=group,
            priority=priority,
            model=lambda: self.model.open_session(name, parent, group, priority),
        )

    @rule(group=owners, sure=st.integers(0, 3))
    def close_group(self, group, sure) -> None:
        if not sure:
            answer, closed = self.both(
                "close_group", group, model=lambda: self.model.close_group(group)
            )
            assert answer == closed

    @rule(name=names, wait=st.integers(-9, 50))
    def expect(self, name, wait) -> None:
        at = self.now + wait
        self.both("expect", name, at, model=lambda: self.model.expect(name, at))

    @rule(name=spaces)
    def open_namespace(self, name) -> None:
        answer, number = self.both(
            "open_namespace", name, model=lambda: self.model.open_namespace(name)
        )
        assert answer == number

    @rule(number=st.integers(0, 4), sure=st.integers(0, 5))
    def retire(self, number, sure) -> None:
        if not sure:
            answer, dropped = self.both("retire", number, model=lambda: self.model.retire(number))
            assert answer == dropped

    @rule(name=names, index=indexes, cut=cuts, more=words, number=st.integers(0, 3))
    def turn_in_namespace(self, name, index, cut, more, number) -> None:
        if self.serve(name, self.prompt(index, cut, more), namespace=number):
            self.release(0)

    # cursors

    @rule(name=names, more=words, back=st.integers(-1, 3), number=st.integers(0, 1))
    def turn_from_cursor(self, name, more, back, number) -> None:
        """The session's own path, of which only the last pages are said; or more than it has."""
        session = self.model.sessions.get(name)
        if session is None:
            return
        skip = max(0, length(session.path) - back)
        tokens = (*self.text(session.path), *more)[:16]
        if back < 0 or (session.path and session.path[0] != number):
            self.arrive(name, tokens, 1, skip, number)
        elif self.serve(name, tokens, skip=skip, namespace=number):
            self.release(0)

    @rule(name=names, more=words, back=st.integers(0, 3))
    def look_from_cursor(self, name, more, back) -> None:
        session = self.model.sessions.get(name)
        if session is None:
            return
        skip = max(0, length(session.path) - back)
        said = self.words((*self.text(session.path), *more)[:16], skip)
        answer, found = self.both(
            "match",
            name,
            "r",
            self.buffer(said),
            **self.of(skip=skip),
            model=lambda: self.model.look(name, said, skip),
        )
        if found:
            self.compare_match(answer, found)

    @precondition(lambda self: self.receipts)
    @rule(index=indexes, pages=st.integers(0, 5), back=st.integers(-1, 3))
    def reserve_from(self, index, pages, back) -> None:
        receipt = self.receipt(index)
        start = length(self.receipts[receipt].path) - back
        if start >= 0:
            self.reserve_for(receipt, pages, start)

    @precondition(lambda self: self.reservations())
    @rule(index=indexes, back=st.integers(-1, 3), more=words)
    def commit_from_cursor(self, index, back, more) -> None:
        ops = self.reservations()
        op = ops[-1 - index % len(ops)]
        reserved = self.ops[op]
        start = length(reserved.lock.path)
        tokens = (*self.tokens[reserved.lock], *more)
        pages = min(reserved.pages, self.pages(tokens) - start)
        if pages >= 0:
            self.commit_op(op, tokens, start, pages, max(0, start - back))

    # preferences

    @rule(name=names, ttl=ttls, owner=owners)
    def retain(self, name, ttl, owner) -> None:
        answer, expected = self.both(
            "retain", name, ttl, owner, model=lambda: self.model.retain(name, ttl, owner)
        )
        self.compare_outcome(answer, expected)

    @rule(name=names, forks=st.integers(0, 3), ttl=ttls, owner=owners)
    def share(self, name, forks, ttl, owner) -> None:
        answer, expected = self.both(
            "share",
            name,
            forks,
            ttl,
            owner,
            model=lambda: self.model.share(name, forks, ttl, owner),
        )
        self.compare_outcome(answer, expected)

    @rule(name=names, other=names, forks=st.integers(0, 2), more=words)
    def fork(self, name, other, forks, more) -> None:
        """A session spawned by another goes on from there; the share of that waits for `forks`."""
        parent = self.model.sessions.get(name)
        if parent is None or name == other:
            return
        if forks:
            self.share(name, forks, 500, "o")
        self.close_session(other, 0)
        self.open_session(other, name)
        tokens = (*self.text(parent.path), *more)[:16]
        if self.serve(other, tokens, namespace=parent.path[0] if parent.path else 0):
            self.release(0)

    @rule(name=names, others=st.lists(names, min_size=1, max_size=3), more=words)
    def retained_among_others(self, name, others, more) -> None:
        """What is preferred now was used before everything else."""
        self.retain(name, 500, "o")
        for other in others:
            if other != name:
                self.turn(other, 0, 0, more)

    # an observed device

    def reserve_for(self, receipt: int, pages: int, start: int | None = None) -> int | None:
        """Of an engine that owns its device nothing can be reserved."""
        return super().reserve_for(receipt, pages, start)

    def serve(
        self, name: str, tokens: Text, wait: bool = False, skip: int = 0, namespace: int = 0
    ) -> bool:
        if not self.observed:
            return super().serve(name, tokens, wait, skip, namespace)
        lock = self.arrive(name, tokens, 1, skip, namespace)
        if lock is None:
            return False
        start = length(lock.path)
        self.restore_into(0, [b for b in range(BLOCKS) if b not in self.blocks()][:3])
        blocks = [b for b in range(BLOCKS) if b not in self.blocks()]
        self.observe_for(lock, tokens, start, blocks[: self.pages(tokens) - start], FULL)
        return True

    def blocks(self) -> set[int]:
        """What the engine has in use: it holds something, or is being loaded."""
        loading = {block for move in self.model.moves for block in move.blocks.values()}
        return loading | {s.block for s in self.model.slots[FULL].values() if s.block is not None}

    @precondition(lambda self: self.receipts and self.observed)
    @rule(
        index=indexes,
        back=st.integers(-1, 4),
        blocks=st.lists(st.integers(0, BLOCKS), max_size=4),
        more=words,
        component=st.sampled_from(["full", "swa"]),
    )
    def observe(self, index, back, blocks, more, component) -> None:
        lock = self.receipts[self.receipt(index)]
        start = length(lock.path) - back
        tokens = (*self.tokens[lock], *more)
        if component in self.model.families and start >= 0:
            room = max(0, self.pages(tokens) - start)
            self.observe_for(lock, tokens, start, blocks[:room], component)

    def observe_for(
        self, lock: Lock, tokens: Text, start: int, blocks: list[int], component: str
    ) -> None:
        receipt = next(number for number, other in self.receipts.items() if other is lock)
        said = self.words(tokens, namespace=lock.path[0])
        self.path(tokens, lock.path[0])
        answer, done = self.both(
            "observe",
            receipt,
            self.buffer(said),
            start,
            blocks,
            **self.of(component=component),
            model=lambda: self.model.observe(lock, said, start, blocks, 0, component),
        )
        if done:
            self.compare_commit(answer, done)

    @precondition(lambda self: self.observed)
    @rule(
        blocks=st.lists(st.integers(0, BLOCKS), max_size=4),
        component=st.sampled_from(["full", "swa"]),
    )
    def forget(self, blocks, component) -> None:
        if component in self.model.families:
            answer, forgotten = self.both(
                "forget",
                blocks,
                **self.of(component=component),
                model=lambda: self.model.forget(blocks, component),
            )
            assert answer == forgotten

    @precondition(lambda self: self.receipts)
    @rule(index=indexes, blocks=st.lists(st.integers(0, BLOCKS), max_size=6, unique=True))
    def restore_into(self, index, blocks) -> None:
        receipt = self.receipt(index)
        answer, up = self.both(
            "restore",
            receipt,
            into=blocks,
            model=lambda: self.model.restore(self.receipts[receipt], blocks),
        )
        if up:
            assert (answer.ready, answer.pending, len(answer.ops)) == up

    # what full alone does not have

    @rule(index=indexes, tier=tiers)
    def damage_component(self, index, tier) -> None:
        found = [
            (number, slot)
            for number, slot in self.slots.items()
            if slot.component != FULL and slot.usable(tier)
        ]
        live = [(n, s) for n, s in found if self.model.slots[s.component].get(s.path) is s]
        if live:
            number, slot = live[index % len(live)]
            copies = self.core.resident(tier, component=slot.component)
            owner = next(owner for owner, *_ in copies if owner & 0xFFFFFFFF == number)
            self.both(
                "damaged",
                tier,
                number,
                owner >> 32,
                model=lambda: self.model.damaged(slot, tier),
            )

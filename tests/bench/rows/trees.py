"""Our tree beside SGLang's, over its Rust core and over its Python core, in one process.

Each group loads all three with the same SESSIONS of 32,768 tokens, which share four prefixes of
4,096, then measures one operation after the other, the three trees in turns. KV events are on
everywhere; what each verb holds is said in `peers`. Times are of the call alone: garbage collection
is off meanwhile, and events are drained between. A measurement is of a batch of calls in a row, as
a scheduler makes them in one step, each for another session: the code is in the near caches, the
sessions' paths are not. Rows that say "alone" are of one call at a time after the other trees have
run: nothing is near, not even Python's own code. Evictions come before inserts, so that these find
memory that was used before, as in a cache that is full.

SGLang drops whole leaves, which may be more than was asked for: its eviction is scaled to 32,768
tokens. A lock is one more on a path that was found and is locked already, as SGLang's is on a node
that was found.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle

import numpy as np

from tests.bench.peers.ours import OurTree
from tests.bench.peers.sglang import CORES, Prompt, SglangTree
from tests.bench.report import Goal, Row, alone, compare, rated, timed

SESSIONS = {64: 1_000, 16: 1_000, 1: 200}
"""Page size to sessions: with events on, SGLang's trees take 0.1 s and megabytes a session at 1."""
TOKENS, SHARED, PREFIXES, TURN = 32 << 10, 4 << 10, 4, 512
VOCABULARY = 50_000
REPEAT = 15
BATCHES = {64: 32, 16: 32, 1: 4}
"""Calls in a row by page size: what a step of a scheduler serves; at 1 there are fewer sessions."""
EVICTIONS = 2
"""In a row: of more, SGLang's take longer each, and a step seldom needs room for more."""
BESIDE, BESIDE_REPEAT = 4, 9
"""Inserts in a row while a thread drains the log: together they are about one turn of it."""

GOALS = {"insert": 3, "turn": 5, "match": 3, "cursor": 20, "lock": 8, "evict": 8}
"""Times faster, at pages 64 and 16. At page 1: not slower."""

Call = Callable[[], object]
Calls = dict[str, Call]
"""By tree: the same operation on the same session."""


def rows() -> Iterator[Row]:
    for page in SESSIONS:
        yield from Forest(page).rows()


class Forest:
    """The three trees with the same sessions in them."""

    def __init__(self, page: int) -> None:
        self.page = page
        self._rng = np.random.default_rng(page)
        self._prefixes = [self._tokens(SHARED) for _ in range(PREFIXES)]
        self._texts: list[np.ndarray] = []
        self._held: list[int] = []
        self._keys: dict[str, list[Prompt]] = {backend: [] for backend in CORES}
        self.batch = BATCHES[page]
        inserts = SESSIONS[page] + REPEAT * self.batch + 2 * BESIDE * BESIDE_REPEAT + 1
        own = inserts * (TOKENS - SHARED) + 2 * REPEAT * self.batch * TURN
        self.ours = OurTree(page, PREFIXES * SHARED + own)
        self.theirs = {backend: SglangTree(backend, page) for backend in CORES}
        for _ in range(SESSIONS[page]):
            session = self._new_session()
            self.ours.insert(f"s{session}", self._texts[session])
            for backend, tree in self.theirs.items():
                tree.insert(self._keys[backend][session], 0)
            self._drain()
        gc.collect()
        order = self._rng.permutation(SESSIONS[page]).tolist()
        self._any, self._unchanged = cycle(order), iter(order)

    def rows(self) -> Iterator[Row]:
        yield from self._compared("match of the whole 32K key", "match", self._match)
        yield from self._compared("match of 512 new by cursor", "cursor", self._match_new)
        yield from self._compared("lock + unlock of a 32K path", "lock", self._lock)
        yield from self._compared("match of 512 new by cursor, alone", "", self._match_new, 1)
        yield from self._compared("lock + unlock of a 32K path, alone", "", self._lock, 1)
        yield from self._compared("turn of 512 on 32K, whole key", "turn", self._turn)
        yield from self._compared("turn of 512 on 32K, by cursor", "turn", self._turn_from)
        yield from self._compared("evict 32,768 tokens", "evict", self._evicted, EVICTIONS)
        yield from self._compared("insert of 32K", "insert", self._insert)
        yield from self._events()

    def _compared(
        self, title: str, goal: str, case: Callable[[], Calls], batch: int = 0
    ) -> Iterator[Row]:
        """goal: its name, empty for none. batch: calls in a row; 0 for the usual number."""
        batch = batch or self.batch
        measured: list[dict[str, float]] = []
        for turn in range(REPEAT):
            cases = [case() for _ in range(batch)]
            trees = list(cases[0])
            first = turn % len(trees)
            times, results = {}, {}
            for tree in trees[first:] + trees[:first]:
                times[tree], results[tree] = self._timed([calls[tree] for calls in cases])
            if goal == "evict":
                times = {tree: times[tree] * batch * TOKENS / sum(results[tree]) for tree in trees}
            else:
                assert all(results[tree] == results["ours"] for tree in trees), results
            measured.append(times)
            while self._held:
                self.ours.release(self._held.pop())
            self._drain()
        wanted = Goal(">=", GOALS[goal] if self.page > 1 else 1) if goal else None
        for backend in CORES:
            pairs = [(times["ours"], times[backend]) for times in measured]
            row = f"{title}, page {self.page} | SGLang {backend}"
            yield rated(row, "us", pairs, goal=wanted, speedup=True)

    @staticmethod
    def _timed(calls: list[Call]) -> tuple[float, list]:
        """Microseconds a call, and what each returned."""
        results: list = []
        took, _ = timed(lambda: results.extend(call() for call in calls))
        return took / len(calls), results

    def _match(self) -> Calls:
        session = next(self._any)
        text = self._texts[session]
        return self._case(
            lambda: self.ours.match(f"s{session}", text),
            lambda backend, tree: partial(tree.match, self._keys[backend][session]),
        )

    def _match_new(self) -> Calls:
        session = next(self._any)
        text, keys = self._longer(session)
        skip = len(self._texts[session]) // self.page
        new = self.ours.prompt(text[skip * self.page :])
        return self._case(
            lambda: self.ours.match_from(f"s{session}", new, skip),
            lambda backend, tree: partial(tree.match, keys[backend]),
        )

    def _lock(self) -> Calls:
        session = next(self._any)
        receipt = self.ours.hold(f"s{session}", len(self._texts[session]) // self.page)
        self._held.append(receipt)
        return self._case(
            partial(self.ours.lock_and_unlock, receipt),
            lambda backend, tree: partial(
                tree.lock_and_unlock, tree.node(self._keys[backend][session])
            ),
        )

    def _turn(self) -> Calls:
        session = next(self._unchanged)
        text, keys = self._longer(session)
        return self._case(
            lambda: self.ours.insert(f"s{session}", text),
            lambda backend, tree: partial(tree.turn, keys[backend]),
        )

    def _turn_from(self) -> Calls:
        session = next(self._unchanged)
        text, keys = self._longer(session)
        skip = len(self._texts[session]) // self.page
        new = self.ours.prompt(text[skip * self.page :])
        return self._case(
            lambda: self.ours.turn_from(f"s{session}", new, skip),
            lambda backend, tree: partial(tree.turn, keys[backend]),
        )

    def _insert(self) -> Calls:
        session = self._new_session()
        return self._case(
            lambda: self.ours.insert(f"s{session}", self._texts[session]),
            lambda backend, tree: partial(tree.insert, self._keys[backend][session], SHARED),
        )

    def _evicted(self) -> Calls:
        return self._case(
            partial(self.ours.evict, TOKENS),
            lambda backend, tree: partial(tree.evict, TOKENS),
        )

    def _events(self) -> Iterator[Row]:
        """What the publisher's thread costs inserts, and how many rows one is."""

        def inserts() -> float:
            sessions = [self._new_session() for _ in range(BESIDE)]

            def call() -> None:
                for session in sessions:
                    self.ours.insert(f"s{session}", self._texts[session])

            return timed(call)[0] / BESIDE

        def beside() -> float:
            with self.ours.drained_by_a_thread():
                return inserts()

        title = f"insert of 32K, page {self.page}, beside a thread that drains | alone"
        yield compare(title, "us", beside, inserts, repeat=BESIDE_REPEAT)
        self.ours.drain()
        yield alone(f"rows of an insert of 32K, page {self.page}", "rows", self._rows, repeat=1)

    def _rows(self) -> float:
        session = self._new_session()
        before = self.ours.core.seq()
        self.ours.insert(f"s{session}", self._texts[session])
        return self.ours.core.seq() - before

    def _case(self, ours: Call, theirs: Callable[[str, SglangTree], Call]) -> Calls:
        return {"ours": ours} | {name: theirs(name, tree) for name, tree in self.theirs.items()}

    def _drain(self) -> None:
        self.ours.drain()
        for tree in self.theirs.values():
            tree.drain()

    def _new_session(self) -> int:
        """A text that nobody has yet, in everybody's form."""
        session = len(self._texts)
        text = np.concatenate([self._prefixes[session % PREFIXES], self._tokens(TOKENS - SHARED)])
        self._texts.append(self.ours.prompt(text))
        for backend, tree in self.theirs.items():
            self._keys[backend].append(tree.prompt(text))
        self.ours.open(f"s{session}")
        return session

    def _longer(self, session: int) -> tuple[np.ndarray, dict[str, Prompt]]:
        text = np.concatenate([self._texts[session], self._tokens(TURN)])
        return self.ours.prompt(text), {b: t.prompt(text) for b, t in self.theirs.items()}

    def _tokens(self, count: int) -> np.ndarray:
        return self._rng.integers(0, VOCABULARY, count).astype(np.uint32)

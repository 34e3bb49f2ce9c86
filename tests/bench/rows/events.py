"""What the rows of the log cost the engine's thread: a core that keeps them beside one that does
not.

The same operations on the same texts in two cores, in turns. Rows are decided and applied in both:
without a log they are not kept, and the state's hash is not asked for with each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from tests.bench.peers.ours import OurTree
from tests.bench.report import Goal, Row, rated

PAGE, TOKENS, SESSIONS = 64, 32 << 10, 200
REPEAT, BATCH = 41, 4
SHARE = Goal("<=", 1.1)
ROW_NS = 50.0


def rows() -> Iterator[Row]:
    rng = np.random.default_rng(3)
    texts = [rng.integers(0, 50_000, TOKENS).astype(np.uint32) for _ in range(SESSIONS)]
    with_log, without = (OurTree(PAGE, (SESSIONS + 1) * TOKENS, log_rows=n) for n in (1 << 18, 0))
    for tree in (with_log, without):
        for session, text in enumerate(texts):
            tree.open(f"s{session}")
            tree.insert(f"s{session}", text)
        tree.drain()
    now = iter(range(1 << 40, 1 << 41))

    def match(tree: OurTree, session: int) -> None:
        tree.match(f"s{session}", texts[session])

    def evict(tree: OurTree, session: int) -> None:
        tree.evict(TOKENS)

    def insert(tree: OurTree, session: int) -> None:
        tree.insert(f"s{session}", texts[session])

    def note(tree: OurTree, session: int) -> None:
        tree.core.note(next(now), "request", "arrival", session="s", request="r", tokens=7)

    for name, operation in (("match", match), ("evict", evict), ("insert", insert)):
        pairs = measured(with_log, without, operation, BATCH)
        yield rated(f"{name} of 32K with rows | without", "us", pairs, goal=SHARE)
    pairs = measured(with_log, without, note, 1000)
    rows_ns = [(1e3 * (kept - told), ROW_NS) for kept, told in pairs]
    yield rated("one row, kept | budget", "ns", rows_ns, goal=Goal("<=", 1))


def measured(
    kept: OurTree, told: OurTree, operation: Callable[[OurTree, int], None], batch: int
) -> list[tuple[float, float]]:
    """Microseconds an operation, in pairs."""
    pairs = []
    for turn in range(REPEAT):
        took = {}
        for tree in (kept, told) if turn % 2 else (told, kept):
            started = time.perf_counter()
            for i in range(batch):
                operation(tree, (turn * batch + i) % SESSIONS)
            took[id(tree)] = 1e6 * (time.perf_counter() - started) / batch
            tree.drain()
        pairs.append((took[id(kept)], took[id(told)]))
    return pairs

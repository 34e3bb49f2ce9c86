"""A turn of 512 tokens after 128K against one after 4K: it should cost what is new in it.

Ours alone, by cursor. Each turn is another session's, so that no path is in the near cache.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.bench.peers.ours import OurTree
from tests.bench.report import Goal, Row, rated, timed

LONG, SHORT, TURN = 128 << 10, 4 << 10, 512
REPEAT = 21
GOAL = Goal("<=", 1.25)


def rows() -> Iterator[Row]:
    for page in (64, 16):
        yield _row(page)


def _row(page: int) -> Row:
    tree = OurTree(page, REPEAT * (LONG + SHORT + 2 * TURN))
    rng = np.random.default_rng(page)
    texts = {}
    for name in [f"{length}-{turn}" for turn in range(REPEAT) for length in (LONG, SHORT)]:
        length = int(name.partition("-")[0])
        texts[name] = rng.integers(0, 50_000, length + TURN).astype(np.uint32)
        tree.open(name)
        tree.insert(name, texts[name][:length])
    tree.drain()
    pairs = []
    for turn in range(REPEAT):
        lengths = (LONG, SHORT) if turn % 2 else (SHORT, LONG)
        took = {length: _turn(tree, f"{length}-{turn}", texts, length) for length in lengths}
        pairs.append((took[LONG], took[SHORT]))
        tree.drain()
    return rated(f"turn of 512, page {page}, at 128K | at 4K", "us", pairs, goal=GOAL)


def _turn(tree: OurTree, name: str, texts: dict[str, np.ndarray], length: int) -> float:
    new = tree.prompt(texts[name][length:])
    return timed(lambda: tree.turn_from(name, new, length // tree.page))[0]

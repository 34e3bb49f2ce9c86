"""Finding 128K tokens in the tree against memcmp over the same bytes, in the same cache state.

ours: `Core.match` from Python. other: libc's memcmp of the prompt with an equal copy, also called
from Python. Near: the same prompt over and over, so that both find it where the last call left it.
Far: other memory is read before each call, enough to push both out of the core's own caches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from tests.bench.peers.ours import OurTree
from tests.bench.report import Goal, Row, compare, per_call
from tests.bench.rows.match import address, aligned, memcmp

TOKENS = 128 << 10
LOOPS = 20
REPEAT = 41
ELSEWHERE_BYTES = 32 << 20
GOAL = Goal("<=", 2.0)


def rows() -> Iterator[Row]:
    text = np.random.default_rng(1).integers(0, 50_000, TOKENS).astype(np.uint32)
    elsewhere = np.ones(ELSEWHERE_BYTES, np.uint8)
    prompt, twin = aligned(text), aligned(text)
    here, there = address(prompt), address(twin)

    def near(call: Callable[[], object]) -> float:
        return 1e6 * per_call(call, LOOPS)

    def far(call: Callable[[], object]) -> float:
        elsewhere.max()
        started = time.perf_counter()
        call()
        return 1e6 * (time.perf_counter() - started)

    for page in (64, 16):
        tree = OurTree(page, TOKENS)
        tree.open("s")
        tree.insert("s", text)
        assert tree.match("s", prompt) == TOKENS
        assert memcmp(here, there, prompt.nbytes) == 0
        for name, state in (("near", near), ("far", far)):
            yield compare(
                f"match 128K tokens, page {page}, {name} | memcmp",
                "us",
                lambda tree=tree, state=state: state(lambda: tree.match("s", prompt)),
                lambda state=state: state(lambda: memcmp(here, there, prompt.nbytes)),
                repeat=REPEAT,
                goal=GOAL,
            )

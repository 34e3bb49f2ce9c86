"""Short requests: 300 tokens of 1,000 sessions, of which 128 are one of four shared prefixes.

A whole cycle of each request: match, lock, insert what is new, unlock (see `peers`), ours beside
SGLang's two trees; users measured its Rust core slower than its Python core on such traffic
(SGLang #38536), since what is at the boundary weighs most. Each session has sent one prompt before
and sends another now. A batch's sessions are served one after the other; the figure is for one.

Then each of our calls alone, a batch of them in a row, against a budget of 5 us.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import numpy as np

from tests.bench.peers.ours import OurTree
from tests.bench.peers.sglang import CORES, SglangTree
from tests.bench.report import Goal, Row, rated, timed

SESSIONS, TOKENS, SHARED, PREFIXES = 1_000, 300, 128, 4
BATCH = 50
REPEAT = SESSIONS // BATCH
BUDGET_US = 5.0
GOALS = {64: Goal(">=", 5), 16: Goal(">=", 5), 1: Goal(">=", 1)}


def rows() -> Iterator[Row]:
    for page, goal in GOALS.items():
        yield from _cycles(page, goal)
        if page > 1:
            yield from _calls(page)


def _cycles(page: int, goal: Goal) -> Iterator[Row]:
    prompts = _prompts(page)
    ours = _ours(page, prompts)
    theirs = {backend: SglangTree(backend, page) for backend in CORES}
    for tree in theirs.values():
        for text in islice(prompts, SESSIONS):
            tree.cycle(tree.prompt(text))
            tree.drain()
    gc.collect()
    measured = []
    for turn in range(REPEAT):
        sessions = range(turn * BATCH, (turn + 1) * BATCH)
        texts = list(islice(prompts, BATCH))
        calls: dict[str, list[Callable[[], object]]] = {
            "ours": [
                partial(ours.insert, f"s{session}", ours.prompt(text))
                for session, text in zip(sessions, texts, strict=True)
            ]
        }
        for name, tree in theirs.items():
            calls[name] = [partial(tree.cycle, tree.prompt(text)) for text in texts]
        order = [*calls][turn % 3 :] + [*calls][: turn % 3]
        measured.append({name: _each(calls[name]) for name in order})
        for tree in (ours, *theirs.values()):
            tree.drain()
    for name in theirs:
        pairs = [(took["ours"], took[name]) for took in measured]
        title = f"cycle of a 300-token request, page {page} | SGLang {name}"
        yield rated(title, "us", pairs, goal=goal, speedup=True)


def _calls(page: int) -> Iterator[Row]:
    prompts = _prompts(page)
    tree = _ours(page, prompts)
    core, whole = tree.core, TOKENS // page
    took: dict[str, list[float]] = {}
    for turn in range(REPEAT):
        names = [f"s{session}" for session in range(turn * BATCH, (turn + 1) * BATCH)]
        texts = [tree.prompt(text) for text in islice(prompts, BATCH)]
        asks = list(zip(names, texts, strict=True))

        def batch(name: str, calls: list[Callable[[], object]]) -> list:
            results: list = []
            cost = timed(lambda: results.extend(call() for call in calls))[0] / BATCH
            took.setdefault(name, []).append(cost)
            return results

        batch("match", [partial(core.match, 1, name, "r", text) for name, text in asks])
        held = batch("acquire", [partial(core.acquire, 1, name, "r", text) for name, text in asks])
        grants = batch(
            "reserve", [partial(core.reserve, 1, lock.receipt, whole - lock.pages) for lock in held]
        )
        known = zip(texts, held, grants, strict=True)
        batch(
            "commit",
            [partial(core.commit, 1, g.op, text, lock.pages, g.pages) for text, lock, g in known],
        )
        batch("release", [partial(core.release, 1, lock.receipt) for lock in held])
        tree.drain()
    for name, costs in took.items():
        pairs = [(cost, BUDGET_US) for cost in costs]
        yield rated(f"{name} of 300 tokens, page {page} | budget", "us", pairs, goal=Goal("<=", 1))


def _each(calls: list[Callable[[], object]]) -> float:
    def run() -> None:
        for call in calls:
            call()

    return timed(run)[0] / len(calls)


def _ours(page: int, prompts: Iterator[np.ndarray]) -> OurTree:
    """With every session's first prompt in it."""
    tree = OurTree(page, 2 * SESSIONS * (TOKENS + page))
    for session, text in enumerate(islice(prompts, SESSIONS)):
        tree.open(f"s{session}")
        tree.insert(f"s{session}", tree.prompt(text))
    tree.drain()
    return tree


def _prompts(seed: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(seed)
    tokens = partial(rng.integers, 0, 50_000, dtype=np.uint32)
    shared = [tokens(SHARED) for _ in range(PREFIXES)]
    while True:
        for prefix in shared:
            yield np.concatenate([prefix, tokens(TOKENS - SHARED)])

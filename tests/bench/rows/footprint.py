"""Memory of a logical page that is on the device, on the host and in storage, keys apart.

What the process grows by (resident set) from before the core is made until the log is drained and
free memory is given back, over the pages in it. The keys are 4 bytes a token of every page; they
are measured with the rest and subtracted. One session inserts everything, so that sessions' own
records do not count. Each figure is of a process of its own, whose heap holds nothing that was
freed before. Nothing to compare with but the budget.

Pages are so many that what a core has anyway (2.6 MB: the log's ring, tables, buffers) is 2.5 bytes
of each. With four to a node, the tables of children have just grown: they are never larger. What
the bytes are, by the sizes of the structures:

    a page    64    its slot
               0.5  bits that say which pages of three pools, and which slots, are taken
    a node   160    its record: counts and times, who holds it, one run of slots
              48    what the eviction orders of three tiers know of it, 16 each
              53    its places in them, in full chunks, 17.7 each
              40    its key's first piece, parent, and the key's rest, of which there is none
              18    how its parent finds it; 10 just before the tables grow
              16    malloc's, of the key
               4    its last user
              21    free, between other things in the heap

That is with lru. Where more than the last use decides, what orders know takes half as much again,
and what the policy was told of each node is kept too (`Queue.facts`).
"""

from __future__ import annotations

import ctypes
import gc
import resource
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from runtime._core import Core, Log
from tests.bench.report import Goal, Row, rated

PAGE, PAGES = 16, 1 << 20
TOKEN_BYTES = 4
DRAIN_EVERY = 64
BUDGET_BYTES = 160.0
GOAL = Goal("<=", 1)

trim = ctypes.CDLL(None).malloc_trim


def rows() -> Iterator[Row]:
    for node_pages in (4, 512):
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            measured = process.submit(_bytes_a_page, node_pages).result()
        spent = measured - PAGE * TOKEN_BYTES
        title = f"bytes a page in three tiers, {node_pages} a node | budget"
        yield rated(title, "B", [(spent, BUDGET_BYTES)], goal=GOAL)


def _bytes_a_page(node_pages: int) -> float:
    rng = np.random.default_rng(node_pages)
    before = _resident_bytes()
    core = Core(
        engine="bench",
        epoch="1",
        namespace="bench",
        page_size=PAGE,
        device=PAGES,
        host=PAGES,
        storage=PAGES,
        log_rows=1 << 12,
    )
    core.open_session(0, "s")
    log = core.log()
    for node in range(PAGES // node_pages):
        tokens = rng.integers(0, 50_000, node_pages * PAGE).astype(np.uint32)
        held = core.acquire(0, "s", "r", tokens)
        grant = core.reserve(0, held.receipt, node_pages)
        core.commit(0, grant.op, tokens, 0, node_pages)
        core.release(0, held.receipt)
        _move(core)
        if node % DRAIN_EVERY == 0:
            _drain(log)
    _drain(log)
    assert [pool.used for pool in core.pools()] == [PAGES] * 3
    return (_resident_bytes() - before) / PAGES


def _move(core: Core) -> None:
    while actions := core.actions():
        for action in actions:
            core.complete(0, action.op, b"\1" * action.pages)


def _drain(log: Log) -> None:
    while log.drain():
        pass


def _resident_bytes() -> int:
    gc.collect()
    trim(0)
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()

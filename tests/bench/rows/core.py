"""What the core itself costs, from Python. No limit to hold these against; they are to be watched.

row: a note that changes no state, so its number is the price of one row of the log and of the
call. drain: encoding rows for the publisher, off the engine's thread. cycle: acquire, restore,
reserve, commit, release of a request of 300 tokens on pages of 16, half of them known, with
write-through to a host tier whose moves complete at once, in a cache that is full.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from functools import partial

from runtime._core import Core
from tests.bench.report import Row, alone, per_call
from tests.bench.rows.ingest import PAGE, move

NOTES = 20_000
CYCLES = 500
TOKENS = 300
REPEAT = 9


def rows() -> Iterator[Row]:
    yield alone("one row: core.note", "ns", _note, repeat=REPEAT)
    for size in (256, 4096):
        yield alone(f"drain, {size} rows a message", "ns/row", partial(_drain, size), repeat=3)
    core, rng = _core(), random.Random(5)
    _cycles(core, rng)
    yield alone("cycle of a 300-token request", "us", lambda: _cycles(core, rng), repeat=REPEAT)


def _core() -> Core:
    core = Core(
        engine="bench",
        epoch="1",
        namespace="bench",
        page_size=PAGE,
        device=4_000,
        host=8_000,
        log_rows=1 << 16,
    )
    core.open_session(0, "s")
    return core


def _note() -> float:
    core = _core()
    return 1e9 * per_call(lambda: core.note(0, "tool", "start", session="s"), NOTES)


def _drain(size: int) -> float:
    core = _core()
    log = core.log()
    for prompt in _prompts(random.Random(4), CYCLES):
        _cycle(core, prompt)
    return 1e9 * per_call(lambda: log.drain(size), log.pending() // size) / size


def _cycles(core: Core, rng: random.Random) -> float:
    prompts = iter(_prompts(rng, CYCLES))
    return 1e6 * per_call(lambda: _cycle(core, next(prompts)), CYCLES)


def _prompts(rng: random.Random, count: int) -> list[array[int]]:
    """Each begins with half of one of eight others."""
    known = [rng.choices(range(50_000), k=TOKENS // 2) for _ in range(8)]
    fresh = TOKENS - TOKENS // 2
    return [
        array("I", rng.choice(known) + rng.choices(range(50_000), k=fresh)) for _ in range(count)
    ]


def _cycle(core: Core, tokens: array[int]) -> None:
    held = core.acquire(0, "s", "r", tokens)
    ready = core.restore(0, held.receipt).ready
    grant = core.reserve(0, held.receipt, len(tokens) // PAGE - ready)
    core.commit(0, grant.op, tokens, ready, grant.pages)
    move(core, 0)
    core.release(0, held.receipt)

"""Finding 32K tokens in the tree, against looking at them once: memcmp of the same tokens.

ours: `Core.match` from Python: arguments, walk, reason, the row in the log. other: libc's memcmp
of the prompt with an equal copy, also called from Python (ctypes, without giving up the GIL).
Both work on the same prompt over and over, so its bytes are in the processor's caches for both.
The tree also holds OTHERS sessions of 4K tokens that share the prompt's first 1K tokens.
"""

from __future__ import annotations

import ctypes
import random
from array import array
from collections.abc import Iterator

from runtime._core import Core
from tests.bench.report import Goal, Row, compare, per_call

TOKENS = 32 << 10
TURN = 512
OTHERS = 256
OTHER_TOKENS = 4 << 10
SHARED = 1 << 10
LINE_BYTES = 64
LOOPS = 50
REPEAT = 41
GOAL = Goal("<=", 3.0)

memcmp = ctypes.PyDLL(None).memcmp
memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def rows() -> Iterator[Row]:
    rng = random.Random(1)
    prompt = _tokens(rng, TOKENS)
    for page in (64, 16):
        for name, turn in (("one insert", TOKENS), (f"turns of {TURN}", TURN)):
            core = _tree(rng, page, prompt, turn)
            title = f"match 32K tokens, page {page}, path of {name}"
            goal = GOAL if page == 64 else None
            yield _row(title, core, prompt, goal)
            if page == 64:
                # The session's next prompt, edited: what is found, and how far it is the same.
                yield _row(f"{title}, other from page 500 on", core, _edited(prompt, 500 * 64))


def _row(title: str, core: Core, tokens: array[int], goal: Goal | None = None) -> Row:
    prompt, twin = aligned(tokens), aligned(tokens)
    here, there = address(prompt), address(twin)
    assert memcmp(here, there, prompt.nbytes) == 0
    return compare(
        title,
        "us",
        lambda: 1e6 * per_call(lambda: core.match(0, "main", "r", prompt), LOOPS),
        lambda: 1e6 * per_call(lambda: memcmp(here, there, prompt.nbytes), LOOPS),
        repeat=REPEAT,
        goal=goal,
    )


def aligned(tokens: array[int]) -> memoryview:
    """A copy of the tokens that begins with a cache line: memcmp is fastest so."""
    size = len(tokens) * tokens.itemsize
    memory = memoryview(bytearray(size + LINE_BYTES))
    start = -address(memory) % LINE_BYTES
    line = memory[start : start + size]
    line[:] = memoryview(tokens).cast("B")
    return line.cast("I")


def address(memory: memoryview) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _tree(rng: random.Random, page: int, prompt: array[int], turn: int) -> Core:
    pages = (TOKENS + OTHERS * OTHER_TOKENS) // page
    core = Core(
        engine="bench",
        epoch="1",
        namespace="bench",
        page_size=page,
        device=pages,
        log_rows=1 << 14,
    )
    core.open_session(0, "main")
    for end in range(turn, TOKENS + 1, turn):
        _insert(core, "main", prompt[:end], page)
    for other in range(OTHERS):
        core.open_session(0, f"other-{other}")
        tokens = prompt[:SHARED] + _tokens(rng, OTHER_TOKENS - SHARED)
        _insert(core, f"other-{other}", tokens, page)
    found = core.match(0, "main", "r", prompt)
    assert (found.pages, found.reason) == (TOKENS // page, "")
    core.check()
    return core


def _insert(core: Core, session: str, tokens: array[int], page: int) -> None:
    held = core.acquire(0, session, "r", tokens)
    grant = core.reserve(0, held.receipt, len(tokens) // page - held.pages)
    core.commit(0, grant.op, tokens, held.pages, grant.pages)
    core.release(0, held.receipt)


def _tokens(rng: random.Random, count: int) -> array[int]:
    return array("I", rng.choices(range(50_000), k=count))


def _edited(prompt: array[int], at: int) -> array[int]:
    return prompt[:at] + array("I", [token + 1 for token in prompt[at:]])

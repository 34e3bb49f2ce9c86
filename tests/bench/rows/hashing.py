"""Hashing 32K tokens page by page, against SHA-256 alone over as many of its 64-byte blocks.

ours: `page_digests`, which also makes a list of Python bytes. other: OpenSSL's SHA-256 (hashlib)
over one buffer of as many blocks as the pages' digests take, padding included: a page is its
parent's 32 bytes, 4 a token, and SHA-256's own 9.
"""

from __future__ import annotations

import hashlib
import random
from array import array
from collections.abc import Iterator
from functools import partial

from runtime._core import page_digests
from tests.bench.report import Goal, Row, compare, per_call

TOKENS = 32 << 10
BLOCK_BYTES, PADDING_BYTES, DIGEST_BYTES, TOKEN_BYTES = 64, 9, 32, 4
LOOPS = 20
REPEAT = 41
GOAL = Goal(">=", 0.8)


def rows() -> Iterator[Row]:
    tokens = array("I", random.Random(2).choices(range(50_000), k=TOKENS))
    for page in (64, 16):
        blocks = -(-(DIGEST_BYTES + page * TOKEN_BYTES + PADDING_BYTES) // BLOCK_BYTES)
        text = random.Random(3).randbytes(TOKENS // page * blocks * BLOCK_BYTES - PADDING_BYTES)
        ours = partial(page_digests, tokens, page, "bench")
        yield compare(
            f"digests of 32K tokens, page {page} | SHA-256 alone",
            "us",
            lambda ours=ours: 1e6 * per_call(ours, LOOPS),
            lambda text=text: 1e6 * per_call(lambda: hashlib.sha256(text).digest(), LOOPS),
            repeat=REPEAT,
            goal=GOAL,
            speedup=True,
        )

"""Hashing 32K tokens page by page, against SHA-256 of the same crate alone.

ours: what a commit calls. other: the crate's hasher over one buffer of as many 64-byte blocks as
the pages' digests take, padding included: a page is its parent's 32 bytes, 4 a token, and SHA-256's
own 9. Both in Rust, in turns: `runtime/core/examples/hashing.rs`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from tests.bench.report import Goal, Row, rated

TOKENS, REPEAT = 32 << 10, 201
MANIFEST = "runtime/core/Cargo.toml"
BUILD = ("--manifest-path", MANIFEST, "--target-dir", "build/cargo")
GOAL = Goal(">=", 0.8)


def rows() -> Iterator[Row]:
    for page in (64, 16):
        command = ["cargo", "run", "--release", "--quiet", *BUILD, "--example", "hashing", "--"]
        said = subprocess.run(
            [*command, str(TOKENS), str(page), str(REPEAT)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        pairs = [(float(ours), float(alone)) for ours, alone in map(str.split, said.splitlines())]
        title = f"digests of 32K tokens, page {page} | SHA-256 alone"
        yield rated(title, "us", pairs, goal=GOAL, speedup=True)

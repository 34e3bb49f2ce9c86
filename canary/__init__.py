"""Proof that the bytes are the bytes that were computed.

Owns the 32-byte sentinel that travels with a page through every tier, what a damaged page is
called (`Violation`), and the verdict of an audit. Knows no tensor, no tier's memory and no event
transport: callers hand it buffers and counts. May import `runtime._core` (for the hash) and
nothing else of the product.
"""

from canary.sentinel import MODES, SENTINEL_BYTES, Mode, Sentinel, differences, stamp
from canary.verdict import Verdict, judge
from canary.violation import Violation

__all__ = [
    "MODES",
    "SENTINEL_BYTES",
    "Mode",
    "Sentinel",
    "Verdict",
    "Violation",
    "differences",
    "judge",
    "stamp",
]
__kvctl__ = "0.1.0"

"""What is passed where something else was meant, by the kind of the argument."""

import math
from array import array

import numpy as np
import pytest

from runtime._core import Core, CoreError

Argument = tuple[str, object]
"""(kind, a value that is taken)"""

REFUSALS = (CoreError, TypeError, OverflowError)
UNSPEAKABLE = "\ud800"
"""A str that UTF-8 cannot say: what `json.loads` makes of a lone surrogate."""
NO_U32 = [-1, 2**32, 2**70, 1.5, math.nan, "1", None]

HOSTILE = {
    "now": [2**63, 1.5, math.nan, "1", None, []],
    "name": [UNSPEAKABLE, b"s", None, 3, ["s"]],
    "new": ["", UNSPEAKABLE, b"s", None, 3, ["s"]],
    "session": ["nobody", "", UNSPEAKABLE, b"s", None, 3],
    "parent": ["nobody", UNSPEAKABLE, b"s", None, 3],
    "tier": ["gpu", "", "Device", UNSPEAKABLE, None, 0],
    "tier or none": ["gpu", "Device", UNSPEAKABLE, None, 0],
    "slot": [-1, 2**32, 1.5, "1"],
    "component": ["", "gpu", "Full", "c2", UNSPEAKABLE, b"full", None, 0],
    "namespace": [7, *NO_U32],
    "id": [0, 999, 2**64 - 1, 2**64, -1, 1.0, "1", None],
    "count": NO_U32,
    "forks": [0, *NO_U32],
    "start": [7, 2**32 - 1, -1, 2**32, 1.5, None],
    "start or end": [7, 2**32 - 1, -1, 2**32, 1.5, "0"],
    "skip": [7, 2**32 - 1, *NO_U32],
    "grid": [0, -1, 2**32, 0.5, None],
    "priority": [2**31, -(2**31) - 1, 2**70, 1.5, "1", None],
    "ttl": [0, -1, -(2**63), 2**63, math.inf, None],
    "at": [2**63, 1.5, "1", None],
    "u64": [2**64, -1, 1.5, None],
    "i64": [2**63, 1.5, None],
    "results": [b"", b"\x01" * 9, b"\x03\x01", [1, 256], [1.0, 1], "ab", None, 2, range(2**45)],
    "reason": ["because", UNSPEAKABLE, b"aborted", None, 1],
    "blocks": [None, 3, "ab", [-1], [2**32], [1.5], ["1"], [[1]], {1, 2}, [5, 5], range(2**40)],
    "tokens": [
        None,
        3,
        1.5,
        "abc",
        b"\x01\0\0\0",
        bytearray(8),
        memoryview(b"\x01\0\0\0"),
        [1.5],
        ["1"],
        [None],
        [[1, 2]],
        [-1],
        [2**32],
        [2**70],
        {1, 2},
        {1: 2},
        (n for n in [1]),
        range(2**40),
        object(),
        array("d", [1.0]),
        array("i", [-1]),
        np.array([-1]),
        np.array([2**40]),
        np.array([1.0], dtype=np.float32),
        np.array([math.nan]),
        np.array([1, 2], dtype=">u4"),
        np.array([[1, 2], [3, 4]], dtype=np.uint32),
        np.array([[1, 2], [3, 4]]),
        np.arange(8, dtype=np.uint32)[::2],
        np.arange(8)[::2],
        np.arange(8, dtype=np.uint32)[::-1],
        np.array(1, dtype=np.uint32),
        np.array(["a"]),
        np.array([1, None]),
    ],
}

PAIRS = [
    None, 3, "ab", b"\1\0\0\0\2\0\0\0", [1, 2], ["ab"], [(1,)], [(1, 2, 3)], [(1, -1)],
    [(2**32, 1)], [(1.5, 2)], [(None, 1)], [{1: 2, 3: 4}], (p for p in [(1, 2)]),
    array("I", [1, 2, 3]), array("i", [1, -1]), array("d", [1.0, 2.0]),
    np.zeros((2, 3), np.uint32), np.zeros((2, 1), np.uint32), np.zeros((1, 2, 2), np.uint32),
    np.zeros((4, 4), np.uint32)[:, :2], np.array(1, np.uint32), np.zeros((2, 2), ">u4"),
    np.zeros((2, 2)), np.array([[1, -2]]), np.array([[1, 2**40]]),
]  # fmt: skip

DIGESTS = [
    None, 3, "a" * 32, b"a", b"a" * 33, [b"a" * 31], [b"a" * 33], [b"a" * 32, b""], ["a" * 32],
    [1], [None], [[256] * 32], [[-1] * 32], (d for d in [b"a" * 32]), array("I", range(8)),
    np.zeros((2, 31), np.uint8), np.zeros((1, 2, 32), np.uint8), np.zeros(32, np.int64),
    np.zeros((2, 64), np.uint8)[:, ::2], np.zeros(32), np.array(1, np.uint8),
]  # fmt: skip


def refused_everywhere(
    core: Core, verb: str, arguments: list[Argument], options: dict[str, Argument]
) -> None:
    """Each argument in turn is hostile; all are refused, and nothing has changed."""
    before = core.state_hash(), core.observed_hash(), core.seq()
    good = [value for _, value in arguments]
    chosen = {option: value for option, (_, value) in options.items()}
    calls = [
        ([*good[:place], hostile, *good[place + 1 :]], chosen)
        for place, (kind, _) in enumerate(arguments)
        for hostile in HOSTILE[kind]
    ]
    calls += [
        (good, {**chosen, option: hostile})
        for option, (kind, _) in options.items()
        for hostile in HOSTILE[kind]
    ]
    calls += [(good, {**chosen, "nothing": 1})]
    for args, named in calls:
        with pytest.raises(REFUSALS):
            getattr(core, verb)(*args, **named)
        assert (core.state_hash(), core.observed_hash(), core.seq()) == before, (args, named)
    for wrong in ([], good + [1] * 9) if good else ([1],):
        with pytest.raises(TypeError):
            getattr(core, verb)(*wrong)
    getattr(core, verb)(*good, **chosen)
    core.check()

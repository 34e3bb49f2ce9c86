"""Values that no command asked for."""

import random
from array import array
from typing import Any

import numpy as np

EDGES = [
    0, 1, 2, 3, 7, 31, 64, 2**16, 2**16 + 1, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, 2**32,
    2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**70, -1, -2, -(2**31), -(2**63), -(2**63) - 1,
]  # fmt: skip
"""Where integers of some width end."""


class Liar:
    """Every question about it ends in an error of its own."""

    def refuse(self, *_: Any) -> Any:
        raise ValueError("a liar")

    __index__ = __int__ = __float__ = __len__ = __iter__ = __getitem__ = __repr__ = refuse
    __bool__ = __str__ = __hash__ = __buffer__ = __fspath__ = refuse


class Endless:
    """A sequence that says it is short."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: int) -> int:
        if place > 1000:
            raise IndexError
        return place


class Huge(Endless):
    """One that says it is longer than memory."""

    def __len__(self) -> int:
        return 2**62


def texts(rng: random.Random) -> Any:
    return rng.choice(
        ["", "\ud800", "a\0b", "s" * 5000, "é漢\u202e", "full", "device", "policies:X", ":", "\n"]
    )


def numbers(rng: random.Random) -> Any:
    return rng.choice([*EDGES, True, 1.5, -0.0, float("nan"), float("inf"), 1j, np.int64(-3)])


def buffers(rng: random.Random) -> Any:
    count = rng.choice([0, 1, 2, 31, 32, 33, 64])
    data = array("I", [rng.choice([0, 1, 2**31, 2**32 - 1]) for _ in range(count)])
    whole = np.array(data)
    return rng.choice(
        [
            data,
            data.tobytes(),
            bytearray(data.tobytes()),
            memoryview(data)[::-1],
            whole[::2],
            whole.reshape(1, -1),
            whole.astype(">u4"),
            whole.astype("f8"),
            whole.astype("O"),
            whole.astype("S4"),
            whole.astype("?"),
            whole.astype("i8") - 5,
            whole.view("u1")[1:],
            np.zeros((0, 2), "u4"),
            np.array(3, "u4"),
            np.zeros((count, 2), "i4"),
            array("d", [1.0]),
            array("q", [2**40, -1]),
        ]
    )


def containers(rng: random.Random) -> Any:
    item = rng.choice([*EDGES, "a", b"a" * 32, None, 1.5, (1, 2), [1], [], b"", Liar()])
    return rng.choice(
        [
            [item],
            (item, item),
            {1: item},
            {1, 2},
            iter([item]),
            range(5),
            range(2**40),
            [[item] * 32],
            [bytes(32), item],
            Endless(),
            Huge(),
            {"device": item},
        ]
    )


def anything(rng: random.Random) -> Any:
    kind = rng.choice([texts, numbers, numbers, buffers, containers])
    return rng.choice([kind(rng), kind(rng), kind(rng), None, Liar(), object(), type, len, ...])

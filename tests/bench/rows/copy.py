"""Moving scattered pages between device and host, against torch's copy_ of as many bytes at once.

ours: DeviceHostPipeline from `submit` to the completion, on its own thread: hand-over, copying by
page, sentinels carried and checked. other: one contiguous copy_ between tensors of the same size,
with the same number of threads inside torch. Both sides go round through pools of POOL_BYTES, so
neither works from the processor's caches alone. Every second page is moved, in an order of its
own on each side: no two are neighbours. The device is CUDA where there is one.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any, cast

import torch

from canary import Mode, stamp
from runtime.layout import Layout
from runtime.pools.device import DevicePool
from runtime.pools.host import HostPool
from runtime.transfer.device_host import DeviceHostPipeline
from runtime.transfer.pipeline import Completion
from tests.bench.report import Goal, Row, compare

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
POOL_BYTES = 256 << 20
MOVE_BYTES = 32 << 20
MODES: tuple[Mode, ...] = ("none", "all")
REPEAT = 15
GOAL = Goal(">=", 0.6)
SMOLLM2 = Layout(layers=30, kv_heads=3, head_dim=64, page_size=16, dtype="float32")


@dataclass
class Move:
    """What a pipeline reads of a `runtime._core.Action`."""

    op: int
    kind: str
    tier_from: str
    tier_to: str
    session: str
    pages: int
    runs: list[tuple[int, int, int, int]]
    keys: list[bytes]
    owners: list[int]
    positions: list[int]


def rows() -> Iterator[Row]:
    for layout in (_layout(64 << 10), _layout(256 << 10), SMOLLM2):
        for mode in MODES:
            with _Pools(layout, mode) as pools:
                for kind in ("backup", "load"):
                    yield compare(
                        f"{kind} scattered pages of {layout.page_bytes >> 10} KiB, canary {mode}",
                        "GB/s",
                        partial(pools.move, kind),
                        pools.copy,
                        repeat=REPEAT,
                        goal=GOAL if mode == "none" else None,
                    )


def _layout(page_bytes: int) -> Layout:
    return Layout(layers=8, kv_heads=1, head_dim=64, page_size=page_bytes >> 11, dtype="bfloat16")


class _Pools:
    """Two pools, a pipeline between them, and two plain tensors for the limit."""

    def __init__(self, layout: Layout, mode: Mode) -> None:
        self._layout = layout
        self._pages = pages = POOL_BYTES // layout.page_bytes
        self._rng = random.Random(2)
        self._done: SimpleQueue[Completion] = SimpleQueue()
        self._device = DevicePool(layout, pages, DEVICE)
        self._host = HostPool(layout, pages)
        self._device.bytes.random_(0, 255)
        self._host.bytes.copy_(self._device.bytes)
        self._keys = [self._rng.randbytes(32) for _ in range(pages)]
        for page in range(pages):
            where = page * layout.page_size
            sentinel = stamp(self._keys[page], where, page, self._host.page(page), mode)
            self._device.sentinels[page] = self._host.sentinels[page] = list(sentinel)
        self._from = self._device.bytes.clone()
        self._to = self._host.bytes.clone()
        self._pipeline = DeviceHostPipeline(self._device, self._host, self._done.put, mode)

    def __enter__(self) -> _Pools:
        return self

    def __exit__(self, *_: Any) -> None:
        self._pipeline.close()

    def move(self, kind: str) -> float:
        """GB/s of one action."""
        count = MOVE_BYTES // self._layout.page_bytes
        # Page i of one pool has the content of page i of the other, so any place is a right one;
        # what makes it scattered is that neighbours in the action are neighbours in no pool.
        pages = self._rng.sample(range(0, self._pages, 2), count)
        down = kind == "backup"
        action = Move(
            1,
            kind,
            "device" if down else "host",
            "host" if down else "device",
            "bench",
            count,
            [(page, page, page, 1) for page in pages],
            [self._keys[page] for page in pages],
            pages,
            pages,
        )
        started = time.perf_counter()
        assert self._pipeline.submit(cast(Any, action))
        done = self._done.get()
        took = time.perf_counter() - started
        assert done.moved_bytes == count * self._layout.page_bytes, done
        return done.moved_bytes / took / 1e9

    def copy(self) -> float:
        """GB/s of torch's own copy."""
        count = MOVE_BYTES // self._layout.page_bytes
        first = self._rng.randrange(self._pages - count)
        started = time.perf_counter()
        self._to[first : first + count].copy_(self._from[first : first + count])
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        took = time.perf_counter() - started
        return count * self._layout.page_bytes / took / 1e9

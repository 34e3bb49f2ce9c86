"""Copying pages between two pools, by runs of neighbours."""

from collections.abc import Iterable

import torch

from canary import SENTINEL_BYTES
from runtime import _core
from runtime.pools.pool import Pool

Runs = Iterable[tuple[int, int, int]]
"""(first source page, first destination page, count)"""


def copy_pages(destination: Pool, source: Pool, runs: Runs) -> None:
    """Copy bytes and sentinels. On CUDA the bytes have arrived when the current stream is
    synchronised."""
    runs = _merged(runs)
    if destination.memory is None or source.memory is None:
        for a, b, n in runs:
            destination.bytes[b : b + n].copy_(source.bytes[a : a + n], non_blocking=True)
    else:
        # Not copy_: a call for each run costs more than the copying when pages are small.
        size, threads = source.layout.page_bytes, torch.get_num_threads()
        _core.copy_pages(destination.memory.data, source.memory.data, size, runs, threads)
    marks, theirs = destination.sentinels.data, source.sentinels.data
    _core.copy_pages(marks, theirs, SENTINEL_BYTES, runs, threads=1)


def _merged(runs: Runs) -> list[tuple[int, int, int]]:
    merged: list[tuple[int, int, int]] = []
    for a, b, n in runs:
        if merged and merged[-1][0] + merged[-1][2] == a and merged[-1][1] + merged[-1][2] == b:
            a, b, n = merged[-1][0], merged[-1][1], merged.pop()[2] + n
        merged.append((a, b, n))
    return merged

"""Copying pages between two pools, by runs of neighbours."""

from collections.abc import Iterable

import torch

from runtime.pools.pool import Pool

SMALL_RUN_BYTES = 128 << 10
"""Below this, calling copy_ per run costs more than the copy; measured on two cores."""
STAGE_BYTES = 1 << 20
"""Staging for small runs: it stays in the processor's cache between the gather and the scatter."""

Runs = Iterable[tuple[int, int, int]]
"""(first source page, first destination page, count)"""


def copy_pages(destination: Pool, source: Pool, runs: Runs) -> None:
    """Copy bytes and sentinels. On CUDA the bytes have arrived when the current stream is
    synchronised."""
    runs = _merged(runs)
    pages = sum(count for _, _, count in runs)
    on_cpu = destination.bytes.device.type == source.bytes.device.type == "cpu"
    if on_cpu and pages * source.layout.page_bytes < len(runs) * SMALL_RUN_BYTES:
        _copy_by_index(destination.bytes, source.bytes, runs)
    else:
        for a, b, n in runs:
            destination.bytes[b : b + n].copy_(source.bytes[a : a + n], non_blocking=True)
    for a, b, n in runs:
        destination.sentinels[b : b + n] = source.sentinels[a : a + n]


def _merged(runs: Runs) -> list[tuple[int, int, int]]:
    merged: list[tuple[int, int, int]] = []
    for a, b, n in runs:
        if merged and merged[-1][0] + merged[-1][2] == a and merged[-1][1] + merged[-1][2] == b:
            a, b, n = merged[-1][0], merged[-1][1], merged.pop()[2] + n
        merged.append((a, b, n))
    return merged


def _copy_by_index(
    destination: torch.Tensor, source: torch.Tensor, runs: list[tuple[int, int, int]]
) -> None:
    words = torch.int64 if source.shape[1] % 8 == 0 else torch.uint8
    source, destination = source.view(words), destination.view(words)
    take = torch.tensor([a + i for a, _, n in runs for i in range(n)])
    put = torch.tensor([b + i for _, b, n in runs for i in range(n)])
    step = max(1, STAGE_BYTES // (source.shape[1] * source.itemsize))
    stage = torch.empty((min(step, len(take)), source.shape[1]), dtype=words)
    for rows, places in zip(take.split(step), put.split(step), strict=True):
        first, count = int(places[0]), len(places)
        if bool((places.diff() == 1).all()):
            torch.index_select(source, 0, rows, out=destination[first : first + count])
        else:
            torch.index_select(source, 0, rows, out=stage[:count])
            destination.index_copy_(0, places, stage[:count])

"""Copying pages between two pools, by runs of neighbours."""

from collections.abc import Iterable

from runtime.pools.pool import Pool

SMALL_RUN_BYTES = 1 << 20
"""Below this, sharing a copy among torch's threads costs more than it brings; measured on two
cores."""

Runs = Iterable[tuple[int, int, int]]
"""(first source page, first destination page, count)"""


def copy_pages(destination: Pool, source: Pool, runs: Runs) -> None:
    """Copy bytes and sentinels. On CUDA the bytes have arrived when the current stream is
    synchronised."""
    to, at = destination.memory, source.memory
    for a, b, n in _merged(runs):
        if to is not None and at is not None and n * source.layout.page_bytes < SMALL_RUN_BYTES:
            to[b : b + n] = at[a : a + n]
        else:
            destination.bytes[b : b + n].copy_(source.bytes[a : a + n], non_blocking=True)
        destination.sentinels[b : b + n] = source.sentinels[a : a + n]


def _merged(runs: Runs) -> list[tuple[int, int, int]]:
    merged: list[tuple[int, int, int]] = []
    for a, b, n in runs:
        if merged and merged[-1][0] + merged[-1][2] == a and merged[-1][1] + merged[-1][2] == b:
            a, b, n = merged[-1][0], merged[-1][1], merged.pop()[2] + n
        merged.append((a, b, n))
    return merged

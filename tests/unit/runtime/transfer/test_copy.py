import random

import pytest
import torch

from runtime.layout import Layout
from runtime.pools.host import HostPool
from runtime.transfer.copy import SMALL_RUN_BYTES, copy_pages

SMALL = Layout(1, 1, 8, 4, "float32")
ODD = Layout(1, 1, 3, 1, "uint8")
LARGE = Layout(32, 8, 32, 16, "float32")


@pytest.mark.parametrize("layout", [SMALL, ODD, LARGE], ids=["small", "odd", "large"])
def test_pages_and_sentinels_arrive_where_they_belong_and_nowhere_else(layout):
    draw = random.Random(1)
    pages = 40
    source, destination = HostPool(layout, pages), HostPool(layout, pages)
    source.bytes.copy_(torch.randint(0, 256, source.bytes.shape, dtype=torch.uint8))
    source.sentinels[:] = torch.randint(0, 256, source.sentinels.shape).numpy()
    takes, puts = draw.sample(range(pages), 24), draw.sample(range(pages), 24)
    runs = [(a, b, 1) for a, b in zip(takes[:20], puts[:20], strict=True)]
    runs += [(takes[20], puts[20], 1)]
    copy_pages(destination, source, runs)
    expected = torch.zeros_like(destination.bytes)
    for a, b, _ in runs:
        expected[b] = source.bytes[a]
        assert (destination.sentinels[b] == source.sentinels[a]).all()
    assert torch.equal(destination.bytes, expected)


def test_both_ways_of_copying_are_exercised():
    assert SMALL.page_bytes < SMALL_RUN_BYTES <= LARGE.page_bytes


def test_neighbouring_runs_copy_like_one():
    source, destination = HostPool(SMALL, 8), HostPool(SMALL, 8)
    source.bytes.copy_(torch.randint(0, 256, source.bytes.shape, dtype=torch.uint8))
    copy_pages(destination, source, [(0, 4, 1), (1, 5, 2), (3, 7, 1), (6, 0, 2)])
    assert torch.equal(destination.bytes[4:], source.bytes[:4])
    assert torch.equal(destination.bytes[:2], source.bytes[6:])


def test_no_runs_copy_nothing():
    source, destination = HostPool(SMALL, 2), HostPool(SMALL, 2)
    source.bytes.fill_(1)
    copy_pages(destination, source, [])
    assert not destination.bytes.any()


def test_scattered_pages_gather_into_neighbours():
    source, destination = HostPool(SMALL, 8), HostPool(SMALL, 8)
    source.bytes.copy_(torch.randint(0, 256, source.bytes.shape, dtype=torch.uint8))
    copy_pages(destination, source, [(7, 2, 1), (0, 3, 1), (4, 4, 1)])
    assert torch.equal(destination.bytes[2:5], source.bytes[[7, 0, 4]])
    assert not destination.bytes[:2].any()
    assert not destination.bytes[5:].any()

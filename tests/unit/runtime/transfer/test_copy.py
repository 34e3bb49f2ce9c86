import random

import pytest
import torch

from runtime._core import BadArgument
from runtime._core import copy_pages as copy_bytes
from runtime.layout import Layout
from runtime.pools.host import HostPool
from runtime.transfer.copy import copy_pages

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


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 64])
def test_however_many_threads_share_it_every_page_arrives(threads):
    page = 1 << 18
    source = torch.randint(0, 256, (48, page), dtype=torch.uint8).numpy()
    destination = torch.zeros(48, page, dtype=torch.uint8).numpy()
    copy_bytes(destination, source, page, [(0, 40, 8), (9, 0, 1), (20, 3, 21)], threads)
    assert (destination[40:48] == source[0:8]).all()
    assert (destination[0] == source[9]).all()
    assert (destination[3:24] == source[20:41]).all()
    assert not destination[1:3].any()
    assert not destination[24:40].any()


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([(0, 7, 2)], "leaves"),
        ([(8, 0, 1)], "leaves"),
        ([(0, 2**63, 2**63)], "leaves"),
        ([(0, 0, 2), (4, 1, 1)], "written twice"),
    ],
)
def test_runs_that_cannot_be_copied_are_refused_and_nothing_is(runs, message):
    source, destination = bytes([1]) * 32, bytearray(32)
    with pytest.raises(BadArgument, match=message):
        copy_bytes(destination, source, 4, runs, 1)
    assert not any(destination)


def test_buffers_that_cannot_be_copied_between_are_refused():
    memory = bytearray(32)
    with pytest.raises(BadArgument, match="overlap"):
        copy_bytes(memoryview(memory)[8:], memoryview(memory)[:16], 4, [(0, 0, 1)], 1)
    with pytest.raises(BadArgument, match="cannot be written"):
        copy_bytes(bytes(32), memory, 4, [(0, 0, 1)], 1)
    with pytest.raises(BadArgument, match="not C-contiguous"):
        copy_bytes(bytearray(32), memoryview(memory)[::2], 4, [(0, 0, 1)], 1)
    with pytest.raises(BadArgument, match="leaves 0 source"):
        copy_bytes(bytearray(32), memory, 0, [(0, 0, 1)], 1)


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

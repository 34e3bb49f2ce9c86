"""What a storage number stands for when it is given again: a core that errs gets no wrong bytes."""

import hashlib
import queue
from dataclasses import dataclass

import pytest

from canary import stamp
from runtime.layout import Layout
from runtime.pools.host import HostPool
from runtime.storage import header
from runtime.storage.file import FileStore
from runtime.transfer.pipeline import ARRIVED, DAMAGED
from runtime.transfer.storage import StoragePipeline

LAYOUT = Layout(1, 1, 8, 4, "float32")


@dataclass
class Move:
    """The fields of a core's Action, for one page: host page `host`, storage number `number`."""

    kind: str
    host: int
    number: int
    key: bytes
    op: int = 1
    session: str = "s"
    pages: int = 1

    @property
    def runs(self):
        pages = (self.host, self.number) if self.kind == "offload" else (self.number, self.host)
        return [(0, *pages, 1)]

    @property
    def keys(self):
        return [self.key]

    owners = (5,)
    positions = (0,)


def key(n: int) -> bytes:
    return bytes([n]) * 32


@pytest.fixture
def store(tmp_path):
    store = FileStore(tmp_path)
    store.open()
    yield store
    store.close()


@pytest.fixture
def move(store):
    """Run one move and wait for its completion."""
    host, done = HostPool(LAYOUT, 8), queue.SimpleQueue()
    pipeline = StoragePipeline(host, store, "namespace", done.put, "all")

    def run(kind: str, page: int, number: int, n: int):
        if kind == "offload":
            host.bytes[page] = n
            sentinel = stamp(key(n), 0, 5, host.page(page), "all")
            host.sentinels[page] = list(sentinel)
        assert pipeline.submit(Move(kind, page, number, key(n)))
        completion = done.get(timeout=10)
        if completion.results[0] == ARRIVED:
            assert set(host.page(page)) == {n}
        return completion

    yield run
    pipeline.close()


def test_a_number_given_again_takes_the_old_object_with_it(move, store):
    move("offload", 0, number=3, n=1)
    move("offload", 1, number=3, n=2)
    assert [*store.list()] == [key(2)]


def test_a_page_stored_anew_under_another_number_outlives_its_old_number(move, store):
    move("offload", 0, number=3, n=1)
    move("offload", 0, number=4, n=1)
    move("offload", 1, number=3, n=2)
    assert sorted(store.list()) == [key(1), key(2)]
    assert move("prefetch", 2, number=4, n=1).results[0] == ARRIVED


def test_a_key_whose_number_has_moved_on_is_not_served(move, store):
    move("offload", 0, number=3, n=1)
    move("offload", 0, number=4, n=1)
    move("offload", 1, number=3, n=2)
    assert store.exists([key(1)]) == [True]
    assert move("prefetch", 2, number=3, n=1).results[0] == DAMAGED
    assert move("prefetch", 2, number=9, n=2).results[0] == DAMAGED


def test_an_object_whose_sentinel_is_another_pages_is_a_violation(move, store):
    """A consistent object is not yet the right one: the slot that stored it must be this slot."""
    move("offload", 0, number=3, n=1)
    page = memoryview(bytes([1]) * LAYOUT.page_bytes)
    wrong = stamp(key(1), 0, 6, page, "all")
    fingerprint = hashlib.sha256(b"namespace").digest()[:16]
    store.put([key(1)], [header.pack(key(1), fingerprint, wrong, page)], [page])
    completion = move("prefetch", 2, number=3, n=1)
    assert completion.results[0] == DAMAGED
    [violation] = completion.violations
    assert violation.differs == {"owner": (5, 6)}

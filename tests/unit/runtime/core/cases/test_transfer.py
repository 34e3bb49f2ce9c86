"""Cases of transfers: bytes in flight while requests come, go and come again."""

import pytest

from cases.scenario import Case, Component, chain, key, pages
from runtime._core import UnknownOperation

SWA = Component("swa", "swa", window=2, device=8, host=8)


def test_pages_of_a_move_that_was_given_up_are_nobodys_until_it_has_ended():
    """transfer-01: who writes may still be writing; only its answer frees the pages."""
    d = Case("a", "b", device=8, host=3)
    d.serve("a", [1, 2, 3], move=False)
    (backup,) = d.core.actions()
    d.core.abort(d.tick(), backup.op, "failed")
    assert (d.fenced(), d.free("host")) == (3, 0)
    d.serve("b", [7, 8], move=False)
    assert d.core.actions() == []
    d.answer(backup)
    assert (d.fenced(), d.free("host"), d.at("host")) == (0, 3, [])
    with pytest.raises(UnknownOperation):
        d.answer(backup)
    assert d.free("host") == 3


def test_a_page_with_a_store_in_flight_is_given_to_nobody_by_any_way():
    """transfer-02: computing and loading allocate from one pool, and one rule says what is free."""
    d = Case("a", "b", "c", device=2, host=8)
    d.serve("c", [9])
    d.demote("c")
    d.serve("a", [1, 2], move=False)
    (backup,) = d.core.actions()
    waiting = d.acquire("c", [9])
    assert d.core.restore(d.tick(), waiting.receipt).ops == []
    assert d.core.reserve(d.tick(), d.acquire("b", [7]).receipt, 2).pages == 0
    d.answer(backup)
    assert set(chain(1, 2)) <= d.resident("host")
    assert d.core.restore(d.tick(), waiting.receipt).pending == 1
    d.finish()
    assert d.core.restore(d.tick(), waiting.receipt).ready == 1


def test_a_page_that_fails_fails_in_its_component_only():
    """transfer-03: slots are numbered across components; a result is of one operation's slot."""
    d = Case("a", device=8, host=8, components=[SWA])
    d.grow("a", range(4), 2, 4)
    d.demote("a")
    found = d.acquire("a", range(4))
    d.core.restore(d.tick(), found.receipt)
    loads = {load.component: load for load in d.core.actions()}
    assert not set(loads["full"].owners) & set(loads["swa"].owners)
    d.answer(loads["full"])
    d.core.complete(d.tick(), loads["swa"].op, bytes([1, 2]))
    assert sum(n for *_, n in d.core.table(found.receipt)) == 4
    assert (d.at("device", "swa"), d.at("host", "swa")) == ([2], [0, 1, 2])
    d.release(found)
    again = d.acquire("a", range(4))
    assert (again.pages, again.full_pages, again.clipped_by) == (3, 4, "swa")
    d.core.restore(d.tick(), again.receipt)
    d.finish()
    assert d.core.restore(d.tick(), again.receipt).ready == 3


def test_a_resumed_request_needs_nothing_that_it_has():
    """transfer-04: what is to be loaded is counted in pages that are missing, never below none."""
    d = Case("a", device=8, host=8, page_size=256)
    d.serve("a", range(336))
    found = d.acquire("a", range(336))
    assert (found.pages, found.device_pages, found.host_pages) == (1, 1, 0)
    restored = d.core.restore(d.tick(), found.receipt)
    assert (restored.ready, restored.pending, restored.ops) == (1, 0, [])
    assert d.core.reserve(d.tick(), found.receipt, 336 // 256 - restored.ready).pages == 0


def test_a_failed_page_leaves_a_length_that_all_components_have():
    """transfer-05: here none, so it is computed from the start, and what full had stays."""
    d = Case("a", device=8, host=8, components=[SWA])
    d.grow("a", range(4), 2, 4)
    d.demote("a")
    found = d.acquire("a", range(4))
    d.core.restore(d.tick(), found.receipt)
    for load in d.core.actions():
        failed = load.component == "swa"
        d.core.complete(d.tick(), load.op, bytes([1] * (load.pages - failed) + [0] * failed))
    restored = d.core.restore(d.tick(), found.receipt)
    assert (restored.ready, restored.pending) == (0, 0)
    done = d.compute(found, range(4), 0, 4)
    assert (done.duplicate, done.inserted) == (4, 0)
    assert d.core.restore(d.tick(), found.receipt).ready == 4


def test_a_request_that_comes_again_meets_its_old_moves_and_starts_none_twice():
    """transfer-06: a move belongs to its slots, not to the request that asked for it."""
    d = Case("a", device=8, host=8)
    d.serve("a", [1, 2], move=False)
    (backup,) = d.core.actions()
    first = d.acquire("a", [1, 2])
    d.release(first)
    second = d.acquire("a", [1, 2, 3])
    d.answer(backup)
    assert d.resident("host") == set(chain(1, 2))
    d.write(second, [1, 2, 3])
    d.release(second)
    d.finish()
    d.demote("a")

    first = d.acquire("a", [1, 2, 3])
    assert d.core.restore(d.tick(), first.receipt).pending == 3
    (load,) = d.core.actions()
    d.release(first)
    second = d.acquire("a", [1, 2, 3])
    again = d.core.restore(d.tick(), second.receipt)
    assert (again.ready, again.pending, again.ops) == (0, 3, [])
    d.answer(load)
    assert d.core.restore(d.tick(), second.receipt).ready == 3
    assert pages(d.core.table(second.receipt)) == d.used_pages("full")


@pytest.mark.parametrize("write_through", [True, False])
@pytest.mark.parametrize("policy", ["lru", "s3fifo", "session"])
def test_nothing_stays_pending_when_its_move_has_ended(policy, write_through):
    """transfer-07: a hundred times down and up again, and the next time as the first."""
    policies = {"device": policy, "host": policy}
    d = Case("a", device=4, host=4, write_through=write_through, policies=policies)
    d.serve("a", [1, 2])
    for _ in range(100):
        d.demote("a")
        d.finish()
        found = d.acquire("a", [1, 2])
        assert (found.host_pages, d.fenced()) == (2, 0)
        assert d.core.restore(d.tick(), found.receipt).pending == 2
        d.finish()
        restored = d.core.restore(d.tick(), found.receipt)
        assert (restored.ready, restored.pending, d.fenced()) == (2, 0, 0)
        d.release(found)
    assert d.resident("device") == {key(1), key(1, 2)}

"""Cases of the pools: what is given out, given back, and kept apart."""

from array import array

import pytest

from cases.scenario import Case, Component, chain, key, pages
from runtime import _core
from runtime._core import UnknownOperation, page_digests


def test_what_is_loaded_is_claimed_before_a_victim_is_chosen():
    """pools-01: also when the page to load is itself the first to go on its tier."""
    d = Case("m", "v", device=1, host=2)
    d.serve("m", [1])
    d.serve("v", [2])
    assert (d.resident("device"), d.resident("host")) == ({key(2)}, {key(1), key(2)})
    found = d.acquire("m", [1])
    d.core.restore(d.tick(), found.receipt)
    source = next(page for _, page, _, k in d.core.resident("host") if k == key(1))
    (load,) = d.core.actions()
    assert (load.kind, load.keys, load.runs[0][1]) == ("load", [key(1)], source)
    d.answer(load)
    assert d.resident("device") == {key(1)}
    assert d.look("v", [2]).host_pages == 1


def test_pages_are_freed_once_however_often_it_is_said():
    """pools-02: an operation ends once, and its pages with it."""
    d = Case("a", device=4)
    found = d.acquire("a", [1])
    got = d.core.reserve(d.tick(), found.receipt, 2)
    d.core.abort(d.tick(), got.op)
    for again in range(2):
        with pytest.raises(UnknownOperation):
            d.core.abort(d.tick(), got.op)
        assert d.free() == 4, again
    assert sorted(pages(d.core.reserve(d.tick(), found.receipt, 9).runs)) == [0, 1, 2, 3]


def test_a_page_whose_backup_failed_is_no_host_hit():
    """pools-03: neither one that found no room, nor one that did not arrive."""
    d = Case("holder", "a", "b", device=2, host=1, pin_share=1.0)
    d.serve("holder", [9])
    d.pin("holder")
    d.serve("a", [1])
    d.serve("b", [2, 3])
    found = d.look("a", [1])
    assert (found.pages, found.host_pages, found.reason) == (0, 0, "evicted")

    d = Case("a", "b", device=2, host=2)
    d.serve("a", [1], move=False)
    d.finish(result=0)
    d.serve("b", [2, 3], move=False)
    found = d.look("a", [1])
    assert (found.pages, found.host_pages, found.reason) == (0, 0, "evicted")


def test_runs_once_given_never_change():
    """pools-04: they are the caller's own copy, and cannot be replaced either."""
    d = Case("a", "b", device=8)
    got = d.core.reserve(d.tick(), d.acquire("a", [1]).receipt, 4)
    copy = [tuple(run) for run in got.runs]
    for i in range(20):
        d.serve("b", [i, i + 1])
    assert got.runs == copy
    with pytest.raises(AttributeError):
        got.runs = []


def test_a_page_has_one_owner_and_is_freed_whole():
    """pools-05: nothing is counted in less than a page, so two frees cannot meet within one."""
    d = Case("a", device=8, page_size=8)
    found = d.acquire("a", range(24))
    got = d.core.reserve(d.tick(), found.receipt, 3)
    d.core.commit(d.tick(), got.op, array("I", range(24)), 0, 2)
    kept = d.used_pages("full")
    d.release(found)
    freed = d.rows("free")
    assert [(row["pages"], row["reason"]) for row in freed] == [(1, "unused")]
    assert d.free() == 6
    assert d.used_pages("full") == kept == pages(got.runs)[:2]


def test_looking_holds_nothing_and_a_lock_that_was_never_used_ends_with_the_request():
    """pools-06: there is no hold without a receipt, and a request gives that back."""
    d = Case("a", "b", device=4, host=4)
    d.serve("a", [1, 2, 3, 4])
    d.look("a", [1, 2, 3, 4])
    d.release(d.acquire("a", [1, 2, 3, 4]))
    d.serve("b", [5, 6, 7, 8])
    assert not d.resident("device") & {key(1)}
    assert len(d.resident("host") & {key(1)}) == 0


def test_two_locks_of_one_request_are_two_locks():
    """pools-07: each acquire has a receipt of its own, whatever the request is called."""
    d = Case("a", "b", device=4)
    d.serve("a", [1, 2])
    first = d.acquire("a", [1, 2])
    second = d.acquire("a", [1, 2, 3])
    d.write(second, [1, 2, 3])
    d.release(first)
    other = d.acquire("b", [7])
    assert d.core.reserve(d.tick(), other.receipt, 4).pages == 1
    d.release(second)
    assert d.core.reserve(d.tick(), other.receipt, 3).pages == 3


def test_a_page_is_keyed_by_the_digest_that_ends_with_it():
    """pools-08: pages of all components have one size, and a digest each."""
    swa = Component("swa", "swa", window=64, device=8)
    d = Case("a", device=8, page_size=32, components=[swa])
    prompt = array("I", range(64))
    d.serve("a", prompt)
    at_32, at_64 = page_digests(prompt, 32, "n")
    for component in ("full", "swa"):
        copies = d.core.resident("device", "", component)
        assert {position: k for _, _, position, k in copies} == {0: at_32, 1: at_64}
    assert d.look("a", [*range(16), *range(100, 148)]).pages == 0


def test_host_copies_of_pages_on_the_device_can_be_reclaimed():
    """pools-09: a mirror is a candidate like any other copy, wherever else the page is."""
    d = Case("a", "b", device=8, host=4, storage=16)
    d.serve("a", [1, 2, 3, 4])
    d.serve("b", [5, 6, 7, 8])
    assert d.resident("host") == set(chain(5, 6, 7, 8))
    assert len(d.resident("storage")) == 8
    d.demote("a")
    found = d.acquire("a", [1, 2])
    assert d.core.restore(d.tick(), found.receipt).pending == 2
    assert [(m.kind, m.pages) for m in d.core.actions()] == [("prefetch", 2)]


def test_what_a_request_is_given_covers_its_last_page_to_the_end():
    """pools-10: rows are whole pages of its own; nothing in them is from who came before."""
    d = Case("a", "b", device=4, page_size=4)
    d.serve("a", range(8))
    before = d.acquire("a", range(8))
    second = d.acquire("b", range(100, 105))
    got = d.core.reserve(d.tick(), second.receipt, -(-5 // 4))
    row = [page * 4 + i for page in pages(got.runs) for i in range(4)]
    assert len(row) == len(set(row)) == 8
    assert not set(pages(got.runs)) & set(pages(d.core.table(before.receipt)))
    done = d.core.commit(d.tick(), got.op, array("I", range(100, 105)), 0, 1)
    assert pages(done.runs) == pages(d.core.table(second.receipt)) == pages(got.runs)[:1]


def test_a_move_names_pages_of_a_pool_and_no_layer():
    """pools-11: layers are the shell's; every stage finds the same page of its own pool."""
    swa = Component("swa", "swa", window=2, device=4, host=3)
    d = Case("a", device=8, host=5, components=[swa])
    d.serve("a", [1, 2, 3, 4], move=False)
    capacity = {(p.component, p.tier): p.capacity for p in d.core.pools()}
    moves = d.finish()
    assert {move.component for move in moves} == {"full", "swa"}
    for move in moves:
        for _, source, target, count in move.runs:
            assert source + count <= capacity[move.component, move.tier_from]
            assert target + count <= capacity[move.component, move.tier_to]
    assert not [name for name in dir(_core.Action) if "layer" in name or "rank" in name]


def test_giving_up_a_request_leaves_only_what_the_tree_has():
    """pools-12: what it matched is rounded down to pages, what it got is its own."""
    d = Case("a", device=8, page_size=4)
    d.serve("a", [1, 2, 3, 4, 5, 6])
    assert d.free() == 7
    found = d.acquire("a", [*range(1, 7), *range(10, 17)])
    assert found.pages == 1
    assert d.core.reserve(d.tick(), found.receipt, 3).pages == 3
    d.release(found)
    assert d.free() == 7
    assert len(d.resident("device")) == 1


def test_making_room_spares_what_the_same_request_has_matched():
    """pools-13: what it matched is locked before it asks for room."""
    d = Case("a", "b", "c", device=4)
    d.serve("a", [2])
    for session, token in (("b", 1), ("c", 6), ("b", 7)):
        d.serve(session, [token])
    found = d.acquire("a", [2, 3, 4, 5])
    d.write(found, [2, 3, 4, 5])
    assert d.look("a", [2, 3, 4, 5]).device_pages == 4


def test_a_match_that_was_acquired_is_all_there_when_it_is_used():
    """pools-14: finding and holding are one command."""
    d = Case("a", "b", device=9, host=9)
    tokens = list(range(8))
    d.serve("a", tokens)
    found = d.acquire("a", tokens)
    assert d.core.reserve(d.tick(), d.acquire("b", [50]).receipt, 9).pages == 1
    assert sum(n for *_, n in d.core.table(found.receipt)) == found.pages == 8
    d.release(found)
    d.release(d.acquire("a", tokens))
    assert d.core.reserve(d.tick(), d.acquire("b", [60]).receipt, 8).pages == 8


@pytest.mark.parametrize("count", [-2, -(2**40), 2**40])
def test_a_need_that_is_no_number_of_pages_is_refused(count):
    """pools-15: and a need of none is granted."""
    d = Case("a", device=4)
    found = d.acquire("a", [1])
    with pytest.raises(OverflowError):
        d.core.reserve(d.tick(), found.receipt, count)
    assert d.free() == 4
    assert d.core.reserve(d.tick(), found.receipt, 0).pages == 0
    assert d.core.reserve(d.tick(), found.receipt, 4).pages == 4


@pytest.mark.parametrize("policy", ["lru", "lfu", "s3fifo", "cost", "session"])
def test_ranks_that_run_one_log_keep_the_same_pages(policy):
    """pools-16: all numbers are integers, and ties are broken by what all ranks have."""
    ranks = []
    for _ in range(2):
        d = Case("a", "b", "c", "d", "e", device=4, host=3, policies={"device": policy})
        for step in range(10):
            d.now = step // 4  # many at one moment
            d.serve("abcde"[step % 5], [step % 7, step % 3])
        ranks.append([(d.core.resident(tier), d.core.state_hash()) for tier in ("device", "host")])
    assert ranks[0] == ranks[1]


def test_pages_that_the_host_lost_are_stored_again_while_the_device_has_them():
    """pools-17: there is no cursor; what a path lacks below is written down by its next turn."""
    d = Case("a", "b", device=20, host=8)
    tokens = list(range(8))
    d.serve("a", tokens)
    d.serve("b", [90, 91])
    assert key(*tokens) not in d.resident("host")
    found = d.look("b", [90, 91])
    assert (found.pages, found.device_pages) == (2, 2)
    d.flush("b")
    d.core.close_session(d.tick(), "b")
    d.serve("a", tokens)
    assert set(chain(*tokens)) == d.resident("host")


def test_as_much_is_fetched_as_there_is_room_for():
    """pools-18: the leading pages that fit; none when none fits."""
    d = Case("a", "holder", "flood", device=30, host=10, storage=40, pin_share=1.0)
    tokens = list(range(10))
    d.serve("a", tokens)
    d.demote("a")
    d.serve("flood", [50 + i for i in range(10)])
    d.serve("holder", [70, 71, 72, 73])
    d.pin("holder")
    d.finish()
    found = d.acquire("a", tokens)
    assert found.storage_pages == 10
    assert d.core.restore(d.tick(), found.receipt).pending == 6
    (prefetch,) = d.core.actions()
    assert prefetch.positions == [0, 1, 2, 3, 4, 5]

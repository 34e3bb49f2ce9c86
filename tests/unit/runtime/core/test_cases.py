"""Failures that real caches had in public, played against this one. Docstrings name the case."""

from array import array

import pytest
from driver import Driver, pages

from runtime._core import UnknownOperation, UnknownReceipt, page_digests


def key(*tokens: int) -> bytes:
    """Digest of the last page (of one token) of a path."""
    return page_digests(array("I", tokens), 1, "n")[-1]


# the tree


def test_a_duplicate_is_read_from_the_pages_that_stay():
    """tree-01"""
    d = Driver("a", "b", "c", device=12)
    tokens = [1, 2, 3, 4]
    first, second = d.acquire("a", tokens), d.acquire("b", tokens)
    one = d.core.reserve(d.tick(), first.receipt, 4)
    two = d.core.reserve(d.tick(), second.receipt, 4)
    d.core.commit(d.tick(), one.op, array("I", tokens), 0, 4)
    done = d.core.commit(d.tick(), two.op, array("I", tokens), 0, 4)
    assert done.duplicate == 4
    assert pages(done.runs) == pages(d.core.table(second.receipt)) == pages(one.runs)
    third = d.acquire("c", [9] * 8)
    others = pages(d.core.reserve(d.tick(), third.receipt, 8).runs)
    assert set(pages(two.runs)) <= set(others)
    assert not set(others) & set(pages(d.core.table(second.receipt)))
    d.core.check()


def test_a_lock_nobody_took_cannot_be_given_back_and_the_next_one_holds():
    """tree-02"""
    d = Driver("a", "b", device=2)
    d.serve("a", [1, 2])
    before = d.core.state_hash()
    with pytest.raises(UnknownReceipt):
        d.core.release(d.tick(), 999)
    assert d.core.state_hash() == before
    d.acquire("a", [1, 2])
    assert d.core.reserve(d.tick(), d.acquire("b", [7]).receipt, 2).pages == 0
    assert d.look("a", [1, 2]).pages == 2


def test_a_lock_holds_the_end_of_its_path_and_all_above():
    """tree-03"""
    d = Driver("a", "b", device=4)
    d.serve("a", [1])
    d.serve("a", [1, 2])
    held, other = d.acquire("a", [1, 2]), d.acquire("b", [7])
    assert d.core.reserve(d.tick(), other.receipt, 4).pages == 2
    assert d.look("a", [1, 2]).device_pages == 2
    d.release(other)
    d.release(held)
    assert d.core.reserve(d.tick(), d.acquire("b", [7]).receipt, 4).pages == 4
    d.core.check()


def test_a_backup_that_found_no_room_is_made_up_for_before_its_children():
    """tree-04"""
    d = Driver("holder", "a", device=8, host=1, pin_share=1.0)
    d.serve("holder", [9])
    d.pin("holder")
    d.serve("a", [1])
    assert d.resident("host") == {key(9)}
    d.core.unpin(d.tick(), d.core.session("holder").leases[0][0])
    d.serve("a", [1, 2])
    assert d.resident("host") == {key(1)}


def test_host_pages_go_from_the_end_also_when_the_end_is_on_the_device_too():
    """tree-05"""
    d = Driver("a", "b", device=4, host=3, write_through=False, pin_share=1.0)
    d.serve("a", [1, 2, 3])
    d.demote("a")
    d.finish()
    assert len(d.resident("host")) == 3
    d.serve("b", [8])
    d.demote("b")
    d.finish()
    assert d.resident("host") == {key(1), key(1, 2), key(8)}

    found = d.acquire("a", [1, 2, 3])
    assert (found.pages, found.reason) == (2, "evicted")
    d.core.restore(d.tick(), found.receipt)
    d.finish()
    d.write(found, [1, 2, 3])
    d.flush("b")
    d.release(found)
    d.pin("a")
    d.finish()
    d.core.unpin(d.tick(), d.core.session("a").leases[0][0])
    assert {key(1, 2), key(1, 2, 3)} <= d.resident("host") & d.resident("device")

    d.serve("b", [8])
    d.demote("b")
    d.finish()
    assert d.resident("host") == {key(1), key(1, 2), key(8)}
    d.core.check()


def test_a_hole_in_the_middle_ends_the_match_and_hides_nothing_for_good():
    """tree-06"""
    d = Driver("a", device=3, host=3)
    d.serve("a", [1, 2, 3])
    d.demote("a")
    owner = next(owner for owner, _, position, _ in d.core.resident("host") if position == 1)
    assert d.core.damaged(d.tick(), "host", owner & 0xFFFFFFFF, owner >> 32)
    found = d.acquire("a", [1, 2, 3])
    assert (found.pages, found.host_pages, found.reason) == (1, 1, "load_failed")
    assert d.core.restore(d.tick(), found.receipt).pending == 1
    d.finish()
    d.write(found, [1, 2, 3])
    d.release(found)
    assert d.look("a", [1, 2, 3]).pages == 3
    d.core.check()


def test_a_prefetch_that_ends_late_meets_pages_that_were_computed_meanwhile():
    """tree-07"""
    d = Driver("a", "b", "flood", device=8, host=4, storage=8)
    d.serve("a", [1, 2, 3, 4])
    d.demote("a")
    d.serve("flood", [9, 9, 9, 9])
    found = d.acquire("a", [1, 2, 3, 4])
    assert found.storage_pages == 4
    d.core.restore(d.tick(), found.receipt)
    (prefetch,) = d.core.actions()
    other = d.acquire("b", [1, 2])
    got = d.core.reserve(d.tick(), other.receipt, 2)
    done = d.core.commit(d.tick(), got.op, array("I", [1, 2]), 0, 2)
    assert done.healed == 2
    d.answer(prefetch)
    d.core.check()
    chain = {key(1), key(1, 2), key(1, 2, 3), key(1, 2, 3, 4)}
    assert chain <= d.resident("host")
    d.core.restore(d.tick(), found.receipt)
    d.finish()
    assert sum(n for *_, n in d.core.table(found.receipt)) == 4


def test_part_of_a_page_is_never_found():
    """tree-08"""
    d = Driver("a", device=4, page_size=4)
    d.core_page_size = 4
    d.serve("a", [1, 2, 3, 4, 5, 6])
    found = d.look("a", [1, 2, 3, 4, 5, 6])
    assert (found.pages, found.reason) == (1, "below_page")
    d.serve("a", [1, 2, 3, 4, 5, 6, 7, 8])
    assert d.look("a", [1, 2, 3, 4, 5, 6, 7, 8]).pages == 2
    assert d.look("a", [1, 2, 3, 4, 5, 6]).pages == 1
    assert len(d.resident("device")) == 2


def test_making_room_takes_exactly_what_is_needed():
    """tree-10"""
    d = Driver(*"abcdefg", device=8, host=6)
    for i, session in enumerate("abcdef"):
        d.serve(session, [i])
        d.demote(session)
    d.serve("g", [7, 8])
    assert d.resident("host") == {key(2), key(3), key(4), key(5), key(7), key(7, 8)}
    assert [d.look(s, [i]).pages for i, s in enumerate("abcdef")] == [0, 0, 1, 1, 1, 1]


# pools


def test_what_is_loaded_is_claimed_before_a_victim_is_chosen():
    """pools-01"""
    d = Driver("m", "v", device=1, host=2)
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
    """pools-02"""
    d = Driver("a", device=4)
    found = d.acquire("a", [1])
    got = d.core.reserve(d.tick(), found.receipt, 2)
    d.core.abort(d.tick(), got.op)
    for again in range(2):
        with pytest.raises(UnknownOperation):
            d.core.abort(d.tick(), got.op)
        assert d.free() == 4, again
    assert sorted(pages(d.core.reserve(d.tick(), found.receipt, 9).runs)) == [0, 1, 2, 3]


def test_a_page_whose_backup_failed_is_no_host_hit():
    """pools-03"""
    d = Driver("holder", "a", "b", device=2, host=1, pin_share=1.0)
    d.serve("holder", [9])
    d.pin("holder")
    d.serve("a", [1])
    d.serve("b", [2, 3])
    found = d.look("a", [1])
    assert (found.pages, found.host_pages, found.reason) == (0, 0, "evicted")


def test_runs_once_given_never_change():
    """pools-04"""
    d = Driver("a", "b", device=8)
    got = d.core.reserve(d.tick(), d.acquire("a", [1]).receipt, 4)
    copy = [tuple(run) for run in got.runs]
    for i in range(20):
        d.serve("b", [i, i + 1])
    assert got.runs == copy
    with pytest.raises(AttributeError):
        got.runs = []


def test_looking_holds_nothing_and_a_lock_that_was_never_used_ends_with_the_request():
    """pools-06"""
    d = Driver("a", "b", device=4, host=4)
    d.serve("a", [1, 2, 3, 4])
    d.look("a", [1, 2, 3, 4])
    d.release(d.acquire("a", [1, 2, 3, 4]))
    d.serve("b", [5, 6, 7, 8])
    assert not d.resident("device") & {key(1)}
    assert len(d.resident("host") & {key(1)}) == 0


def test_two_locks_of_one_request_are_two_locks():
    """pools-07"""
    d = Driver("a", "b", device=4)
    d.serve("a", [1, 2])
    first = d.acquire("a", [1, 2])
    d.write(first, [1, 2])
    second = d.acquire("a", [1, 2, 3])
    d.write(second, [1, 2, 3])
    d.release(first)
    assert d.core.reserve(d.tick(), d.acquire("b", [7]).receipt, 4).pages == 1
    d.release(second)
    assert d.core.reserve(d.tick(), d.acquire("b", [7]).receipt, 3).pages == 3


def test_host_copies_of_pages_on_the_device_can_be_reclaimed():
    """pools-09"""
    d = Driver("a", "b", device=8, host=4, storage=16)
    d.serve("a", [1, 2, 3, 4])
    d.serve("b", [5, 6, 7, 8])
    assert {key(5), key(5, 6)} <= d.resident("host")
    assert len(d.resident("storage")) == 8
    d.demote("a")
    found = d.acquire("a", [1, 2])
    assert d.core.restore(d.tick(), found.receipt).pending == 2
    assert [(m.kind, m.pages) for m in d.core.actions()] == [("prefetch", 2)]


def test_giving_up_a_request_leaves_only_what_the_tree_has():
    """pools-12"""
    d = Driver("a", device=8, page_size=4)
    d.core_page_size = 4
    d.serve("a", [1, 2, 3, 4, 5, 6])
    assert d.free() == 7
    found = d.acquire("a", [*range(1, 7), *range(10, 17)])
    assert found.pages == 1
    assert d.core.reserve(d.tick(), found.receipt, 3).pages == 3
    d.release(found)
    assert d.free() == 7
    assert len(d.resident("device")) == 1


def test_making_room_spares_what_the_same_request_has_matched():
    """pools-13"""
    d = Driver("a", "b", "c", device=4)
    d.serve("a", [2])
    for session, token in (("b", 1), ("c", 6), ("b", 7)):
        d.serve(session, [token])
    found = d.acquire("a", [2, 3, 4, 5])
    d.write(found, [2, 3, 4, 5])
    assert d.look("a", [2, 3, 4, 5]).device_pages == 4


def test_a_match_that_was_acquired_is_all_there_when_it_is_used():
    """pools-14"""
    d = Driver("a", "b", device=9, host=9)
    tokens = list(range(8))
    d.serve("a", tokens)
    found = d.acquire("a", tokens)
    assert d.core.reserve(d.tick(), d.acquire("b", [50]).receipt, 9).pages == 1
    assert sum(n for *_, n in d.core.table(found.receipt)) == found.pages == 8
    d.release(found)
    d.release(d.acquire("a", tokens))
    assert d.core.reserve(d.tick(), d.acquire("b", [60]).receipt, 8).pages == 8


@pytest.mark.parametrize("pages", [-2, -(2**40), 2**40])
def test_a_need_that_is_no_number_of_pages_is_refused(pages):
    """pools-15"""
    d = Driver("a", device=4)
    found = d.acquire("a", [1])
    with pytest.raises(OverflowError):
        d.core.reserve(d.tick(), found.receipt, pages)
    assert d.free() == 4
    assert d.core.reserve(d.tick(), found.receipt, 0).pages == 0
    assert d.core.reserve(d.tick(), found.receipt, 4).pages == 4


def test_pages_that_the_host_lost_are_stored_again_while_the_device_has_them():
    """pools-17"""
    d = Driver("a", "b", device=20, host=8)
    tokens = list(range(8))
    d.serve("a", tokens)
    d.serve("b", [90, 91])
    assert key(*tokens) not in d.resident("host")
    d.flush("b")
    d.core.close_session(d.tick(), "b")
    longer = list(range(8))
    d.serve("a", longer)
    assert key(*tokens) in d.resident("host")


def test_as_much_is_fetched_as_there_is_room_for():
    """pools-18"""
    d = Driver("a", "holder", "flood", device=30, host=10, storage=40, pin_share=1.0)
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


# sessions


def test_idle_sessions_never_starve_each_other():
    """session-01"""
    names = ["a", "b", "c", "d", "e"]
    d = Driver(*names, device=100)
    prompts = {name: [i * 100 + j for j in range(20)] for i, name in enumerate(names)}
    for name in names:
        d.serve(name, prompts[name])
    assert d.free() == 0
    # All at once: nobody waits for pages, each is told at once what it gets.
    turns = {name: d.acquire(name, prompts[name]) for name in names}
    granted = [d.core.reserve(d.tick(), turns[name].receipt, 10).pages for name in names]
    assert granted == [0] * 5
    d.release(turns["a"])
    assert d.core.reserve(d.tick(), turns["b"].receipt, 10).pages == 10
    d.core.check()


def test_a_session_closed_during_a_turn_lets_the_turn_end():
    """session-02"""
    d = Driver("a", "b", device=6)
    d.serve("a", [1, 2])
    found = d.acquire("a", [1, 2, 3, 4])
    got = d.core.reserve(d.tick(), found.receipt, 2)
    assert d.core.close_session(d.tick(), "a") == 0
    assert pages(d.core.table(found.receipt))
    assert d.core.commit(d.tick(), got.op, array("I", [1, 2, 3, 4]), 2, 2).inserted == 2
    d.release(found)
    d.core.check()


def test_a_turn_that_was_cut_off_leaves_no_trace():
    """session-03"""
    d = Driver("a", device=20)
    d.serve("a", [1, 2, 3, 4, 5])
    used, before = d.free(), d.core.session("a")
    cut = d.acquire("a", [1, 2, 3, 4, 5, 6, 7, 8])
    d.core.reserve(d.tick(), cut.receipt, 3)
    d.release(cut)
    after = d.core.session("a")
    assert (d.free(), after.pages, after.last_use) == (used, before.pages, before.last_use)
    found = d.acquire("a", [1, 2, 3, 4, 5, 9])
    assert found.pages == 5
    assert len(d.write(found, [1, 2, 3, 4, 5, 9])) == 1


def test_a_retracted_turn_moves_the_session_on_only_when_it_is_done():
    """session-05"""
    d = Driver("a", device=20)
    d.serve("a", [1, 2, 3])
    found = d.acquire("a", [1, 2, 3, 4, 5])
    got = d.core.reserve(d.tick(), found.receipt, 2)
    d.core.abort(d.tick(), got.op)
    assert d.core.session("a").pages == 3
    d.write(found, [1, 2, 3, 4, 5])
    assert d.core.session("a").pages == 5


def test_who_finishes_after_the_session_closed_leaves_ordinary_cache():
    """session-06"""
    d = Driver("a", "b", device=4)
    found = d.acquire("a", [1, 2, 3])
    got = d.core.reserve(d.tick(), found.receipt, 3)
    d.core.close_session(d.tick(), "a")
    d.core.commit(d.tick(), got.op, array("I", [1, 2, 3]), 0, 3)
    d.release(found)
    assert [s.name for s in d.core.sessions()] == ["b"]
    assert d.look("b", [1, 2, 3]).pages == 3
    d.serve("b", [6, 7, 8, 9])
    assert d.look("b", [1, 2, 3]).pages == 0


def test_closing_frees_at_once_what_only_that_session_had():
    """session-07"""
    d = Driver("a", "b", device=10, host=10)
    d.serve("b", [1, 2, 3, 4])
    d.serve("a", [1, 2, 3, 4, 5, 6, 7])
    assert d.core.close_session(d.tick(), "a") == 3
    assert (d.free(), d.free("host")) == (6, 6)
    assert d.look("b", [1, 2, 3, 4, 5, 6, 7]).pages == 4

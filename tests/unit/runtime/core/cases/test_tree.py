"""Cases of the tree: what is shared, split, held and dropped."""

from array import array

import pytest

from cases.scenario import Case, chain, digests, key, pages
from runtime._core import UnknownReceipt


def test_a_duplicate_is_read_from_the_pages_that_stay():
    """tree-01: the tree keeps its own copy, and tells who brought another where to read."""
    d = Case("a", "b", "c", device=12)
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


def test_a_lock_nobody_took_cannot_be_given_back_and_the_next_one_holds():
    """tree-02: a lock is a receipt, not a count; there is nothing below zero."""
    d = Case("a", "b", device=2)
    d.serve("a", [1, 2])
    before = d.core.state_hash()
    with pytest.raises(UnknownReceipt):
        d.core.release(d.tick(), 999)
    assert d.core.state_hash() == before
    d.acquire("a", [1, 2])
    assert d.core.reserve(d.tick(), d.acquire("b", [7]).receipt, 2).pages == 0
    assert d.look("a", [1, 2]).pages == 2


def test_a_lock_holds_the_end_of_its_path_and_all_above():
    """tree-03: from the node named to the root, both included."""
    d = Case("a", "b", device=4)
    d.serve("a", [1])
    d.serve("b", [1, 2])
    held, other = d.acquire("a", [1, 2]), d.acquire("b", [7])
    assert d.core.reserve(d.tick(), other.receipt, 4).pages == 2
    assert d.look("a", [1, 2]).device_pages == 2
    d.release(other)
    d.release(held)
    assert d.core.reserve(d.tick(), d.acquire("b", [7]).receipt, 4).pages == 4


def test_a_backup_that_found_no_room_is_made_up_for_before_its_children():
    """tree-04: what a turn backs up is whatever its path lacks below, from the start."""
    d = Case("holder", "a", device=8, host=1, pin_share=1.0)
    d.serve("holder", [9])
    d.pin("holder")
    d.serve("a", [1])
    assert d.resident("host") == {key(9)}
    d.core.unpin(d.tick(), d.core.session("holder").leases[0][0])
    d.serve("a", [1, 2])
    assert d.resident("host") == {key(1)}


def test_host_pages_go_from_the_end_also_when_the_end_is_on_the_device_too():
    """tree-05: what has a copy below it on the host is no candidate there."""
    d = Case("a", "b", device=4, host=3, write_through=False, pin_share=1.0)
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


@pytest.mark.parametrize("policy", ["lru", "fifo", "lfu", "slru", "s3fifo", "priority", "cost"])
def test_no_policy_takes_a_page_that_has_others_below_it(policy):
    """tree-05: whoever a policy would rather see go, only ends of paths are candidates."""
    d = Case("a", "b", "c", device=16, host=6, policies={"host": policy, "device": policy})
    for session, end in [("a", 2), ("b", 4), ("a", 6)]:
        d.serve(session, range(end))
    d.core.close_session(d.tick(), "b")
    d.demote("a")
    assert d.at("host") == [0, 1, 2, 3, 4, 5]
    for step in range(1, 5):
        d.serve("c", [100 + step])
        left = d.at("host", session="a")
        assert left == list(range(len(left)))
    assert len(left) < 6


def test_a_hole_in_the_middle_ends_the_match_and_hides_nothing_for_good():
    """tree-06: what lies beyond the hole stays in the tree, and counts again when it is filled."""
    d = Case("a", device=3, host=3)
    d.serve("a", [1, 2, 3])
    d.demote("a")
    d.lose("full", 1, tier="host")
    found = d.acquire("a", [1, 2, 3])
    assert (found.pages, found.host_pages, found.reason) == (1, 1, "load_failed")
    assert d.core.restore(d.tick(), found.receipt).pending == 1
    d.finish()
    d.write(found, [1, 2, 3])
    d.release(found)
    assert d.look("a", [1, 2, 3]).pages == 3


def test_a_prefetch_that_ends_late_meets_pages_that_were_computed_meanwhile():
    """tree-07: a move names slots, and so does a computation; they cannot build two chains."""
    d = Case("a", "b", "flood", device=8, host=4, storage=8)
    d.serve("a", [1, 2, 3, 4])
    d.demote("a")
    d.serve("flood", [9, 9, 9, 9])
    found = d.acquire("a", [1, 2, 3, 4])
    assert found.storage_pages == 4
    d.core.restore(d.tick(), found.receipt)
    (prefetch,) = d.core.actions()
    other = d.acquire("b", [1, 2])
    got = d.core.reserve(d.tick(), other.receipt, 2, start=0)
    done = d.core.commit(d.tick(), got.op, array("I", [1, 2]), 0, 2)
    assert done.healed == 2
    d.answer(prefetch)
    assert set(chain(1, 2, 3, 4)) <= d.resident("host")
    d.core.restore(d.tick(), found.receipt)
    d.finish()
    assert sum(n for *_, n in d.core.table(found.receipt)) == 4


def test_part_of_a_page_is_never_found_and_never_in_the_log():
    """tree-08: only whole pages have digests, so none has to be taken back."""
    d = Case("a", device=4, page_size=4)
    d.serve("a", [1, 2, 3, 4, 5, 6])
    found = d.look("a", [1, 2, 3, 4, 5, 6])
    assert (found.pages, found.reason) == (1, "below_page")
    d.serve("a", [1, 2, 3, 4, 5, 6, 7, 8])
    d.serve("a", [1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert d.look("a", [1, 2, 3, 4, 5, 6, 7, 8]).pages == 2
    assert d.look("a", [1, 2, 3, 4, 5, 6]).pages == 1
    told = [digest for row in d.rows("insert") for digest in digests(row)]
    assert len(told) == len(set(told)) == len(d.resident("device")) == 2
    assert set(told) == d.resident("device")


def test_who_is_used_less_goes_first_and_the_log_says_how_often():
    """tree-09: under lfu a use counts; a look does not, and computing counts as the first."""
    d = Case("a", "b", "c", device=2, policies={"device": "lfu"})
    d.serve("a", [1])
    d.serve("b", [2])
    for _ in range(3):
        d.release(d.acquire("a", [1]))
    for _ in range(9):
        d.look("b", [2])
    d.release(d.acquire("b", [2]))
    d.serve("c", [3])
    assert d.resident("device") == {key(1), key(3)}
    (evicted,) = d.rows("evict")
    assert (evicted["policy"], evicted["score"]) == ("lfu", 2)


def test_making_room_takes_exactly_what_is_needed():
    """tree-10: as many pages as were asked for, and the rows say so."""
    d = Case(*"abcdefg", device=8, host=6)
    for i, session in enumerate("abcdef"):
        d.serve(session, [i])
        d.demote(session)
    before = d.seq()
    d.serve("g", [7, 8])
    assert d.resident("host") == {key(2), key(3), key(4), key(5), key(7), key(7, 8)}
    assert [d.look(s, [i]).pages for i, s in enumerate("abcdef")] == [0, 0, 1, 1, 1, 1]
    assert sum(row["pages"] for row in d.rows("evict", since=before)) == 2

    d = Case("a", "b", device=8, host=6)
    d.serve("a", range(6))
    d.demote("a")
    d.serve("b", [7, 8])
    assert d.at("host", session="a") == [0, 1, 2, 3]

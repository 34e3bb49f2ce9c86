"""Locks hold until given back, and hints do what they say, whatever comes between."""

from array import array

import pytest
from driver import Driver

from runtime._core import BadArgument, UnknownReceipt


def test_tokens_of_another_known_path_are_not_taken_for_the_locked_one():
    d = Driver("a", "b", device=8)
    d.serve("a", [1, 2])
    d.serve("b", [5, 6])
    found = d.acquire("a", [1, 2, 3])
    got = d.core.reserve(d.tick(), found.receipt, 1)
    before = d.core.state_hash()
    for start, count in ((2, 1), (2, 0), (1, 1)):
        with pytest.raises(BadArgument):
            d.core.commit(d.tick(), got.op, array("I", [5, 6, 3]), start, count)
        assert d.core.state_hash() == before


def test_a_demotion_that_ends_late_leaves_what_a_later_turn_holds():
    d = Driver("a", device=8, host=8)
    d.serve("a", [1, 2], move=False)
    assert d.demote("a").outcome == "deferred"
    found = d.acquire("a", [1, 2, 3])
    d.write(found, [1, 2, 3])
    first, second = d.core.actions()
    d.answer(second)
    d.answer(first)
    assert sum(n for *_, n in d.core.table(found.receipt)) == 3
    d.core.check()


def test_a_pin_to_the_host_brings_what_device_and_storage_have():
    d = Driver("a", "flood", device=8, host=2, storage=8, pin_share=1.0)
    d.serve("a", [1, 2])
    d.serve("flood", [8, 9])
    assert (d.core.session("a").device_pages, d.core.session("a").host_pages) == (2, 0)
    outcome = d.pin("a", "host")
    assert (outcome.outcome, outcome.pages, outcome.pending) == ("deferred", 2, 2)
    assert [action.kind for action in d.finish()] == ["backup"]
    assert d.core.session("a").host_pages == 2


def test_a_lock_that_a_hint_holds_is_nobody_elses():
    d = Driver("a", device=4, host=4, write_through=False)
    d.serve("a", [1, 2])
    d.demote("a")
    (backup,) = d.core.actions()
    before = d.core.state_hash()
    for receipt in range(50):
        for refused in (d.core.release, d.core.restore, lambda *a: d.core.reserve(*a, 1)):
            with pytest.raises(UnknownReceipt):
                refused(d.tick(), receipt)
    assert d.core.state_hash() == before
    d.answer(backup)
    assert (d.core.session("a").device_pages, d.core.session("a").host_pages) == (0, 2)


def test_only_what_is_computed_after_the_same_start_is_pending():
    d = Driver("a", "b", device=8)
    d.serve("a", [1])
    computing = d.acquire("b", [5, 2])
    d.core.reserve(d.tick(), computing.receipt, 2)
    assert d.acquire("b", [5, 2]).reason == "pending_write"
    assert d.acquire("a", [1, 2]).reason == "never_stored"

"""Cases of hybrid models: recurrent state, alone and beside a window.

Pages are of one token unless said otherwise. A checkpoint at page p is the state after that page,
good for length p + 1 alone.
"""

from array import array

import pytest

from cases.scenario import Case, Component, found, mamba, swa
from runtime._core import BadArgument


def test_a_request_without_state_is_told_of_no_slot_and_writes_into_its_own():
    """hybrid-07: there is no placeholder that could be read or written."""
    d = Case("a", "b", device=16, components=[mamba(device=4)])
    first, second = d.acquire("a", range(4)), d.acquire("b", range(10, 14))
    for match in (first, second):
        assert d.core.table(match.receipt, "mamba") == []
        assert d.core.copies(match.receipt, "mamba") == []
    written = []
    for match in (first, second):
        got = d.core.reserve(d.tick(), match.receipt, 4)
        written += [page for name, _, page, _, _ in got.parts if name == "mamba"]
    assert len(set(written)) == len(written) == 2


def test_a_state_is_kept_only_at_the_boundary_it_was_planned_for():
    """hybrid-08: 1866 and then 1160 tokens of a block of 2048: no state of 2048 was ever there."""
    d = Case("a", "b", device=8, page_size=2048, components=[mamba(device=4)])
    prompt = range(1866 + 1160)
    match = d.acquire("a", prompt)
    got = d.core.reserve(d.tick(), match.receipt, 2)  # up to 3026: into the second block
    assert [at for name, _, _, _, at in got.parts if name == "mamba"] == [1]
    d.core.commit(d.tick(), got.op, array("I", prompt), 0, 1)
    d.release(match)
    assert d.at("device", "mamba") == []
    assert found(d, range(2048), "b") == (0, "component_gap", "mamba")
    assert d.room("mamba") == 4


def test_state_is_never_used_at_a_length_other_than_its_own():
    """hybrid-09: a margin is a shorter question; state answers it with a stored boundary or not."""
    d = Case("a", device=32, components=[swa(2), mamba()])
    d.serve("a", range(4))
    assert [d.look("a", range(n)).pages for n in (4, 3, 2)] == [4, 0, 0]
    d = Case("a", device=32, components=[swa(2), mamba()])
    d.grow("a", range(6), 2, 4, 6)
    assert [d.look("a", range(n)).pages for n in (6, 5, 4, 3, 2, 1)] == [6, 4, 4, 2, 2, 0]
    # Nothing can be declared that the core does not know how to resume.
    with pytest.raises(BadArgument):
        Component("x", "rewindable", device=4)


def test_what_runs_past_a_page_has_its_next_page_before_it_is_written():
    """hybrid-10: 16 tokens and 2 ahead in pages of 16: the state's page is the second."""
    d = Case("a", "b", device=8, page_size=16, components=[mamba(device=4, interval=1)])
    d.serve("b", range(100, 132))
    match = d.acquire("a", range(18))
    got = d.core.reserve(d.tick(), match.receipt, -(-18 // 16))
    state = {at: page for name, _, page, _, at in got.parts if name == "mamba"}
    assert got.pages == 2
    assert max(state) == -(-18 // 16) - 1
    assert not set(state.values()) & set(d.used_pages("mamba"))
    done = d.core.commit(d.tick(), got.op, array("I", range(18)), 0, 1)
    assert [(name, page, at) for name, _, page, _, at in done.parts] == [("mamba", state[0], 0)]
    again = d.core.reserve(d.tick(), match.receipt, 1)
    assert {at for name, _, _, _, at in again.parts if name == "mamba"} == {1}


def test_state_goes_alone_where_full_is_held():
    """hybrid-11: a lock on a path holds the state at its end, and any other can go."""
    d = Case("a", "b", device=16, components=[mamba(device=2)])
    d.grow("a", range(4), 2, 4)
    held = d.acquire("a", range(4))
    before = d.core.table(held.receipt)
    other = d.acquire("b", range(100, 102))
    d.core.reserve(d.tick(), other.receipt, 2)
    assert d.at("device", "mamba") == [3]
    assert d.at("device") == [0, 1, 2, 3]
    assert d.core.table(held.receipt) == before
    assert found(d, range(4))[0] == 4
    # What is held does not go, and a computation without a checkpoint is one all the same.
    second = d.acquire("b", range(200, 202))
    got = d.core.reserve(d.tick(), second.receipt, 2)
    assert (got.pages, {part[0] for part in got.parts}) == (2, {"full"})
    assert d.at("device", "mamba") == [3]


def test_asking_again_never_makes_a_hit_shorter():
    """hybrid-12: a question splits nothing, and a lock splits only where it can be resumed."""
    d = Case("a", device=256, components=[mamba()])
    d.serve("a", range(100))
    for _ in range(5):
        before = d.core.state_hash()
        match = d.look("a", range(99))
        assert (match.pages, match.full_pages, match.clipped_by) == (0, 99, "mamba")
        assert match.branch == 99
        assert d.core.state_hash() == before
        d.release(d.acquire("a", range(99)))
        assert d.look("a", range(100)).pages == 100
    assert d.rows("split") == []

    d = Case("a", device=256, components=[mamba()])
    d.grow("a", range(100), 64, 100)
    hits = []
    for _ in range(5):
        match = d.acquire("a", range(99))
        hits.append(match.pages)
        d.release(match)
    assert hits == [64] * 5
    assert d.look("a", range(100)).pages == 100


def test_a_place_where_requests_part_gets_a_checkpoint_and_the_hit_only_grows():
    """hybrid-12: who computes past the place where the match was cut leaves a state there."""
    d = Case("a", device=512, components=[mamba()])
    d.grow("a", range(100), 64, 100)
    hits = []
    for turn in range(5):
        tokens = [*range(80), *range(1000 + 100 * turn, 1010 + 100 * turn)]
        hits.append(d.serve("a", tokens).pages)
    assert hits == [64, 80, 80, 80, 80]
    assert d.look("a", range(100)).pages == 100


def test_the_length_is_one_that_every_component_has():
    """hybrid-18: the greatest in all sets, which need not be the least of their greatest."""
    d = Case("a", device=16, components=[swa(1), mamba(interval=1)])
    d.grow("a", range(3), 1, 2, 3)
    d.lose("swa", 1)  # good for 1 and 3
    d.lose("mamba", 2)  # good for 1 and 2
    assert d.look("a", range(3)).full_pages == 3
    assert d.look("a", range(3)).pages == 1
    d.lose("swa", 0)  # good for 3
    d.lose("mamba", 0)  # good for 2
    assert found(d, range(3))[:2] == (0, "component_gap")


def test_a_request_that_is_not_admitted_keeps_no_state():
    """hybrid-19: a match holds what is there; what is given comes with an operation that ends."""
    d = Case("a", device=16, components=[mamba(device=4)])
    for end in ["release", "abort"] * 5:
        match = d.acquire("a", range(4))
        assert d.room("mamba") == 4
        got = d.core.reserve(d.tick(), match.receipt, 4)
        assert d.room("mamba") == 3
        if end == "abort":
            d.core.abort(d.tick(), got.op)
            assert d.room("mamba") == 4
        d.release(match)
        assert (d.room(), d.room("mamba"), d.fenced()) == (16, 4, 0)


def test_a_hit_is_a_use_of_the_state_it_resumes_from_and_of_no_other():
    """hybrid-20: states on the way go before another session's only one."""
    d = Case("one", "two", "new", device=64, components=[mamba(device=11, interval=1)])
    d.serve("one", range(10))
    d.serve("two", [100])
    d.release(d.acquire("one", range(10)))
    assert d.room("mamba") == 0
    d.serve("new", [200])
    assert d.at("device", "mamba", "two") == [0]
    assert d.at("device", "mamba", "one") == list(range(1, 10))
    assert found(d, range(10), "one")[0] == 10
    assert found(d, [100], "two")[0] == 1


def test_what_a_restore_calls_ready_is_held_and_cannot_be_evicted():
    """hybrid-03: the boundary that is valid for all is held, for who goes on from there."""
    d = Case("s", device=8, components=[Component("m", "mamba", interval=1, device=8)])
    d.serve("s", [1, 2, 3])
    lock = d.acquire("s", [1, 2, 3])
    ((owner, *_),) = d.core.copies(lock.receipt, "m")
    assert d.core.damaged(d.tick(), "device", owner & 0xFFFFFFFF, owner >> 32)
    restored = d.core.restore(d.tick(), lock.receipt)
    assert (restored.ready, restored.pending) == (2, 0)
    assert [count for _, _, count in d.core.table(lock.receipt, "m")] == [1]
    d.core.evict(d.tick(), "device", 8, "m")
    assert d.core.restore(d.tick(), lock.receipt).ready == 2
    d.core.check()

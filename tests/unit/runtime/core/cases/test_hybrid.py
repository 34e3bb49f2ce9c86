"""Cases of hybrid models: windows, recurrent state and what goes beside them.

Pages are of one token unless said otherwise, so a window of 4 tokens is 4 pages. A checkpoint at
page p is the state after that page, good for length p + 1 alone.
"""

from array import array

import pytest

from cases.scenario import Case, Component, key, pages
from runtime._core import BadArgument


def swa(window: int, device: int = 32, **tiers: int) -> Component:
    return Component("swa", "swa", window=window, device=device, **tiers)


def mamba(device: int = 32, interval: int = 0, **tiers: int) -> Component:
    return Component("mamba", "mamba", interval=interval, device=device, **tiers)


def found(d: Case, tokens, session: str = "a") -> tuple[int, str, str]:
    match = d.look(session, tokens)
    return match.pages, match.reason, match.clipped_by


# windows


def test_a_window_never_counts_across_a_hole():
    """hybrid-01: A(2) B(1 missing) C(3) D(1 missing) E(2), a window of 4: only A's end is good."""
    d = Case("a", device=16, components=[swa(4)])
    d.grow("a", range(9), 4, 8, 9)
    assert d.at("device", "swa") == list(range(9))
    assert found(d, range(9)) == (9, "", "")
    d.lose("swa", 2, 6)
    match = d.look("a", range(9))
    assert (match.pages, match.full_pages) == (2, 9)
    assert (match.reason, match.clipped_by) == ("component_gap", "swa")
    for length, expected in [(8, 2), (6, 2), (5, 2), (3, 2), (2, 2), (1, 1)]:
        assert found(d, range(length))[0] == expected


def test_a_release_gives_back_what_its_receipt_lists_and_nothing_else():
    """hybrid-02: what was missing when a lock was taken is not its to give back later."""
    d = Case("a", "b", "c", device=32, components=[swa(2, device=8)])
    d.grow("a", range(6), 2, 4, 6)
    d.lose("swa", 0, 1)
    first = d.acquire("a", range(6))  # passes over 0 and 1, holds 4 and 5
    second = d.acquire("b", range(2))
    assert second.pages == 0
    assert [part[0] for part in d.compute(second, range(2), 0, 2).parts] == ["swa"]
    d.release(first)
    assert sum(n for *_, n in d.core.table(second.receipt, "swa")) == 2
    held = d.acquire("c", range(100, 108))
    assert d.core.reserve(d.tick(), held.receipt, 8).pages == 6
    assert d.at("device", "swa") == [0, 1]
    d.release(held)
    d.release(second)
    d.fill("c", 8)
    assert d.at("device", "swa") == []


def test_what_a_lock_did_not_find_is_another_locks_when_it_comes():
    """hybrid-02: a turn that got no checkpoint holds none, also when somebody makes it later."""
    d = Case("a", "b", "c", device=16, components=[mamba(device=1)])
    other = d.fill("c", 1)
    first = d.acquire("a", range(2))
    assert d.compute(first, range(2), 0, 2).parts == []
    d.release(other)
    second = d.acquire("b", range(2))
    assert (second.pages, second.full_pages) == (0, 2)
    assert [part[0] for part in d.compute(second, range(2), 0, 2).parts] == ["mamba"]
    d.release(first)
    third = d.acquire("c", [100])
    got = d.core.reserve(d.tick(), third.receipt, 1)
    assert [part[0] for part in got.parts] == ["full"]
    assert sum(n for *_, n in d.core.table(second.receipt, "mamba")) == 1
    d.release(second)
    d.release(third)
    d.fill("c", 1)
    assert d.at("device", "mamba") == []


def test_a_window_that_finds_no_room_shortens_the_prefix_for_all():
    """hybrid-03: the request resumes where every component can, and reads no page beyond."""
    d = Case("a", "b", "c", device=32, host=32, components=[swa(2, device=8, host=8)])
    d.grow("a", range(6), 2, 4, 6)
    d.lose("swa", 2, 3, 4, 5)
    d.lose("swa", 0, 1, 4, 5, tier="host")
    below = d.acquire("c", range(2))
    match = d.acquire("a", range(6))
    assert (match.pages, match.device_pages, match.clipped_by) == (4, 4, "swa")
    d.fill("b", 6)
    restored = d.core.restore(d.tick(), match.receipt)
    assert (restored.ready, restored.pending, d.core.actions()) == (2, 0, [])
    assert d.core.table(match.receipt, "swa") == [(2, 0, 2)]  # what is ready is held
    # It would go on from there, but not at the cost of what it reads.
    d.release(below)
    got = d.core.reserve(d.tick(), match.receipt, 2, start=restored.ready)
    assert got.pages == 0
    assert d.core.table(match.receipt, "swa") == [(2, 0, 2)]


def test_a_window_that_does_not_arrive_shortens_the_prefix_for_all():
    """hybrid-03: the same when the bytes were on their way and did not come."""
    d = Case("a", device=32, host=32, components=[swa(2, device=8, host=8)])
    d.grow("a", range(4), 2, 4)
    d.lose("swa", 2, 3)
    match = d.acquire("a", range(4))
    assert (match.pages, match.device_pages) == (4, 4)
    assert d.core.restore(d.tick(), match.receipt).pending == 2
    (load,) = d.core.actions()
    assert (load.kind, load.component, load.positions) == ("load", "swa", [2, 3])
    d.core.complete(d.tick(), load.op, bytes([1, 0]))
    restored = d.core.restore(d.tick(), match.receipt)
    assert (restored.ready, restored.pending) == (3, 0)  # 1 and 2 are there
    assert sum(n for *_, n in d.core.table(match.receipt, "swa")) == 2


def test_pages_that_somebody_reads_are_not_replaced_when_a_window_is_computed_again():
    """hybrid-04: the second to compute gives up its own copy of what the first reads."""
    d = Case("a", "b", device=16, components=[swa(2)])
    d.grow("a", range(4), 2, 4)
    d.lose("swa", 0, 1)
    reader = d.acquire("a", range(4))
    before = d.core.table(reader.receipt)
    second = d.acquire("b", range(2))
    assert (second.pages, second.full_pages) == (0, 2)
    got = d.core.reserve(d.tick(), second.receipt, 2)
    done = d.core.commit(d.tick(), got.op, array("I", range(2)), 0, 2)
    assert (done.duplicate, done.inserted, done.healed) == (2, 0, 0)
    assert d.core.table(reader.receipt) == before
    assert pages(done.runs) == pages(before)[:2]
    assert not set(pages(got.runs)) & set(d.used_pages("full"))
    assert d.at("device", "swa") == [0, 1, 2, 3]


def test_pages_out_of_the_window_are_free_at_the_commit_and_never_in_the_prefix():
    """hybrid-05: only the last window is kept; who gets the rest shares nothing with it."""
    d = Case("a", "b", device=32, components=[swa(4, device=12)])
    first = d.acquire("a", range(12))
    done = d.compute(first, range(12), 0, 12)
    ((name, _, _, count, position),) = done.parts
    assert (name, count, position) == ("swa", 4, 8)
    freed = [row for row in d.rows("free") if row["reason"] == "out_of_window"]
    assert sum(row["pages"] for row in freed) == 8
    assert d.room("swa") == 8
    other = d.fill("b", 8)
    theirs = set(range(12)) - set(d.used_pages("swa"))
    d.release(first)
    match = d.acquire("a", range(12))
    assert match.pages == 12
    assert pages(d.core.table(match.receipt, "swa")) == d.used_pages("swa")
    assert not set(d.used_pages("swa")) & theirs
    assert found(d, range(11))[0] == 0
    d.release(match)
    d.release(other)
    d.fill("b", 12)
    assert d.room("swa") == 0


@pytest.mark.parametrize(
    ("there", "asked", "expected"), [({2, 3}, 3, 0), ({2, 3, 4}, 4, 4), ({2, 3}, 4, 4)]
)
def test_what_is_held_back_is_held_back_before_the_window_is_looked_at(there, asked, expected):
    """hybrid-06: who leaves out the last block asks for less, and the window ends there."""
    d = Case("a", device=16, page_size=2, components=[swa(4)])
    d.grow("a", range(10), 2, 4, 5)
    d.lose("swa", *set(range(5)) - there)
    assert d.look("a", range(asked * 2)).pages == expected


def test_a_grid_shortens_to_where_the_window_is_whole():
    """hybrid-06: rounding down is a new length, and is measured as one."""
    d = Case("a", device=16, components=[swa(2)])
    d.grow("a", range(7), 2, 4, 6, 7)
    d.lose("swa", 3)
    match = d.acquire("a", range(7), grid=4)  # 4 is on the grid, and its window is not whole
    assert (match.pages, match.full_pages) == (0, 7)
    d.release(match)
    match = d.acquire("a", range(7), grid=2)
    assert match.pages == 6
    assert sum(n for *_, n in d.core.table(match.receipt, "swa")) == 2


def test_a_boundary_within_new_pages_leaves_no_part_without_a_backup():
    """hybrid-13: full is written down from the first page, the window where it has pages."""
    d = Case("a", device=16, host=16, components=[swa(4, host=16)])
    d.serve("a", range(10))
    assert d.at("host") == list(range(10))
    assert d.at("host", "swa") == [6, 7, 8, 9]
    d.demote("a")
    assert (d.at("device"), d.at("device", "swa")) == ([], [])
    match = d.look("a", range(10))
    assert (match.pages, match.host_pages) == (10, 10)


def test_what_one_component_has_no_room_for_is_granted_to_none():
    """hybrid-14: what is reserved is reserved of everything, so it can be matched."""
    d = Case("a", device=16, components=[swa(8, device=4), mamba(device=2)])
    match = d.acquire("a", range(8))
    got = d.core.reserve(d.tick(), match.receipt, 8)
    assert got.pages == 4
    assert [(name, n, at) for name, _, _, n, at in got.parts] == [
        ("full", 4, 0),
        ("swa", 4, 0),
        ("mamba", 1, 3),
    ]
    d.core.commit(d.tick(), got.op, array("I", range(8)), 0, 4)
    assert found(d, range(8))[0] == 4
    d.release(match)
    assert (d.room(), d.room("swa"), d.room("mamba")) == (12, 0, 1)


def test_what_is_not_committed_gives_back_every_components_pages():
    """hybrid-14: the checkpoint planned at the end goes with the pages that did not come."""
    d = Case("a", device=16, components=[swa(8, device=8), mamba(device=2)])
    match = d.acquire("a", range(8))
    got = d.core.reserve(d.tick(), match.receipt, 8)
    d.core.commit(d.tick(), got.op, array("I", range(8)), 0, 4)
    assert (d.room(), d.room("swa"), d.room("mamba")) == (12, 4, 2)
    assert found(d, range(8)) == (0, "component_gap", "mamba")
    d.release(match)
    assert d.core.close_session(d.tick(), "a") == 4
    assert (d.room(), d.room("swa"), d.room("mamba")) == (16, 8, 2)


@pytest.mark.parametrize(("tokens", "frontier"), [(64, 0), (96, 0), (128, 64), (160, 64)])
def test_every_leaf_keeps_its_window_also_where_a_page_is_longer(tokens, frontier):
    """hybrid-15: a window of 32 in pages of 64 keeps one whole page: never less than it reads."""
    d = Case("a", "b", device=8, page_size=64, components=[swa(32, device=8)])
    d.serve("a", range(tokens))
    assert [position * 64 for position in d.at("device", "swa")] == [frontier]
    assert d.look("a", range(tokens)).pages == tokens // 64
    d.serve("b", [*range(64), *range(1000, 1064)])
    assert d.look("b", [*range(64), *range(1000, 1064)]).pages == 2
    for session in ("a", "b"):
        d.core.close_session(d.tick(), session)
    assert (d.room(), d.room("swa")) == (8, 8)


def test_a_sidecar_that_shortens_the_match_has_the_window_measured_again():
    """hybrid-16: at 3 the window needs 1 and 2, and 1 is missing, so nothing is left."""
    draft = Component("draft", "sidecar", follows="full", device=16)
    d = Case("a", device=16, components=[swa(2), draft])
    d.grow("a", range(4), 2, 4)
    d.lose("swa", 0, 1)
    assert found(d, range(4))[0] == 4
    d.lose("draft", 3)
    match = d.look("a", range(4))
    assert (match.pages, match.full_pages) == (0, 4)
    assert (match.reason, match.clipped_by) == ("component_gap", "draft")


def test_a_window_that_moves_on_gives_back_its_own_pages_only():
    """hybrid-17: as hybrid-02, when the first request goes on instead of ending."""
    d = Case("a", "b", "c", device=32, components=[swa(2, device=8)])
    d.grow("a", range(4), 2, 4)
    d.lose("swa", 0, 1)
    first = d.acquire("a", range(8))
    second = d.acquire("b", range(2))
    assert second.pages == 0
    d.compute(second, range(2), 0, 2)
    d.compute(first, range(8), 4, 2)  # its window leaves 2 and 3
    assert sum(n for *_, n in d.core.table(second.receipt, "swa")) == 2
    d.core.reserve(d.tick(), d.acquire("c", range(100, 108)).receipt, 8)
    assert d.at("device", "swa") == [0, 1, 4, 5]
    assert sum(n for *_, n in d.core.table(second.receipt, "swa")) == 2


def test_pages_at_the_root_side_of_a_branch_go_before_those_its_end_needs():
    """hybrid-21: each window page has a use of its own; what an end needs was used last."""
    d = Case("idle", "busy", "new", device=64, components=[swa(4, device=16)])
    d.grow("idle", range(12), 4, 8, 12)
    d.grow("busy", range(100, 104), 4)
    d.release(d.acquire("busy", range(100, 104)))
    d.fill("new", 4)
    assert d.at("device", "swa", "idle") == list(range(4, 12))
    assert found(d, range(12), "idle")[0] == 12
    assert found(d, range(100, 104), "busy")[0] == 4


def test_a_hit_keeps_a_window_and_what_is_lost_leaves_no_empty_nodes():
    """hybrid-22: reading is a use; what nobody uses goes with its ancestors, all counted."""
    d = Case("a", "b", "c", device=4, components=[swa(1, device=2)])
    d.serve("a", [1])
    d.serve("b", [2])
    d.release(d.acquire("a", [1]))
    held = d.acquire("c", [3])
    d.compute(held, [3], 0, 1)
    assert {k for *_, k in d.core.resident("device", "", "swa")} == {key(1), key(3)}
    assert found(d, [2], "b") == (0, "component_gap", "swa")
    d.release(held)

    # A chain whose ancestors have no window any more: it goes leaf first, and wholly.
    d = Case("a", "b", "c", device=4, components=[swa(1, device=4)])
    d.serve("a", [1])
    d.serve("b", [1, 2])
    d.serve("a", [1, 2, 3])
    d.lose("swa", 0, 1)
    d.core.close_session(d.tick(), "b")
    assert d.core.close_session(d.tick(), "a") == 3
    assert (d.room(), d.room("swa")) == (4, 4)
    assert d.look("c", [1, 2, 3]).full_pages == 0


def test_leaving_out_the_last_block_costs_one_block():
    """hybrid-23: who leaves it out asks for less once; the intersection takes no more."""
    d = Case("a", device=32, components=[swa(4, device=16), mamba(device=16, interval=1)])
    d.grow("a", range(10), 3, 6, 9, 10)
    assert [d.look("a", range(10 - drop)).pages for drop in (0, 1, 2)] == [10, 9, 8]


# recurrent state


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

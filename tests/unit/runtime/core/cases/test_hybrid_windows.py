"""Cases of hybrid models: sliding windows, and what goes beside them.

Pages are of one token unless said otherwise, so a window of 4 tokens is 4 pages.
"""

from array import array

import pytest

from cases.scenario import Case, Component, found, key, mamba, pages, swa


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

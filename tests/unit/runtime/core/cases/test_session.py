"""Cases of sessions: turns that end early, late, twice, or after their session."""

from array import array

import pytest

from cases.scenario import Case, key, pages
from runtime._core import UnknownReceipt, UnknownSession


def test_idle_sessions_never_starve_each_other():
    """session-01: what no turn holds can go, and who gets nothing is told at once."""
    names = ["a", "b", "c", "d", "e"]
    d = Case(*names, device=100)
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


def test_a_session_closed_during_a_turn_lets_the_turn_end():
    """session-02: what the turn holds stays until it ends."""
    d = Case("a", "b", device=6)
    d.serve("a", [1, 2])
    found = d.acquire("a", [1, 2, 3, 4])
    got = d.core.reserve(d.tick(), found.receipt, 2)
    assert d.core.close_session(d.tick(), "a") == 0
    assert pages(d.core.table(found.receipt))
    assert d.core.commit(d.tick(), got.op, array("I", [1, 2, 3, 4]), 2, 2).inserted == 2
    d.release(found)


def test_a_turn_that_is_too_long_moves_nothing_of_its_session():
    """session-02: a turn that is turned away has read the session's path, and not touched it."""
    d = Case("a", device=4, host=4)
    d.serve("a", [1, 2])
    before = d.core.session("a")
    found = d.acquire("a", range(1, 20))
    assert d.core.reserve(d.tick(), found.receipt, 17).pages == 2
    d.release(found)
    after = d.core.session("a")
    assert (after.pages, after.device_pages, after.last_use) == (2, 2, before.last_use)
    assert d.free() == 2


def test_a_turn_that_was_cut_off_leaves_no_trace():
    """session-03: the next one continues where the last finished one ended."""
    d = Case("a", device=20)
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


def test_a_turn_that_is_turned_away_ends_no_other_turn():
    """session-04: there is no flag on a session; each turn gives back its own receipt, once."""
    d = Case("a", "b", device=4)
    d.serve("a", [1, 2])
    live = d.acquire("a", [1, 2, 3])
    got = d.core.reserve(d.tick(), live.receipt, 1)
    turned_away = d.acquire("a", [1, 2, 4])
    d.release(turned_away)
    with pytest.raises(UnknownReceipt):
        d.release(turned_away)
    third = d.acquire("a", [1, 2, 5])
    d.release(third)
    # The live turn still has its path and its page: one is left for others.
    assert d.core.reserve(d.tick(), d.acquire("b", [7]).receipt, 4).pages == 1
    assert d.core.commit(d.tick(), got.op, array("I", [1, 2, 3]), 2, 1).inserted == 1
    d.release(live)
    assert d.core.session("a").pages == 3


def test_a_retracted_turn_moves_the_session_on_only_when_it_is_done():
    """session-05: a session's path is what was committed; giving up for good leaves it, too."""
    d = Case("a", device=20)
    d.serve("a", [1, 2, 3])
    found = d.acquire("a", [1, 2, 3, 4, 5])
    got = d.core.reserve(d.tick(), found.receipt, 2)
    d.core.abort(d.tick(), got.op)
    assert d.core.session("a").pages == 3
    d.write(found, [1, 2, 3, 4, 5])
    assert d.core.session("a").pages == 5
    last = d.acquire("a", [1, 2, 3, 4, 5, 6])
    d.core.reserve(d.tick(), last.receipt, 1)
    d.release(last)
    assert (d.core.session("a").pages, d.free()) == (5, 15)


def test_who_finishes_after_the_session_closed_leaves_ordinary_cache():
    """session-06: pages are nobody's then, and the session's name stays forgotten."""
    d = Case("a", "b", device=4)
    found = d.acquire("a", [1, 2, 3])
    got = d.core.reserve(d.tick(), found.receipt, 3)
    d.core.close_session(d.tick(), "a")
    d.core.commit(d.tick(), got.op, array("I", [1, 2, 3]), 0, 3)
    d.release(found)
    assert [s.name for s in d.core.sessions()] == ["b"]
    with pytest.raises(UnknownSession):
        d.core.session("a")
    assert d.look("b", [1, 2, 3]).pages == 3
    d.serve("b", [6, 7, 8, 9])
    assert d.look("b", [1, 2, 3]).pages == 0


def test_closing_frees_at_once_what_only_that_session_had():
    """session-07: on every tier; what another session has too stays."""
    d = Case("a", "b", device=10, host=10)
    d.serve("b", [1, 2, 3, 4])
    d.serve("a", [1, 2, 3, 4, 5, 6, 7])
    assert d.core.close_session(d.tick(), "a") == 3
    assert (d.free(), d.free("host")) == (6, 6)
    assert d.look("b", [1, 2, 3, 4, 5, 6, 7]).pages == 4


def test_what_a_closed_session_leaves_stays_only_where_a_lease_says_so_and_as_long():
    """session-07: kept after the close until the time that was asked for, no longer."""
    d = Case("a", "b", device=4, pin_share=1.0)
    d.serve("a", [1, 2, 3])
    d.pin("a", "device", ttl=50)
    assert d.core.close_session(d.tick(), "a") == 0
    held = d.acquire("b", [9])
    assert d.core.reserve(d.tick(), held.receipt, 4).pages == 1
    assert d.resident("device") == {key(1), key(1, 2), key(1, 2, 3)}
    d.now += 60
    assert d.core.tick(d.now) == 1
    assert d.core.reserve(d.tick(), held.receipt, 3).pages == 3

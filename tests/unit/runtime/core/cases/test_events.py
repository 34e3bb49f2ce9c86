"""Cases of events, as far as the core writes the rows and a replica folds them."""

from array import array

import pytest
from driver import Driver

from cases.scenario import Case, Component, chain, digests, key
from runtime._core import LogError, Message, Replica, page_digests


def announced(d: Case, component: str = "full", since: int = 0) -> list[bytes]:
    """Digests of pages that rows bring into the tree, in order."""
    rows = [row for row in d.rows("insert", since=since) if row["component"] == component]
    return [digest for row in rows for digest in digests(row)]


def removed(d: Case, *phases: str) -> list[tuple[str, str, int]]:
    return [(row["phase"], row["tier_from"], row["pages"]) for row in d.rows("evict", *phases)]


def messages(rows: int) -> tuple[Driver, list[Message]]:
    """A short life, in messages of so many rows."""
    d = Driver("a", "b", device=3, host=3)
    for session, tokens in [("a", [1, 2]), ("b", [1, 3]), ("a", [4, 5])]:
        d.serve(session, tokens)
    log = d.core.log()
    return d, [message for message in iter(lambda: log.drain(rows), None) if message]


def test_an_engine_whose_log_nobody_takes_goes_on_and_the_loss_is_counted():
    """events-01: a bound on rows, the oldest go, and the numbers show what is missing."""
    d = Driver("a", device=4, log_rows=10)
    for i in range(100):
        d.serve("a", [i, i + 1])
    log = d.core.log()
    assert (log.pending(), log.pending() + log.dropped()) == (10, d.core.seq())
    message = log.drain()
    assert message is not None
    assert message.first == d.core.seq() - 9
    with pytest.raises(LogError, match="missing"):
        Replica().fold(message.payload)


def test_each_page_of_a_row_has_the_one_before_it_as_parent():
    """events-03: a row says where its pages begin, and its digests are a chain from there."""
    d = Case("a", device=8, page_size=2)
    d.serve("a", [1, 2])
    d.serve("a", range(10))
    row = d.rows("insert")[-1]
    assert (row["pages"], row["end_page"]) == (5, 5)
    assert digests(row) == page_digests(range(10), 2, "n")
    d.serve("a", range(16))
    row = d.rows("insert")[-1]
    assert (row["pages"], row["end_page"]) == (3, 8)
    assert digests(row) == page_digests(range(16), 2, "n")[5:]


@pytest.mark.parametrize("rows", [1, 3])
def test_a_replica_waits_for_what_is_missing_and_undoes_nothing(rows):
    """events-07: a message beyond a gap changes nothing, and a late one is applied in its turn."""
    d, (first, second, third, *rest) = messages(rows)
    replica = Replica()
    replica.fold(first.payload)
    before = replica.state_hash()
    with pytest.raises(LogError, match="missing"):
        replica.fold(third.payload)
    assert (replica.seq(), replica.state_hash()) == (rows, before)
    for message in (second, third, *rest):
        replica.fold(message.payload)
    assert replica.state_hash() == d.core.state_hash()


def restarted() -> tuple[Replica, Driver, bytes]:
    """A replica of an engine's first life, and the engine in its second, which numbers from 1."""
    _, old = messages(4)
    replica = Replica()
    for message in old:
        replica.fold(message.payload)
    again = Driver("a", device=3, host=3, epoch="2")
    again.serve("a", [9])
    message = again.core.log().drain()
    assert message is not None
    assert message.first == 1
    return replica, again, message.payload


def test_an_engine_that_starts_again_needs_nothing_of_its_earlier_life():
    """events-05: its first row is complete in itself: a new replica begins there."""
    _, again, payload = restarted()
    fresh = Replica()
    assert fresh.fold(payload) == again.core.state_hash()
    assert [(s.name, s.pages) for s in fresh.sessions()] == [("a", 1)]


def test_rows_of_another_life_are_never_taken_for_more_of_this_one():
    """events-10: the epoch stands in every message; numbers alone decide nothing."""
    replica, _, payload = restarted()
    before = (replica.seq(), replica.state_hash())
    with pytest.raises(LogError, match="epoch"):
        replica.fold(payload)
    assert (replica.seq(), replica.state_hash()) == before


def test_a_page_comes_once_and_goes_once_however_many_copies_it_has():
    """events-06: a copy that leaves a tier is `kept` while another tier has the page."""
    d = Case("a", "b", "c", device=2, host=2, defer_digests=False)
    d.serve("a", [1])
    d.serve("b", [1])
    assert announced(d) == [key(1)]
    d.demote("a")
    d.core.close_session(d.tick(), "a")
    d.demote("b")
    assert removed(d) == [("kept", "device", 1)]
    assert d.look("c", [1]).pages == 1
    d.core.close_session(d.tick(), "b")
    assert removed(d, "lost", "gone") == [(d.rows("evict")[-1]["phase"], "host", 1)]
    assert d.look("c", [1]).pages == 0
    seqs = [row["seq"] for row in d.core.rows]
    assert seqs == list(range(1, len(seqs) + 1))


def test_retiring_a_namespace_clears_it_in_every_tier_and_no_other():
    """events-09: one row, after which nothing matches; the pages' own rows follow."""
    d = Case("a", "b", device=8, host=8, storage=8)
    other = d.core.open_namespace(d.tick(), "other")
    d.serve("a", [1, 2])
    found = d.acquire("b", [1, 2], namespace=other)
    d.write(found, [1, 2])
    d.release(found)
    d.finish()
    assert d.core.retire(d.tick(), 0) == 2
    (row,) = d.rows("config", "retire")
    assert row["namespace"] == 0
    for tier in ("device", "host", "storage"):
        assert d.resident(tier) == set(page_digests([1, 2], 1, "other"))
    assert sum(row["pages"] for row in d.rows("evict") if row["reason"] == "retired") == 6
    found = d.core.match(d.tick(), "b", "r", array("I", [1, 2]), namespace=other)
    assert found.pages == 2
    by_name = {s.name: s.device_pages for s in d.core.replica.sessions()}
    assert by_name == {"a": 0, "b": 2}


def test_the_same_tokens_at_another_place_are_another_page_and_a_split_brings_none():
    """events-11: a digest has its parent's in it; a split says which node has which pages."""
    d = Case("a", device=8, page_size=2)
    d.serve("a", [7] * 6)
    first = announced(d)
    assert first == page_digests([7] * 6, 2, "n")
    assert len(set(first)) == 3
    before = d.seq()
    d.serve("a", [7, 7, 7, 7, 8, 8])
    assert announced(d, since=before) == page_digests([7, 7, 7, 7, 8, 8], 2, "n")[2:]
    (split,) = d.rows("split", since=before)
    assert (split["pages"], split["digests"]) == (2, None)
    (insert,) = d.rows("insert", since=before)
    assert insert["parent"] == split["parent"]


def test_a_component_that_loses_a_page_takes_nothing_from_another():
    """events-12: every row about copies names its component."""
    swa = Component("swa", "swa", window=1, device=1)
    d = Case("a", "b", device=8, components=[swa])
    d.serve("a", [1])
    d.serve("b", [2])
    (row,) = d.rows("evict")
    assert (row["component"], row["tier_from"], row["pages"]) == ("swa", "device", 1)
    pools = {pool.component: pool.used for pool in d.core.replica.pools() if pool.tier == "device"}
    assert pools == {"full": 2, "swa": 1}
    found = d.look("a", [1])
    assert (found.pages, found.full_pages, found.clipped_by) == (0, 1, "swa")


def test_pages_that_were_left_out_leave_no_digest_in_another_place():
    """events-13: a row has a digest for each of its pages, and says where they end."""
    mamba = Component("mamba", "mamba", interval=2, device=8)
    d = Case("a", device=8, components=[mamba], defer_digests=False)
    d.serve("a", [1, 2, 3, 4, 5])
    told = {}
    for row in d.rows("insert"):
        assert len(digests(row)) == row["pages"]
        if row["component"] == "mamba":
            positions = range(row["end_page"] - row["pages"], row["end_page"])
            told |= dict(zip(positions, digests(row), strict=True))
    tokens = chain(1, 2, 3, 4, 5)
    assert told == {position: tokens[position] for position in (1, 3, 4)}


def test_two_that_compute_one_page_are_one_arrival_and_one_loss():
    """events-14: the second's own pages come and go without ever being the prefix."""
    d = Case("a", "b", "c", device=4, defer_digests=False)
    first, second = d.acquire("a", [1, 2]), d.acquire("b", [1, 2])
    ops = [d.core.reserve(d.tick(), found.receipt, 2).op for found in (first, second)]
    for op in ops:
        d.core.commit(d.tick(), op, array("I", [1, 2]), 0, 2)
    assert announced(d) == chain(1, 2)
    assert [(r["reason"], r["pages"]) for r in d.rows("free")] == [("duplicate", 2)]
    d.release(first)
    d.release(second)
    d.fill("c", 4)
    assert sum(row["pages"] for row in d.rows("evict")) == 2
    assert {row["phase"] for row in d.rows("evict")} <= {"lost", "gone"}


def test_what_two_paths_have_in_common_stays_until_the_last_of_them_goes():
    """events-15: it is one page with one slot, not a member of two objects."""
    d = Case("a", "b", "c", device=8, defer_digests=False)
    d.serve("a", [1, 2])
    d.serve("b", [1, 2, 3])
    assert announced(d) == chain(1, 2, 3)
    d.core.close_session(d.tick(), "a")
    assert d.look("b", [1, 2, 3]).pages == 3
    assert d.core.close_session(d.tick(), "b") == 3
    assert d.look("c", [1, 2, 3]).pages == 0


def test_a_replay_that_overlaps_is_applied_once():
    """events-16: rows that a replica has are skipped by their numbers."""
    d, told = messages(4)
    clean, again = Replica(), Replica()
    for message in told:
        clean.fold(message.payload)
    for message in [*told[:3], *told[1:], *told]:
        again.fold(message.payload)
    assert again.state_hash() == clean.state_hash() == d.core.state_hash()
    assert again.seq() == clean.seq()
    again.check()


def test_a_copy_that_arrives_after_a_split_arrived_for_both_halves():
    """events-17: the rows of a move name slots, which a split leaves as they are."""
    d = Case("a", "b", device=8, host=8)
    d.serve("a", [1, 2, 3, 4], move=False)
    (backup,) = d.core.actions()
    d.release(d.acquire("b", [1, 2]))
    assert len(d.rows("split")) == 1
    d.answer(backup)
    arrived = [
        slot
        for row in d.rows("backup", "commit")
        for slot in range(row["slot_from"], row["slot_from"] + row["pages"])
    ]
    assert sorted(arrived) == sorted(owner & 0xFFFFFFFF for owner in backup.owners)
    (session,) = [s for s in d.core.replica.sessions() if s.name == "a"]
    assert (session.device_pages, session.host_pages) == (4, 4)


def test_every_page_hangs_where_an_earlier_row_said():
    """events-22: a parent is the root or a node that was told of, and ends where the page is."""
    d = Case("a", "b", device=32, page_size=4)
    for session, tokens in [
        ("a", range(18)),
        ("b", [*range(9), 50, 51, 52]),
        ("a", range(23)),
        ("b", [*range(20), 60, 61, 62, 63]),
    ]:
        d.serve(session, tokens)
    ends: dict[int, int] = {}
    for row in d.core.rows:
        if row["kind"] == "config" and row["phase"] == "namespace":
            ends[row["node"]] = 0
        elif row["kind"] == "split":
            ends[row["parent"]] = row["end_page"]
        elif row["kind"] == "insert":
            parent = row["parent"] if row["node"] != row["parent"] else row["node"]
            assert ends[parent] == row["end_page"] - row["pages"]
            ends[row["node"]] = row["end_page"]
    assert len(d.rows("insert")) == 4

"""Cases of storage, as far as the core decides them: keys, and moves that end late or never."""

import hashlib
import os
import subprocess
import sys
from array import array

import pytest

from cases.scenario import Case, Component, chain, key, pages
from runtime._core import UnknownOperation, page_digests


def stored(*tokens: int, **options: int) -> Case:
    """One session whose pages are in storage and nowhere else."""
    sizes = {"device": 16, "host": 16, "storage": 16} | options
    d = Case("a", "b", "c", **sizes)
    d.serve("a", tokens)
    d.demote("a")
    d.lose("full", *range(len(tokens)), tier="host")
    assert (d.at("device"), d.at("host")) == ([], [])
    assert d.at("storage") == list(range(len(tokens)))
    return d


def prefetch_of(d: Case, *tokens: int):
    found = d.acquire("a", tokens)
    assert found.storage_pages == len(tokens)
    d.core.restore(d.tick(), found.receipt)
    (prefetch,) = d.core.actions()
    return found, prefetch


def test_components_of_one_page_are_told_apart_below():
    """storage-02: they have one digest, and every move names its component."""
    swa = Component("swa", "swa", window=4, device=8, host=8, storage=8)
    d = Case("a", device=8, host=8, storage=8, components=[swa])
    d.serve("a", [1, 2, 3], move=False)
    moves = [move for move in d.finish() if move.kind == "offload"]
    objects = {(move.component, digest) for move in moves for digest in move.keys}
    assert objects == {(c, digest) for c in ("full", "swa") for digest in chain(1, 2, 3)}


def test_what_is_being_read_is_not_given_away_and_a_late_read_counts_for_nothing():
    """storage-06: a read that takes too long has failed, and until it ends its source stays."""
    d = stored(1, 2, storage=2, host=4, move_timeout=100)
    found, prefetch = prefetch_of(d, 1, 2)
    d.serve("b", [7, 8])
    assert d.resident("storage") == set(chain(1, 2))
    d.now += 200
    d.core.tick(d.now)
    d.release(found)
    (aborted,) = d.rows("prefetch", "abort")
    assert aborted["reason"] == "timeout"
    d.serve("c", [5, 6])
    assert d.resident("storage") == set(chain(1, 2))
    d.answer(prefetch)
    assert not d.resident("host") & set(chain(1, 2))
    assert d.fenced() == 0
    assert d.look("a", [1, 2]).storage_pages == 2


def test_pages_from_storage_go_to_their_own_place():
    """storage-07: a move names slots; a slot has its position, whatever was fetched with it."""
    tokens = range(6)
    d = stored(*tokens)
    found, prefetch = prefetch_of(d, *tokens)
    d.answer(prefetch)
    d.lose("full", 3, 4, 5, tier="host")
    again = d.acquire("a", tokens)
    assert (again.host_pages, again.storage_pages) == (3, 3)
    d.core.restore(d.tick(), again.receipt)
    load, prefetch = d.core.actions()
    assert (load.kind, load.positions, load.keys) == ("load", [0, 1, 2], chain(*tokens)[:3])
    assert (prefetch.positions, prefetch.keys) == ([3, 4, 5], chain(*tokens)[3:])
    d.answer(prefetch)
    d.answer(load)
    placed = {position: digest for _, _, position, digest in d.core.resident("host")}
    assert placed == dict(enumerate(chain(*tokens)))
    d.release(found)


def test_a_split_before_the_write_loses_no_part_of_it():
    """storage-09: what is written down are slots; the split moves them to another node, no more."""
    d = Case("a", "b", device=16, host=16, storage=16)
    d.serve("a", range(8), move=False)
    (backup,) = d.core.actions()
    half = d.acquire("b", range(7))
    assert [row["pages"] for row in d.rows("split")] == [7]
    d.answer(backup)
    (offload,) = d.core.actions()
    assert (offload.positions, offload.keys) == (list(range(8)), chain(*range(8)))
    assert d.at("storage") == []
    d.answer(offload)
    d.release(half)
    d.demote("a")
    d.lose("full", *range(8), tier="host")
    assert (d.at("device"), d.at("host")) == ([], [])
    found, prefetch = prefetch_of(d, *range(8))
    d.answer(prefetch)
    d.core.restore(d.tick(), found.receipt)
    d.finish()
    assert sum(n for *_, n in d.core.table(found.receipt)) == 8


def test_another_revision_of_the_weights_is_another_namespace():
    """storage-10: its pages have other digests, and matches look under their own root only."""
    d = Case("a", "b", device=8, namespace="m@d1")
    other = d.core.open_namespace(d.tick(), "m@d2")
    d.serve("a", [1, 2])
    for session, reason in [("a", "namespace_changed"), ("b", "never_stored")]:
        found = d.core.match(d.tick(), session, "r", array("I", [1, 2]), namespace=other)
        assert (found.pages, found.full_pages, found.reason) == (0, 0, reason)
    ours = {digest for name in ("m@d1",) for digest in page_digests([1, 2], 1, name)}
    assert d.resident("device") == ours
    found = d.acquire("b", [1, 2], namespace=other)
    d.write(found, [1, 2])
    assert d.resident("device") == ours | set(page_digests([1, 2], 1, "m@d2"))


def test_what_is_answered_late_or_twice_frees_nothing_twice():
    """storage-12: three of eight arrived; or it was given up, and eight are said to have come."""
    tokens = range(8)
    d = stored(*tokens, host=8)
    _, prefetch = prefetch_of(d, *tokens)
    d.core.complete(d.tick(), prefetch.op, bytes([1] * 3 + [0] * 5))
    assert (d.at("host"), d.free("host"), d.fenced()) == ([0, 1, 2], 5, 0)
    for late in (d.core.complete, d.core.complete):
        with pytest.raises(UnknownOperation):
            late(d.tick(), prefetch.op, bytes([1] * 8))
    assert (d.at("host"), d.free("host")) == ([0, 1, 2], 5)

    d = stored(*tokens, host=8)
    _, prefetch = prefetch_of(d, *tokens)
    d.core.abort(d.tick(), prefetch.op, "timeout")
    d.core.abort(d.tick(), prefetch.op, "timeout")
    assert (d.fenced(), d.free("host")) == (8, 0)
    d.answer(prefetch)
    assert (d.at("host"), d.free("host"), d.fenced()) == ([], 8, 0)


def test_a_retracted_request_leaves_its_pages_to_who_still_reads_them():
    """storage-15: a page that a move reads is not free, whoever gave up what."""
    d = Case("a", "b", device=4, host=4)
    found = d.acquire("a", [1, 2, 3])
    d.write(found, [1, 2, 3])
    (backup,) = d.core.actions()
    read = set(pages((slot, page, n) for slot, page, _, n in backup.runs))
    d.release(found)
    d.core.close_session(d.tick(), "a")
    other = d.acquire("b", [7, 8, 9, 10])
    got = d.core.reserve(d.tick(), other.receipt, 4)
    assert got.pages == 1
    assert not set(pages(got.runs)) & read
    d.answer(backup)
    assert set(chain(1, 2, 3)) == d.resident("host")
    assert d.core.reserve(d.tick(), other.receipt, 3).pages == 3


def test_whatever_stands_in_the_namespaces_name_stands_in_the_key():
    """storage-16: the format of the bytes, too: no page of one is asked for under the other."""
    names = ["m/bf16", "m/fp8", "m/bf16 ", "m", "m/bf1", "m/BF16"]
    found = [digest for name in names for digest in page_digests(range(8), 4, name)]
    assert len(set(found)) == len(found) == 2 * len(names)


def test_every_part_of_a_split_node_stays_while_it_is_written_to_storage():
    """storage-17: readers are counted by slot."""
    d = Case("a", "b", "c", device=16, host=4, storage=16)
    d.serve("a", [1, 2, 3, 4], move=False)
    (backup,) = d.core.actions()
    d.answer(backup)
    (offload,) = d.core.actions()
    d.release(d.acquire("c", [1, 2]))
    assert len(d.rows("split")) == 1
    d.serve("b", [5, 6, 7, 8], move=False)
    assert d.core.actions() == []
    assert d.resident("host") == set(chain(1, 2, 3, 4))
    d.answer(offload)
    assert d.resident("storage") == set(chain(1, 2, 3, 4))
    d.serve("b", [5, 6, 7, 8])
    assert d.resident("host") == set(chain(5, 6, 7, 8))


DIGESTS = (
    "from runtime._core import page_digests as p; print([k.hex() for k in p(range(4), 2, 'm')])"
)


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_keys_are_the_same_in_every_process(seed):
    """storage-18: the root follows from namespace and secret, which are configuration."""
    environment = os.environ | {"PYTHONHASHSEED": seed}
    said = subprocess.run(
        [sys.executable, "-c", DIGESTS], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert said.strip() == str([digest.hex() for digest in page_digests(range(4), 2, "m")])


def test_a_complaint_about_what_was_there_before_harms_nothing_that_is_there_now():
    """storage-19: a copy is named by slot and generation."""
    d = Case("a", "b", device=1)
    d.serve("a", [1])
    ((old, *_),) = d.core.resident("device")
    slot, generation = old & 0xFFFFFFFF, old >> 32
    d.core.close_session(d.tick(), "a")
    d.core, checked = d.core.core, d.core
    for token in range(2, 5000):  # until the number comes again
        d.serve("b", [token])
        ((new, *_),) = d.core.resident("device")
        if new & 0xFFFFFFFF == slot:
            break
    d.core = checked
    d.core.prove()
    assert new == (generation + 1) << 32 | slot
    assert not d.core.damaged(d.tick(), "device", slot, generation)
    assert d.resident("device") == {key(token)}
    assert d.core.damaged(d.tick(), "device", slot, generation + 1)
    assert d.resident("device") == set()


def test_keys_are_an_encoding_that_can_be_written_down():
    """storage-20: lengths before fields, ids of 32 bits, little-endian; nothing of Python's."""
    root = hashlib.sha256(b"kvctl-namespace-v1")
    for field in ("séance".encode(), b"\0s"):
        root.update(len(field).to_bytes(8, "little") + field)
    parent, expected = root.digest(), []
    for page in ([1, 2**32 - 1], [0, 7]):
        ids = b"".join(token.to_bytes(4, "little") for token in page)
        parent = hashlib.sha256(parent + ids).digest()
        expected.append(parent)
    assert page_digests([1, 2**32 - 1, 0, 7], 2, "séance", b"\0s") == expected


def test_a_write_that_never_ended_is_a_miss_and_is_written_again():
    """storage-22: given up in time, its space returned once, and the next turn stores it."""
    d = Case("a", device=4, host=4, storage=4, move_timeout=50)
    d.serve("a", [1], move=False)
    (backup,) = d.core.actions()
    d.answer(backup)
    (offload,) = d.core.actions()
    d.now += 100
    d.core.tick(d.now)
    assert d.rows("offload", "abort")[0]["reason"] == "timeout"
    assert (d.at("storage"), d.free("storage")) == ([], 3)
    d.answer(offload)
    assert (d.at("storage"), d.free("storage"), d.fenced()) == ([], 4, 0)
    d.serve("a", [1, 2])
    assert d.resident("storage") == {key(1), key(1, 2)}


def test_reading_a_page_keeps_it_longer():
    """storage-25: what is read stays where it was read from, and was used last."""
    d = Case("a", "b", "c", device=8, host=8, storage=2)
    d.serve("a", [1])
    d.serve("b", [2])
    for _ in range(2):
        for session in ("a", "b"):
            d.demote(session)
        d.lose("full", 0, tier="host")
        found, prefetch = prefetch_of(d, 1)
        d.answer(prefetch)
        d.core.restore(d.tick(), found.receipt)
        d.finish()
        d.release(found)
        assert d.resident("storage") == {key(1), key(2)}
    d.serve("c", [3])
    assert d.resident("storage") == {key(1), key(3)}


def test_a_time_limit_is_each_operations_own():
    """storage-26: full came, what goes beside it never does: ready is what both have."""
    draft = Component("draft", "sidecar", follows="full", device=8, host=8)
    d = Case("a", device=8, host=8, components=[draft], move_timeout=1000)
    d.serve("a", [1, 2])
    d.demote("a")
    found = d.acquire("a", [1, 2])
    assert d.core.restore(d.tick(), found.receipt).pending == 4
    loads = {load.component: load for load in d.core.actions()}
    d.now += 200
    d.answer(loads["full"])
    assert d.core.restore(d.tick(), found.receipt).pending == 2
    d.now += 1300
    d.core.tick(d.now)
    assert [row["op"] for row in d.rows("load", "abort")] == [loads["draft"].op]
    restored = d.core.restore(d.tick(), found.receipt)
    assert (restored.ready, restored.pending) == (0, 0)
    d.answer(loads["draft"])
    assert (d.at("device", "draft"), d.fenced()) == ([], 0)

"""Whatever is passed over the boundary: a typed refusal that changes nothing, never a panic."""

import hashlib
import math
import random
import threading
from array import array

import numpy as np
import pytest
from driver import Driver

from runtime import _core
from runtime._core import BadArgument, Core, CoreError, Replica

REFUSALS = (CoreError, TypeError, OverflowError)
UNSPEAKABLE = "\ud800"
"""A str that UTF-8 cannot say: what `json.loads` makes of a lone surrogate."""

HOSTILE = {
    "now": [2**63, 1.5, math.nan, "1", None, []],
    "name": [UNSPEAKABLE, b"s", None, 3, ["s"]],
    "session": ["nobody", "", UNSPEAKABLE, b"s", None, 3],
    "tier": ["gpu", "", "Device", UNSPEAKABLE, None, 0],
    "id": [0, 999, 2**64 - 1, 2**64, -1, 1.0, "1", None],
    "count": [-1, 2**32, 2**70, 1.5, math.nan, "1", None],
    "start": [7, 2**32 - 1, -1, 2**32, 1.5, None],
    "grid": [0, -1, 2**32, 0.5, None],
    "ttl": [0, -1, -(2**63), 2**63, math.inf, None],
    "results": [b"", b"\x01" * 9, b"\x03\x01", [1, 256], [1.0, 1], "ab", None, 2],
    "reason": ["because", UNSPEAKABLE, b"aborted", None, 1],
    "tokens": [
        None,
        3,
        1.5,
        "abc",
        b"\x01\0\0\0",
        bytearray(8),
        memoryview(b"\x01\0\0\0"),
        [1.5],
        ["1"],
        [None],
        [-1],
        [2**32],
        [2**70],
        {1, 2},
        {1: 2},
        (n for n in [1]),
        object(),
        array("d", [1.0]),
        array("i", [-1]),
        np.array([-1]),
        np.array([2**40]),
        np.array([1.0], dtype=np.float32),
        np.array([math.nan]),
        np.array([1, 2], dtype=">u4"),
        np.array([[1, 2], [3, 4]], dtype=np.uint32),
        np.array([[1, 2], [3, 4]]),
        np.arange(8, dtype=np.uint32)[::2],
        np.arange(8)[::2],
        np.arange(8, dtype=np.uint32)[::-1],
        np.array(1, dtype=np.uint32),
        np.array(["a"]),
        np.array([1, None]),
    ],
}


class World(Driver):
    """One of everything: a lock, a reservation, a move, a lease."""

    def __init__(self) -> None:
        super().__init__("s", device=8, host=8, storage=8)
        self.core.open_session(self.tick(), "empty")
        self.lease = self.serve("s", [1, 2]) and self.pin("s").lease
        self.found = self.acquire("s", [1, 2, 3, 4])
        self.got = self.core.reserve(self.tick(), self.found.receipt, 2)
        other = self.acquire("s", [7, 8])
        self.write(other, [7, 8])
        (self.move,) = self.core.actions()

    def commands(self) -> dict[str, list[tuple[str, object]]]:
        """Every command with arguments that it takes: (kind, value)."""
        now, session = ("now", 10**6), ("session", "s")
        name, tokens = ("name", "x"), ("tokens", array("I", [1, 2, 3, 4]))
        receipt, op = ("id", self.found.receipt), ("id", self.got.op)
        return {
            "open_session": [now, ("name", "new")],
            "close_session": [now, session],
            "match": [now, session, name, tokens],
            "acquire": [now, session, name, tokens],
            "release": [now, receipt],
            "restore": [now, receipt],
            "table": [receipt],
            "keys": [receipt],
            "copies": [receipt],
            "reserve": [now, receipt, ("count", 1)],
            "commit": [now, op, tokens, ("start", 2), ("count", 1)],
            "abort": [now, op, ("reason", "aborted")],
            "complete": [now, ("id", self.move.op), ("results", b"\1\1")],
            "damaged": [now, ("tier", "host"), ("count", 1), ("count", 1)],
            "resident": [("tier", "host")],
            "pin": [now, session, ("tier", "host"), ("ttl", 9), name],
            "unpin": [now, ("id", self.lease)],
            "demote": [now, session, name],
            "prefetch": [now, session, name],
            "flush": [now, session, name],
            "tick": [now],
            "session": [session],
            "note": [now, ("reason", "request"), ("reason", "arrival")],
        }


COMMANDS = sorted(World().commands())


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_hostile_argument_is_refused_and_changes_nothing(verb):
    world = World()
    arguments = world.commands()[verb]
    before = world.core.state_hash(), world.core.seq()
    for place, (kind, _) in enumerate(arguments):
        for hostile in HOSTILE[kind]:
            values = [value for _, value in arguments]
            values[place] = hostile
            with pytest.raises(REFUSALS):
                getattr(world.core, verb)(*values)
            assert (world.core.state_hash(), world.core.seq()) == before, (kind, hostile)
    for wrong in ([], [value for _, value in arguments] + [1] * 9):
        with pytest.raises(TypeError):
            getattr(world.core, verb)(*wrong)
    getattr(world.core, verb)(*[value for _, value in arguments])
    world.core.check()


def test_a_hostile_option_is_refused():
    world = World()
    core, tokens = world.core, array("I", [1, 2])
    before = core.state_hash(), core.seq()
    for grid in HOSTILE["grid"]:
        with pytest.raises(REFUSALS):
            core.acquire(1, "s", "r", tokens, grid=grid)
    for option in ("bytes", "duration"):
        for value in (2**64, 1.5, None):
            with pytest.raises(REFUSALS):
                core.complete(1, world.move.op, b"\1\1", **{option: value})
    for option, value in [
        ("session", UNSPEAKABLE),
        ("detail", UNSPEAKABLE),
        ("reason", "because"),
        ("tier_to", "gpu"),
        ("slot", -1),
        ("tokens", -1),
        ("tokens", 2**63),
        ("duration", 2**63),
        ("nothing", 1),
    ]:
        with pytest.raises(REFUSALS):
            core.note(1, "request", "arrival", **{option: value})
    for kind in ("match", "evict", "config", "", "nothing"):
        with pytest.raises(BadArgument):
            core.note(1, kind, "arrival")
    assert (core.state_hash(), core.seq()) == before


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("engine", ["", UNSPEAKABLE, b"e", None, 1]),
        ("epoch", ["", UNSPEAKABLE, None]),
        ("namespace", ["", UNSPEAKABLE, None]),
        ("page_size", [0, -1, 65_537, 2**32, 1.5, None]),
        ("device", [0, -1, 2**30 + 1, 2**32, None]),
        ("host", [-1, 2**32, 0.5]),
        ("storage", [-1, 5, 2**32]),  # 5: there is no host to reach it through
        ("pin_share", [-0.1, 1.1, math.nan, math.inf, "half", None]),
        ("secret", ["text", None, 5]),
        ("now", [2**63, 0.5, None]),
        ("ghosts", [-1, 2**32]),
        ("log_rows", [-1, 2**32]),
        ("colour", ["red"]),
    ],
)
def test_a_core_that_cannot_be_is_refused(option, values):
    good = {"engine": "e", "epoch": "1", "namespace": "n", "page_size": 2, "device": 4}
    for value in values:
        with pytest.raises(REFUSALS):
            Core(**{**good, option: value})
    with pytest.raises(TypeError):
        Core(*good.values())


def test_everything_ends_once():
    world = World()
    core, found, got, move = world.core, world.found, world.got, world.move
    core.commit(1, got.op, array("I", [1, 2, 3]), 2, 1)
    core.complete(1, move.op, b"\1\0")
    core.release(1, found.receipt)
    core.unpin(1, world.lease)
    before = core.state_hash(), core.seq()
    for refusal, again in [
        (_core.UnknownOperation, lambda: core.commit(1, got.op, array("I", [1, 2, 3]), 2, 1)),
        (_core.UnknownOperation, lambda: core.abort(1, got.op)),
        (_core.UnknownOperation, lambda: core.complete(1, move.op, b"\1\1")),
        (_core.UnknownOperation, lambda: core.abort(1, move.op)),
        (_core.UnknownReceipt, lambda: core.release(1, found.receipt)),
        (_core.UnknownReceipt, lambda: core.restore(1, found.receipt)),
        (_core.UnknownReceipt, lambda: core.reserve(1, found.receipt, 1)),
        (_core.UnknownReceipt, lambda: core.table(found.receipt)),
        (_core.UnknownLease, lambda: core.unpin(1, world.lease)),
    ]:
        with pytest.raises(refusal):
            again()
        assert (core.state_hash(), core.seq()) == before
    core.check()


def test_a_reservation_is_no_move_and_a_move_is_no_reservation():
    world = World()
    before = world.core.state_hash()
    with pytest.raises(_core.UnknownOperation):
        world.core.complete(1, world.got.op, b"\1\1")
    with pytest.raises(_core.UnknownOperation):
        world.core.commit(1, world.move.op, array("I", [7, 8]), 0, 2)
    assert world.core.state_hash() == before


def test_a_lease_that_expired_cannot_be_given_back():
    d = Driver("s", device=8)
    d.serve("s", [1])
    lease = d.pin("s", "device", ttl=10).lease
    assert d.core.tick(d.now + 9) == 0
    assert d.core.tick(d.now + 10) == 1
    with pytest.raises(_core.UnknownLease):
        d.core.unpin(d.tick(), lease)
    assert d.core.pools()[0].leased == 0


def test_tokens_are_the_same_in_whatever_holds_them():
    values = [5, 0, 2**31 - 1, 7]
    d = Driver("s", device=8)
    d.serve("s", values)
    unaligned = np.frombuffer(b"\0" + np.array(values, dtype=np.uint32).tobytes(), np.uint8)[1:]
    for tokens in [
        values,
        tuple(values),
        array("I", values),
        array("i", values),
        array("q", values),
        memoryview(array("I", values)),
        np.array(values, dtype=np.uint32),
        np.array(values, dtype=np.int32),
        np.array(values),
        np.arange(0, 8, dtype=np.uint32)[2:2],
        unaligned.view(np.uint32),
    ]:
        assert d.look("s", [])  # an empty prompt is one too
        found = d.core.match(d.tick(), "s", "r", tokens)
        assert found.pages == len(tokens), tokens
    assert d.core.match(d.tick(), "s", "r", [2**32 - 1]).pages == 0


def test_tokens_are_copied():
    d = Driver("s", device=4)
    tokens = np.array([1, 2, 3], dtype=np.uint32)
    found = d.core.acquire(d.tick(), "s", "r", tokens)
    got = d.core.reserve(d.tick(), found.receipt, 3)
    d.core.commit(d.tick(), got.op, tokens, 0, 3)
    tokens[:] = 9
    assert d.look("s", [1, 2, 3]).pages == 3


def test_page_digests_are_a_chain_that_starts_at_namespace_and_secret():
    tokens = [1, 2, 3, 4, 5]
    first, second = _core.page_digests(array("I", tokens), 2, "n", b"s")
    assert second == hashlib.sha256(first + np.array([3, 4], "<u4").tobytes()).digest()
    others = [("n", b""), ("ns", b""), ("", b"ns"), ("n", b"s\0"), ("n\0", b"s")]
    firsts = {_core.page_digests([1, 2], 2, *seed)[0] for seed in others}
    assert len(firsts | {first}) == 6
    assert _core.page_digests([1], 2, "n") == []
    with pytest.raises(BadArgument):
        _core.page_digests([1], 0, "n")
    for wrong in (("x", 2, "n"), ([1], -1, "n"), ([1], 2, UNSPEAKABLE), ([1], 2, "n", "s")):
        with pytest.raises(REFUSALS):
            _core.page_digests(*wrong)


def test_content_is_hashed_as_bytes_whatever_they_are():
    data = np.arange(12, dtype=np.float32)
    expected = _core.content_hash(data.tobytes())
    for same in (data, data.reshape(3, 4), data.view(np.uint8), array("f", data), memoryview(data)):
        assert _core.content_hash(same) == expected
    assert _core.content_hash(b"") == _core.content_hash(bytearray())
    for wrong in (data[::2], data.reshape(3, 4).T, "text", None, 1, [1, 2]):
        with pytest.raises((*REFUSALS, BufferError)):
            _core.content_hash(wrong)


def test_many_threads_at_once_leave_one_log_that_folds():
    d = Driver(*"abcd", device=16, host=16, storage=16)
    core, log, replica = d.core, d.core.log(), Replica()
    stop, faults = threading.Event(), []

    def guard(work):
        def run():
            try:
                work()
            except Exception as fault:
                faults.append(fault)

        return threading.Thread(target=run)

    def engine(session: str, seed: int) -> None:
        rng = random.Random(seed)
        for now in range(150):
            tokens = array("I", [rng.randrange(2) for _ in range(rng.randrange(8))])
            found = core.acquire(now, session, "r", tokens)
            core.restore(now, found.receipt)
            got = core.reserve(now, found.receipt, len(tokens) - found.pages)
            core.commit(now, got.op, tokens, found.pages, got.pages)
            core.release(now, found.receipt)
            for action in core.actions():
                core.complete(now, action.op, bytes(rng.randrange(3) for _ in range(action.pages)))
            core.demote(now, session, "o")

    def fold() -> None:
        while not stop.is_set() or log.pending():
            if message := log.drain(7):
                assert replica.fold(message.payload) == message.state_hash

    def watch() -> None:
        while not stop.is_set():
            core.check()
            core.sessions(), core.pools(), replica.pools(), replica.sessions(), replica.check()

    engines = [guard(lambda s=s, i=i: engine(s, i)) for i, s in enumerate("abcd")]
    others = [guard(fold), guard(watch)]
    for thread in engines + others:
        thread.start()
    for thread in engines:
        thread.join()
    stop.set()
    for thread in others:
        thread.join()
    assert faults == []
    core.check()
    assert replica.state_hash() == core.state_hash()


def test_a_journal_that_is_no_journal_is_refused():
    d = Driver("s", device=4, host=4, journal=True)
    d.serve("s", [1, 2])
    d.pin("s")
    journal = d.core.journal()
    assert Core.replay(journal).state_hash() == d.core.state_hash()
    for wrong in (b"", b"journal", journal[:20], journal[1:], journal + b"\0"):
        with pytest.raises(CoreError):
            Core.replay(wrong)
    for wrong in (None, "text", 3):
        with pytest.raises(TypeError):
            Core.replay(wrong)
    for place in range(len(journal)):
        for flip in (0x01, 0x80):
            broken = bytearray(journal)
            broken[place] ^= flip
            assert "internal" not in refusal_of(bytes(broken)), (place, flip)


def refusal_of(journal: bytes) -> str:
    try:
        Core.replay(journal).check()
    except CoreError as refusal:
        return str(refusal)
    return ""

"""Whatever is passed over the boundary: a typed refusal that changes nothing, never a panic."""

import random
import threading
from array import array

import pytest
from driver import Driver
from hostile_arguments import Argument, refused_everywhere
from played import PIECE_HEADER_BYTES

from runtime import _core
from runtime._core import BadArgument, Component, Core, CoreError, LogError, Replica


class World(Driver):
    """One of everything: components, a lock, a reservation, a move, a lease, two namespaces."""

    def __init__(self) -> None:
        room = {"device": 8, "host": 8}
        components = [
            Component("swa", "swa", window=2, **room),
            Component("c2", "spans", ratio=1),
            Component("indexer", "sidecar", follows="full", **room),
        ]
        tiers = {"host": 8, "storage": 8, "write_through": False}
        super().__init__("s", device=8, components=components, **tiers)
        self.core.open_session(self.tick(), "empty")
        self.space = self.core.open_namespace(self.tick(), "adapter")
        self.serve("s", [1, 2])
        self.lease = self.pin("s").lease
        (self.move, *_) = self.core.actions()
        self.found = self.acquire("s", [1, 2, 3, 4])
        self.got = self.core.reserve(self.tick(), self.found.receipt, 2)
        other = self.acquire("s", [7, 8])
        self.write(other, [7, 8])
        self.release(other)
        self.serve("s", [1, 2], move=False)

    def commands(self) -> dict[str, tuple[list[Argument], dict[str, Argument]]]:
        """Every command with arguments and options that it takes."""
        now, session = ("now", 10**6), ("session", "s")
        name, owner, tokens = ("name", "x"), ("name", "o"), ("tokens", array("I", [1, 2, 3, 4]))
        receipt, op = ("id", self.found.receipt), ("id", self.got.op)
        component, ttl, tier = ("component", "swa"), ("ttl", 9), ("tier", "host")
        find = {"skip": ("skip", 0), "namespace": ("namespace", 0)}
        note = {
            "session": name, "request": name, "detail": name, "reason": ("reason", "read"),
            "cause": ("u64", 1), "op": ("u64", 1), "slot": ("slot", 1), "pages": ("count", 1),
            "tokens": ("count", 1), "bytes": ("u64", 1), "duration": ("i64", 1),
            "tier_from": ("tier or none", ""), "tier_to": ("tier or none", "host"),
        }  # fmt: skip
        return {
            "open_namespace": ([now, ("new", "other")], {}),
            "retire": ([now, ("namespace", self.space)], {}),
            "open_session": (
                [now, ("new", "child"), ("parent", "s")],
                {"group": ("name", "g"), "priority": ("priority", -3)},
            ),
            "close_session": ([now, session], {}),
            "close_group": ([now, ("name", "g")], {}),
            "expect": ([now, session, ("at", -5)], {}),
            "match": ([now, session, name, tokens], find),
            "acquire": ([now, session, name, tokens], {**find, "grid": ("grid", 1)}),
            "hold": ([now, receipt], {}),
            "release": ([now, receipt], {}),
            "restore": ([now, receipt], {}),
            "table": ([receipt], {"component": component}),
            "keys": ([receipt], {}),
            "copies": ([receipt], {"component": component}),
            "reserve": ([now, receipt, ("count", 1)], {"start": ("start or end", 1)}),
            "commit": ([now, op, tokens, ("start", 2), ("count", 1)], {"skip": ("skip", 0)}),
            "evict": ([now, tier, ("count", 1)], {"component": component}),
            "abort": ([now, op, ("reason", "aborted")], {}),
            "complete": (
                [now, ("id", self.move.op), ("results", b"\1\1")],
                {"bytes": ("u64", 1), "duration": ("i64", 1), "detail": name},
            ),
            "damaged": ([now, tier, ("count", 1), ("count", 1)], {}),
            "resident": ([tier], {"session": ("parent", "s"), "component": component}),
            "user": ([("count", 1)], {}),
            "pin": ([now, session, tier, ttl, owner], {}),
            "unpin": ([now, ("id", self.lease)], {}),
            "retain": ([now, session, ttl, owner], {}),
            "share": ([now, session, ("forks", 1), ttl, owner], {}),
            "demote": ([now, session, owner], {}),
            "prefetch": ([now, session, owner], {}),
            "flush": ([now, session, owner], {}),
            "tick": ([now], {}),
            "session": ([session], {}),
            "note": ([now, ("reason", "request"), ("reason", "arrival")], note),
        }


COMMANDS = sorted(World().commands())
WITHOUT_ARGUMENTS = {
    "actions", "check", "drain_journal", "journal", "keyframe_begin", "log", "observed_hash",
    "policy_faults",
    "pools", "seq", "sessions", "state_hash",
}  # fmt: skip
ELSEWHERE = {"observe", "forget", "replay", "keyframe_slice"}
"""Tried in test_boundary_observed.py, in test_keyframes.py and, here, with journals."""


def test_every_method_is_tried():
    methods = {name for name in dir(Core) if not name.startswith("_")}
    assert methods == WITHOUT_ARGUMENTS | ELSEWHERE | set(COMMANDS)


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_hostile_argument_is_refused_and_changes_nothing(verb):
    world = World()
    refused_everywhere(world.core, verb, *world.commands()[verb])


def test_only_notes_of_the_shell_are_taken():
    core = World().core
    for kind in ("match", "evict", "config", "", "nothing"):
        with pytest.raises(BadArgument):
            core.note(1, kind, "arrival")


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
        with pytest.raises(LogError, match=r"piece 1|not a journal"):
            Core.replay(journal[:place] + bytes([journal[place] ^ 1]) + journal[place + 1 :])
    undivided = journal[PIECE_HEADER_BYTES:]  # what no checksum guards
    for place in range(len(undivided)):
        for flip in (0x01, 0x80):
            broken = bytearray(undivided)
            broken[place] ^= flip
            assert "internal" not in refusal_of(bytes(broken)), (place, flip)


def refusal_of(journal: bytes) -> str:
    try:
        Core.replay(journal).check()
    except CoreError as refusal:
        return str(refusal)
    return ""

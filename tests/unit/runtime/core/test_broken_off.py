"""What is cut off or overtaken in the middle: commands, copies, moments."""

import signal
import sys
import types
from array import array
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pytest
from driver import Driver

from runtime._core import Component, Core, Log, Replica


def parts_of(source: Core | Replica) -> list[bytes]:
    source.keyframe_begin()
    return list(iter(source.keyframe_slice, None))


def core_of(**changes) -> Core:
    settings = {"engine": "e", "epoch": "1", "namespace": "m", "page_size": 1, "device": 8}
    return Core(**(settings | changes))


def serve(core: Core, now: int, tokens: list[int]) -> None:
    held = core.acquire(now, "s", "r", tokens)
    grant = core.reserve(now, held.receipt, len(tokens) - held.pages)
    core.commit(now, grant.op, tokens, held.pages, grant.pages)
    core.release(now, held.receipt)


def fold(log: Log, replica: Replica, rows: int) -> None:
    while message := log.drain(rows):
        replica.fold(message.payload)


def windows(**changes) -> tuple[Core, Log, Replica]:
    core = core_of(components=[Component("swa", "swa", **changes)])
    core.open_session(1, "s")
    return core, core.log(), Replica()


def test_a_replica_between_two_rows_of_one_command_has_a_keyframe_and_is_sound():
    core, log, replica = windows(window=2, device=4)
    for turn in range(30):
        serve(core, turn + 2, [turn, 1, 2, 3])
        while message := log.drain(1):
            replica.fold(message.payload)
            replica.check()
            assert Replica.from_keyframe(parts_of(replica)).state_hash() == replica.state_hash()


def test_a_replica_of_windows_does_not_grow():
    core = core_of(device=4096, components=[Component("swa", "swa", window=1000, device=4096)])
    core.open_session(1, "s")
    log, replica, tokens = core.log(), Replica(), list(range(1000))

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4

    def turns(count: int) -> None:
        for turn in range(count):
            serve(core, turn + 2, tokens)
            fold(log, replica, 4096)

    turns(200)
    before = resident()
    turns(600)
    assert resident() - before < 6_000, "KiB; what changed is not forgotten"


def test_what_was_read_from_a_copy_that_is_found_damaged_has_not_arrived():
    d = Driver("a", device=4, host=4, storage=4)
    d.serve("a", [1, 2], move=False)
    (backup,) = d.core.actions()
    d.answer(backup)
    (offload,) = d.core.actions()
    slot, generation = offload.owners[0] & 0xFFFFFFFF, offload.owners[0] >> 32
    assert d.core.damaged(d.tick(), "host", slot, generation)
    d.answer(offload)
    assert len(d.resident("storage")) == 1
    d.core.check()


def test_tokens_of_a_row_do_not_wrap():
    core = core_of(page_size=65_536, device=65_536, key="digests")
    core.open_session(1, "s")
    key = b"".join(page.to_bytes(32, "little") for page in range(65_536))
    held = core.acquire(1, "s", "r", key)
    grant = core.reserve(1, held.receipt, 65_536)
    core.commit(1, grant.op, key, 0, grant.pages)
    found = core.match(2, "s", "r", key)
    assert found.pages == 65_536
    message = core.log().drain(10**6)
    assert message
    rows = pa.ipc.open_stream(message.payload).read_all().to_pylist()
    assert [r["tokens"] for r in rows if r["kind"] == "insert"] == [1 << 32]
    assert rows[-1]["device_tokens"] == 1 << 32


@pytest.fixture
def own_policy(monkeypatch):
    module = types.ModuleType("policy_of_a_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    class Own:
        hook = staticmethod(lambda: None)

        def on_insert(self, item, facts):
            self.hook()
            return facts.last_use

        on_hit = on_insert

        def on_remove(self, item, identity, evicted):
            pass

    module.Own = Own
    return Own


def test_tokens_that_a_policy_overwrites_are_those_that_were_given(own_policy):
    core = core_of(page_size=2, policies={"device": "policy_of_a_test:Own"}, journal=True)
    core.open_session(1, "s")
    tokens = array("I", [1, 2, 3, 4])

    def overwrite() -> None:
        tokens[:] = array("I", [77] * 4)

    held = core.acquire(1, "s", "r", tokens)
    grant = core.reserve(1, held.receipt, 2)
    own_policy.hook = staticmethod(overwrite)
    core.commit(2, grant.op, tokens, 0, 2)
    own_policy.hook = staticmethod(lambda: None)
    assert core.match(3, "s", "q", [1, 2, 3, 4]).pages == 2
    assert core.match(3, "s", "q", [77] * 4).pages == 0
    again = Core.replay(core.journal(), policies=True)
    assert again.state_hash() == core.state_hash()


def test_an_interrupt_in_a_policy_is_for_the_caller_and_costs_it_nothing(own_policy):
    core = core_of(policies={"device": "policy_of_a_test:Own"})
    core.open_session(1, "s")

    def interrupted() -> None:
        own_policy.hook = staticmethod(lambda: None)
        signal.raise_signal(signal.SIGINT)

    own_policy.hook = staticmethod(interrupted)
    with pytest.raises(KeyboardInterrupt):
        serve(core, 2, [1, 2])
    assert core.policy_faults() == []
    core.check()

"""A keyframe is cut while commands go on, and a replica made of it goes on folding."""

import pytest
from driver import Driver

from runtime._core import BadArgument, Core, LogError, Message, Replica


def parts_of(source: Core | Replica, records: int = 4096) -> list[bytes]:
    source.keyframe_begin()
    return list(iter(lambda: source.keyframe_slice(records), None))


def folded(message: Message) -> Replica:
    replica = Replica()
    replica.fold(message.payload)
    return replica


def test_a_replica_made_of_a_keyframe_folds_what_comes_after_it():
    d = Driver("s", device=8, host=8)
    d.serve("s", [1, 2, 3])
    before = d.core.log().drain()
    seq, then = d.core.keyframe_begin(), d.core.state_hash()
    assert seq == d.core.seq()
    parts = [d.core.keyframe_slice(1)]
    while (part := d.core.keyframe_slice(1)) is not None:
        parts.append(part)
        d.serve("s", [1, 2, 3, len(parts)])
    assert d.core.keyframe_slice() is None

    replica = Replica.from_keyframe(parts)
    assert (replica.engine, replica.epoch) == (folded(before).engine, folded(before).epoch)
    assert (replica.seq(), replica.state_hash()) == (seq, then)
    replica.check()
    after = d.core.log().drain(1 << 16)
    assert replica.fold(before.payload) == then
    assert replica.fold(after.payload) == d.core.state_hash()
    replica.check()


def test_the_collector_cuts_from_its_replica_what_the_engine_would_cut():
    d = Driver("s", device=8, host=8)
    d.serve("s", [1, 2, 3])
    replica = folded(d.core.log().drain())
    for records in (1, 7, 4096):
        assert parts_of(replica, records) == parts_of(d.core, records)
    again = Replica.from_keyframe(parts_of(replica))
    assert parts_of(again) == parts_of(replica)


def test_what_is_no_keyframe_is_refused():
    d = Driver("s", device=8)
    d.serve("s", [1, 2, 3])
    parts = parts_of(d.core, 2)
    for wrong in ([], [b""], parts[1:], parts[:-1], [*parts, parts[-1]], [parts[0], b"\xff" * 40]):
        with pytest.raises(LogError):
            Replica.from_keyframe(wrong)
    with pytest.raises(TypeError):
        Replica.from_keyframe([1])
    with pytest.raises(BadArgument):
        d.core.keyframe_slice(0)
    with pytest.raises(LogError):
        Replica().keyframe_begin()
    assert Replica().keyframe_slice() is None

"""A replica meets messages that are broken, late, doubled or not its own."""

import os
import re
from collections.abc import Callable
from functools import cache

import pyarrow as pa
import pyarrow.compute
import pyarrow.ipc
import pytest
from driver import Driver

from runtime._core import Core, LogError, Replica


@cache
def journal() -> bytes:
    """Of a core that has done a bit of everything."""
    d = Driver("a", "b", device=4, host=4, storage=6, page_size=1, journal=True)
    d.serve("a", [1, 2, 3])
    d.serve("a", [1, 2, 4])
    d.pin("a")
    d.serve("b", [7, 8, 9])
    found = d.acquire("a", [1, 2, 3])
    d.core.restore(d.tick(), found.receipt)
    d.finish(result=2)
    d.core.reserve(d.tick(), found.receipt, 1)
    d.demote("b")
    d.core.note(d.tick(), "tool", "start", session="a", detail="ls")
    d.flush("b")
    return d.core.journal()


def messages(rows: int) -> list[bytes]:
    log = Core.replay(journal()).log()
    return [message.payload for message in iter(lambda: log.drain(rows), None)]


def rewritten(payload: bytes, change: Callable[[pa.Table], pa.Table]) -> bytes:
    with pa.ipc.open_stream(payload) as reader:
        table = change(reader.read_all())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def with_metadata(payload: bytes, **changes: str) -> bytes:
    def change(table: pa.Table) -> pa.Table:
        return table.replace_schema_metadata({**table.schema.metadata, **changes})

    return rewritten(payload, change)


EVERY = 1 if os.environ.get("KVCTL_SOAK") else 7
"""Which bytes to flip."""
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
FINAL = Core.replay(journal()).state_hash()


@pytest.fixture
def replica() -> Replica:
    """One that has folded all but the last message."""
    replica = Replica()
    for payload in messages(20)[:-1]:
        replica.fold(payload)
    return replica


def refused(replica: Replica, payload: bytes) -> None:
    """The message is refused and has changed nothing; the right one still folds."""
    before = replica.seq(), replica.state_hash(), replica.engine, replica.epoch
    with pytest.raises(LogError):
        replica.fold(payload)
    assert (replica.seq(), replica.state_hash(), replica.engine, replica.epoch) == before


def test_rewriting_a_message_keeps_what_it_says(replica):
    last = messages(20)[-1]
    assert replica.fold(rewritten(last, lambda table: table)) == FINAL


@pytest.mark.parametrize("rows", [1, 3, 50, 10_000])
def test_the_fold_is_the_same_however_rows_are_batched(rows):
    replica = Replica()
    for payload in messages(rows):
        replica.fold(payload)
    assert replica.state_hash() == FINAL
    replica.check()


def test_messages_again_or_overlapping_are_skipped_as_far_as_they_are_known():
    replica = Replica()
    for small in messages(7)[:5]:
        assert replica.fold(small) == replica.fold(small)
    for large in messages(20):
        replica.fold(large)
    assert replica.state_hash() == FINAL
    for payload in reversed(messages(9)):
        assert replica.fold(payload) == FINAL


def test_a_message_out_of_order_is_refused_and_waited_for():
    replica, payloads = Replica(), messages(10)
    for i, payload in enumerate(payloads):
        for late in payloads[i + 1 :]:
            refused(replica, late)
        replica.fold(payload)
    assert replica.state_hash() == FINAL


@pytest.mark.parametrize("field", ["engine", "epoch"])
def test_a_message_of_another_life_is_refused(replica, field):
    last = messages(20)[-1]
    refused(replica, with_metadata(last, **{field: "another"}))
    assert replica.fold(last) == FINAL


def test_every_truncation_is_refused(replica):
    last = messages(20)[-1]
    for length in range(len(last) - len(END_OF_STREAM)):
        refused(replica, last[:length])
    assert replica.fold(last) == FINAL


@pytest.mark.parametrize("wrong", [None, "text", 3, [1], bytearray(b"x")])
def test_what_is_no_bytes_is_a_type_error(replica, wrong):
    with pytest.raises(TypeError):
        replica.fold(wrong)
    assert replica.fold(messages(20)[-1]) == FINAL


@pytest.mark.parametrize("flip", [0x01, 0x10, 0x80, 0xFF])
def test_a_flipped_byte_is_refused_or_changes_no_state(flip):
    """Refused with nothing changed, or for good; never a crash, never another state."""
    payload = messages(60)[0]
    expected = Replica().fold(payload)
    for place in range(flip % EVERY, len(payload), EVERY):
        broken = bytearray(payload)
        broken[place] ^= flip
        replica = Replica()
        for message in (bytes(broken), payload):
            try:
                assert replica.fold(message) == expected, place
            except LogError as refusal:
                for_good = str(refusal)
            else:
                for_good = ""
        if for_good:
            with pytest.raises(LogError, match=re.escape(for_good)):
                replica.fold(payload)
        replica.sessions(), replica.pools()


def test_numbers_out_of_all_proportion_are_refused_and_not_made_room_for():
    (payload,) = messages(10_000)
    rows = pa.ipc.open_stream(payload).read_all()
    huge = [2**31, 2**32 - 1]
    for name in ("slot_from", "page_from", "pages", "end_page", "node", "parent", "namespace"):
        for place, value in enumerate(rows[name].to_pylist()):
            for number in huge if value is not None else []:

                def change(table, name=name, place=place, number=number) -> pa.Table:
                    values = table[name].to_pylist()
                    values[place] = number
                    column = pa.array(values, table[name].type)
                    index = table.schema.get_field_index(name)
                    return table.set_column(index, table.schema.field(index), column)

                replica = Replica()
                try:
                    assert replica.fold(rewritten(payload, change)) == FINAL
                except LogError:
                    replica.sessions(), replica.pools()


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": "7"},
        {"rows": "99999999999999999999"},
        {"rows": "18446744073709551615"},
        {"rows": "-1"},
        {"first": "1"},
        {"first": "18446744073709551615"},
        {"first": "x"},
        {"state_hash": "x"},
        {"state_hash": ""},
        {"dropped": "many"},
    ],
)
def test_an_envelope_that_does_not_fit_its_rows_is_refused(replica, changes):
    last = messages(20)[-1]
    refused(replica, with_metadata(last, **changes))
    assert replica.fold(last) == FINAL


def test_a_message_whose_state_does_not_come_out_ends_the_replica(replica):
    last = messages(20)[-1]
    with pytest.raises(LogError, match="hash"):
        replica.fold(with_metadata(last, state_hash="0" * 32))
    with pytest.raises(LogError):
        replica.fold(last)
    fresh = Replica()
    for payload in messages(20):
        fresh.fold(payload)
    assert fresh.state_hash() == FINAL


@pytest.mark.parametrize("order", [[0, 2], [0, 0], [0, 2, 1], [1, 2]])
def test_rows_left_out_or_doubled_within_a_message_are_refused(replica, order):
    chosen = rewritten(messages(20)[-1], lambda table: table.take(order))
    with pytest.raises(LogError):
        replica.fold(with_metadata(chosen, rows=str(len(order))))


def test_columns_of_a_newer_log_are_ignored(replica):
    def add(table: pa.Table) -> pa.Table:
        return table.append_column("future", pa.array(range(table.num_rows)))

    assert replica.fold(rewritten(messages(20)[-1], add)) == FINAL


@pytest.mark.parametrize("name", ["seq", "clock", "kind"])
def test_a_row_without_its_essentials_is_refused(replica, name):
    last = messages(20)[-1]
    refused(replica, rewritten(last, lambda table: table.drop_columns([name])))
    assert replica.fold(last) == FINAL


def test_a_column_of_another_type_is_refused(replica):
    last = messages(20)[-1]

    def retype(table: pa.Table) -> pa.Table:
        column = pa.compute.cast(table["slot_from"], pa.int64())
        return table.set_column(table.schema.get_field_index("slot_from"), "slot_from", column)

    refused(replica, rewritten(last, retype))
    refused(replica, rewritten(last, lambda t: t.rename_columns(["x", *t.column_names[1:]])))
    assert replica.fold(last) == FINAL

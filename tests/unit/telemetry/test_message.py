import pytest
from helpers.wire import notes, payload

from telemetry.errors import BadPayload
from telemetry.message import Message


def test_the_header_says_which_rows_a_message_has():
    header = Message.decode(3, notes(11, 5, engine="a", epoch="b", dropped=2)).header
    assert (header.engine, header.epoch, header.first, header.last) == ("a", "b", 11, 15)
    assert (header.rows, header.dropped) == (5, 2)


@pytest.mark.parametrize("cut", [0, 3, 100, 600, -300, -20])
def test_a_cut_payload_is_refused(cut):
    with pytest.raises(BadPayload):
        Message.decode(0, notes(1, 5)[:cut])


@pytest.mark.parametrize("junk", [b"junk", b"\x80\x04N.", b"\xff" * 64, b"{}"])
def test_junk_is_refused(junk):
    """security-03"""
    with pytest.raises(BadPayload):
        Message.decode(0, junk)


def test_a_header_that_lies_about_its_rows_is_refused():
    with pytest.raises(BadPayload, match="5 rows, the header says 6"):
        Message.decode(0, payload([{"seq": s, "kind": "tool"} for s in range(1, 6)], claim_rows=6))


def test_flipped_bytes_never_get_through_to_native_code():
    """Whatever a flipped byte does, decoding either refuses it or yields a batch of the right
    size."""
    good = notes(1, 5)
    for at in range(0, len(good), 7):
        bad = bytearray(good)
        bad[at] ^= 0xFF
        try:
            message = Message.decode(0, bytes(bad))
        except BadPayload:
            continue
        assert message.batch.num_rows == message.header.rows
        message.batch.to_pylist()

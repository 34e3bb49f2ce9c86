"""Keys in whatever holds them: tokens, pairs of them, digests; and what they are hashed to."""

import hashlib
from array import array

import numpy as np
import pytest
from driver import Driver
from hostile_arguments import DIGESTS, PAIRS, REFUSALS, UNSPEAKABLE

from runtime import _core
from runtime._core import BadArgument, Core


def core_of(key, page_size: int = 2) -> Core:
    core = Core(engine="e", epoch="1", namespace="n", page_size=page_size, device=8, key=key)
    core.open_session(1, "s")
    return core


def put(core: Core, tokens: object, pages: int) -> None:
    found = core.acquire(1, "s", "r", tokens)
    got = core.reserve(1, found.receipt, pages)
    core.commit(1, got.op, tokens, 0, pages)
    core.release(1, found.receipt)


@pytest.mark.parametrize(("key", "hostile"), [("pairs", PAIRS), ("digests", DIGESTS)])
def test_what_is_no_key_of_this_core_is_refused(key, hostile):
    core = core_of(key)
    good = array("I", [1, 2, 2, 3]) if key == "pairs" else bytes(64)
    receipt = core.acquire(1, "s", "r", good).receipt
    op = core.reserve(1, receipt, 1).op
    before = core.state_hash(), core.seq()
    for tokens in hostile:
        for call in (
            lambda tokens: core.match(1, "s", "r", tokens),
            lambda tokens: core.acquire(1, "s", "r", tokens),
            lambda tokens: core.commit(1, op, tokens, 0, 1),
        ):
            with pytest.raises(BadArgument):
                call(tokens)
            assert (core.state_hash(), core.seq()) == before, tokens
    assert core.commit(1, op, good, 0, 1).inserted == 1


def test_pairs_are_the_same_in_whatever_holds_them():
    pairs = [(5, 0), (0, 2**32 - 1), (2**31, 7), (7, 7)]
    flat = [token for pair in pairs for token in pair]
    core = core_of("pairs")
    put(core, pairs, 2)
    for tokens in [
        tuple(pairs),
        [list(pair) for pair in pairs],
        array("I", flat),
        array("q", flat),
        memoryview(array("I", flat)),
        np.array(flat, np.uint32),
        np.array(pairs, np.uint32),
        np.array(pairs),
    ]:
        assert core.match(1, "s", "r", tokens).pages == 2
    assert core.match(1, "s", "r", [(0, 5), *pairs[1:]]).pages == 0
    assert core.match(1, "s", "r", pairs[:3]).pages == 1
    for empty in ([], array("I"), np.zeros((0, 2), np.uint32)):
        assert core.match(1, "s", "r", empty).reason == ""


def test_digests_are_the_same_in_whatever_holds_them():
    digests = [hashlib.sha256(bytes([i])).digest() for i in range(3)]
    joined = b"".join(digests)
    core = core_of("digests")
    put(core, digests, 3)
    for tokens in [
        tuple(digests),
        joined,
        bytearray(joined),
        memoryview(joined),
        [bytearray(digest) for digest in digests],
        np.frombuffer(joined, np.uint8),
        np.frombuffer(joined, np.uint8).reshape(3, 32),
    ]:
        assert core.match(1, "s", "r", tokens).pages == 3
    assert core.match(1, "s", "r", [digests[1], digests[0]]).pages == 0
    assert [key for *_, key in core.resident("device")] == digests


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

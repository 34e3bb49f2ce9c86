import pytest

from canary import MODES, SENTINEL_BYTES, Sentinel, differences, stamp

DIGEST = bytes(range(32))
OWNER = 3 << 32 | 7
PAGE = bytes(i % 251 for i in range(20_000))


def damaged(at: int) -> bytes:
    page = bytearray(PAGE)
    page[at] ^= 0xFF
    return bytes(page)


@pytest.mark.parametrize("mode", MODES)
def test_an_intact_page_differs_in_nothing(mode):
    sentinel = stamp(DIGEST, 64, OWNER, PAGE, mode)
    assert len(sentinel) == SENTINEL_BYTES
    assert differences(sentinel, DIGEST, 64, OWNER, PAGE, mode) == {}


def test_sentinel_is_four_little_endian_words():
    sentinel = stamp(DIGEST, 64, OWNER, PAGE, "none")
    assert sentinel[:8] == DIGEST[:8]
    assert sentinel[8:16] == (64).to_bytes(8, "little")
    assert sentinel[16:24] == (7).to_bytes(4, "little") + (3).to_bytes(4, "little")
    assert sentinel[24:] == bytes(8)
    assert Sentinel.unpack(sentinel).pack() == sentinel


@pytest.mark.parametrize("at", [0, 9_999, 19_999])
def test_all_sees_a_flip_anywhere(at):
    sentinel = stamp(DIGEST, 0, OWNER, PAGE, "all")
    differs = differences(sentinel, DIGEST, 0, OWNER, damaged(at), "all")
    assert set(differs) == {"content"}
    expected, found = differs["content"]
    assert expected != found == Sentinel.unpack(sentinel).content


def test_partial_sees_both_ends_and_not_the_middle():
    sentinel = stamp(DIGEST, 0, OWNER, PAGE, "partial")
    seen = [
        bool(differences(sentinel, DIGEST, 0, OWNER, damaged(at), "partial"))
        for at in (0, 4095, 9_999, 20_000 - 4096, 19_999)
    ]
    assert seen == [True, True, False, True, True]


def test_partial_sees_all_of_a_small_page():
    page = PAGE[:8192]
    sentinel = stamp(DIGEST, 0, OWNER, page, "partial")
    flipped = page[:4096] + bytes([page[4096] ^ 1]) + page[4097:]
    assert differences(sentinel, DIGEST, 0, OWNER, flipped, "partial")


@pytest.mark.parametrize("mode", MODES)
def test_a_page_in_the_wrong_place_is_named_by_what_is_wrong(mode):
    sentinel = stamp(DIGEST, 64, OWNER, PAGE, mode)
    other = bytes(32)
    assert set(differences(sentinel, other, 64, OWNER, PAGE, mode)) == {"chain"}
    assert differences(sentinel, DIGEST, 128, OWNER, PAGE, mode) == {"position": (128, 64)}
    assert set(differences(sentinel, DIGEST, 64, OWNER + (1 << 32), PAGE, mode)) == {"owner"}

from runtime.storage import header

KEY, NAMESPACE, SENTINEL = bytes(range(32)), b"n" * 16, b"s" * 32
PAGE = bytes(1000)
PACKED = header.pack(KEY, NAMESPACE, SENTINEL, PAGE)


def test_a_header_is_128_bytes_and_carries_the_sentinel():
    assert len(PACKED) == header.HEADER_BYTES
    assert header.fault(PACKED, KEY, NAMESPACE, PAGE) == ""
    assert header.sentinel(PACKED) == SENTINEL


def test_every_flipped_byte_of_the_header_is_found():
    for at in range(header.HEADER_BYTES):
        damaged = bytearray(PACKED)
        damaged[at] ^= 0x01
        assert header.fault(damaged, KEY, NAMESPACE, PAGE) in header.FAULTS, at


def test_a_flipped_byte_of_the_page_is_a_checksum_fault():
    page = bytearray(PAGE)
    page[500] ^= 1
    assert header.fault(PACKED, KEY, NAMESPACE, page) == "checksum"


def test_each_fault_has_its_name():
    """canary-01, storage-04, storage-16: what is asked for is compared with the header."""
    assert header.fault(PACKED, bytes(32), NAMESPACE, PAGE) == "key"
    assert header.fault(PACKED, KEY, b"m" * 16, PAGE) == "namespace"
    assert header.fault(PACKED, KEY, NAMESPACE, PAGE[:-1]) == "length"
    assert header.fault(b"X" + PACKED[1:], KEY, NAMESPACE, PAGE) == "magic"
    old = PACKED[:8] + (0).to_bytes(4, "little") + PACKED[12:]
    assert header.fault(old, KEY, NAMESPACE, PAGE) == "version"

"""The header of a stored page: 128 bytes that let any reader refuse what is not the page it asked
for.

    magic 8 · version u32 · header length u32 · page length u64 · page checksum u64 (XXH3-64)
    key 32 · namespace fingerprint 16 · sentinel 32 · zero 8 · header checksum u64

Integers are little-endian.

The key in the header is the whole key: a file that was renamed, or a name that two keys share, is
found out.
"""

import struct

from typing_extensions import Buffer

from runtime._core import content_hash

MAGIC = b"KVCTLPG\n"
VERSION = 1
HEADER_BYTES = 128
FAULTS = ("magic", "version", "header", "length", "key", "namespace", "checksum")
"""What can be wrong with a stored object, in the order it is looked at."""

_FIELDS = struct.Struct("<8sIIQQ32s16s32s8x")
_SUM = struct.Struct("<Q")


def pack(key: bytes, namespace: bytes, sentinel: bytes, page: Buffer) -> bytes:
    fields = _FIELDS.pack(
        MAGIC,
        VERSION,
        HEADER_BYTES,
        memoryview(page).nbytes,
        content_hash(page),
        key,
        namespace,
        sentinel,
    )
    return fields + _SUM.pack(content_hash(fields))


def fault(header: Buffer, key: bytes, namespace: bytes, page: Buffer) -> str:
    """ "" when header and page are the object stored under `key`, else one of FAULTS."""
    fields = bytes(memoryview(header)[: _FIELDS.size])
    magic, version, header_bytes, page_bytes, checksum, its_key, its_namespace, _ = _FIELDS.unpack(
        fields
    )
    if magic != MAGIC:
        return "magic"
    if version != VERSION or header_bytes != HEADER_BYTES:
        return "version"
    if _SUM.unpack_from(header, _FIELDS.size)[0] != content_hash(fields):
        return "header"
    if page_bytes != memoryview(page).nbytes:
        return "length"
    if its_key != key:
        return "key"
    if its_namespace != namespace:
        return "namespace"
    return "" if checksum == content_hash(page) else "checksum"


def sentinel(header: Buffer) -> bytes:
    return _FIELDS.unpack_from(header)[7]

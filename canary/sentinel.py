"""The sentinel: what a page says about itself, 32 bytes beside its state in every tier.

Four unsigned 64-bit integers, little-endian:

    chain     first 8 bytes of the page's digest: which tokens, after which tokens
    position  index of the page's first token in its sequence
    owner     generation << 32 | slot: which logical page
    content   XXH3-64 of the page's bytes, as far as the mode looks

A copy that went to the wrong place differs in the first three; a copy whose bytes changed differs
in the last.
"""

import struct
from typing import Literal, NamedTuple

from typing_extensions import Buffer

Mode = Literal["all", "partial", "none"]
"""How much of a page's bytes `content` covers. "none" still checks chain, position and owner."""
MODES: tuple[Mode, ...] = ("all", "partial", "none")

SENTINEL_BYTES = 32
EDGE_BYTES = 4096
"""What "partial" reads at each end of a page: misrouted and torn copies show there, at a fixed
cost."""

_LAYOUT = struct.Struct("<4Q")


class Sentinel(NamedTuple):
    chain: int
    position: int
    owner: int
    content: int

    def pack(self) -> bytes:
        return _LAYOUT.pack(*self)

    @classmethod
    def unpack(cls, data: Buffer) -> "Sentinel":
        return cls(*_LAYOUT.unpack(data))


def expected(digest: bytes, position: int, owner: int, page: Buffer, mode: Mode) -> Sentinel:
    """The sentinel that `page` (C-contiguous bytes) should carry. `position` counts tokens."""
    return Sentinel(int.from_bytes(digest[:8], "little"), position, owner, _content(page, mode))


def stamp(digest: bytes, position: int, owner: int, page: Buffer, mode: Mode) -> bytes:
    """32 bytes to keep beside the page from now on. Only whoever computed the bytes may stamp."""
    return expected(digest, position, owner, page, mode).pack()


def differences(
    found: Buffer, digest: bytes, position: int, owner: int, page: Buffer, mode: Mode
) -> dict[str, tuple[int, int]]:
    """Compare the 32 bytes found beside a page with what the page should carry.

    Returns field -> (what `found` should say, what it says) for each that differs; empty when the
    page is intact. For `content` the first is the hash of the bytes as they are now.
    """
    should = expected(digest, position, owner, page, mode)
    if should.pack() == bytes(found):
        return {}
    says = Sentinel.unpack(found)
    return {
        field: (a, b) for field, a, b in zip(Sentinel._fields, should, says, strict=True) if a != b
    }


def _content(page: Buffer, mode: Mode) -> int:
    from runtime._core import content_hash

    if mode == "none":
        return 0
    view = memoryview(page).cast("B")
    if mode == "partial" and len(view) > 2 * EDGE_BYTES:
        return content_hash(bytes(view[:EDGE_BYTES]) + bytes(view[-EDGE_BYTES:]))
    return content_hash(view)

"""Segments: the raw truth, append-only files that every table can be rebuilt from.

A file is MAGIC, then records: mark (4 bytes), length and crc32 of the body (u32 little-endian
each), body. A body is the length of a JSON header (u32), the header, and a payload that may be
empty. A record is acknowledged once its file was fsynced. What follows the last whole record of a
file was never acknowledged (a torn tail) and is cut; damage in the middle is skipped up to the next
whole record.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvctl.errors import SegmentError

MAGIC = b"KVCTLSEG1\n"
MARK = b"\xf5KVR"
_HEAD = struct.Struct("<4sII")
_SIZE = struct.Struct("<I")
SEGMENT_BYTES = 64 << 20
BODY_BYTES_MAX = 512 << 20


@dataclass(frozen=True)
class Record:
    """header: {"kind": "message" | "gap" | "action", …}; payload: a message's bytes."""

    header: dict[str, Any]
    payload: bytes = b""

    def encode(self) -> bytes:
        header = json.dumps(self.header, separators=(",", ":")).encode()
        header = _SIZE.pack(len(header)) + header
        crc = zlib.crc32(self.payload, zlib.crc32(header))
        head = _HEAD.pack(MARK, len(header) + len(self.payload), crc)
        return b"".join((head, header, self.payload))


@dataclass(frozen=True, order=True)
class Position:
    """Where a record begins. Later records have greater ones."""

    segment: int
    offset: int


@dataclass(frozen=True)
class Damage:
    """Bytes [offset, end) of a segment that are no record."""

    offset: int
    end: int
    torn: bool
    """It reaches the end of the file: a write that was never finished."""

    def __str__(self) -> str:
        return f"{self.end - self.offset} damaged bytes at {self.offset} skipped"


def read(path: Path) -> Iterator[tuple[int, Record] | Damage]:
    """(offset, record) in order, and the damage between them."""
    data = path.read_bytes()
    at = len(MAGIC) if data.startswith(MAGIC) else 0
    while at < len(data):
        found = _record(data, at)
        if found is not None:
            record, end = found
            yield at, record
            at = end
            continue
        end = data.find(MARK, at + 1)
        while end != -1 and _record(data, end) is None:
            end = data.find(MARK, end + 1)
        yield Damage(at, len(data) if end == -1 else end, torn=end == -1)
        at = len(data) if end == -1 else end


def _record(data: bytes, at: int) -> tuple[Record, int] | None:
    start = at + _HEAD.size
    if start > len(data):
        return None
    mark, size, crc = _HEAD.unpack_from(data, at)
    end = start + size
    if mark != MARK or size > BODY_BYTES_MAX or end > len(data):
        return None
    body = data[start:end]
    if zlib.crc32(body) != crc:
        return None
    (length,) = _SIZE.unpack_from(body)
    split = _SIZE.size + length
    return Record(json.loads(body[_SIZE.size : split]), body[split:]), end


class SegmentLog:
    """A folder of segments. Opening it repairs torn tails and begins a new file; never an old one
    is appended to. One thread owns it."""

    def __init__(self, folder: Path, *, after: int = 0, segment_bytes: int = SEGMENT_BYTES) -> None:
        """after: a segment number that is taken already, whatever the folder holds."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = folder
        self.problems: list[str] = []
        self._segment_bytes = segment_bytes
        self._number = max([after, *self._numbers()])
        self._file: int | None = None
        self._size = 0

    def replay(self) -> Iterator[tuple[Position, Record]]:
        """Every record of the earlier files, in order. The last one's torn tail is cut on the
        way."""
        numbers = self._numbers()
        for number in numbers:
            path = self._path(number)
            try:
                for found in read(path):
                    if isinstance(found, Damage):
                        self._report(path, found, last=number == numbers[-1])
                    else:
                        yield Position(number, found[0]), found[1]
            except OSError as error:
                self.problems.append(f"{path.name} cannot be read, left out: {error}")

    def append(self, records: list[Record]) -> list[Position]:
        """Write and fsync; on return the records are safe. SegmentError when they are not (a full
        disk): nothing of them is kept, and the same call may be made again."""
        try:
            if self._file is None or self._size >= self._segment_bytes:
                self._begin()
            assert self._file is not None
            positions, chunks, at = [], [], self._size
            for record in records:
                data = record.encode()
                positions.append(Position(self._number, at))
                chunks.append(data)
                at += len(data)
            _write_all(self._file, b"".join(chunks))
            os.fsync(self._file)
        except OSError as error:
            self._undo()
            raise SegmentError(
                f"cannot write {self._path(self._number)}: {error.strerror or error}; "
                "collecting waits, nothing acknowledged is lost"
            ) from error
        self._size = at
        return positions

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _begin(self) -> None:
        self.close()
        number = self._number + 1
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        self._file = os.open(self._path(number), flags, 0o600)
        self._number, self._size = number, 0
        _write_all(self._file, MAGIC)
        self._size = len(MAGIC)
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _undo(self) -> None:
        """A half-written batch is cut off; a file that cannot even be cut is left for a new one."""
        if self._file is None:
            return
        if self._size < len(MAGIC):
            self.close()
            self._path(self._number).unlink(missing_ok=True)
            return
        try:
            os.ftruncate(self._file, self._size)
            os.lseek(self._file, self._size, os.SEEK_SET)
        except OSError:
            self.close()

    def _report(self, path: Path, damage: Damage, *, last: bool) -> None:
        if last and damage.torn and damage.offset >= len(MAGIC):
            os.truncate(path, damage.offset)
            size = damage.end - damage.offset
            self.problems.append(f"{path.name}: cut {size} bytes that were never acknowledged")
        else:
            self.problems.append(f"{path.name}: {damage}")

    def _numbers(self) -> list[int]:
        return sorted(int(path.stem) for path in self.folder.glob("*.seg") if path.stem.isdigit())

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}.seg"


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]

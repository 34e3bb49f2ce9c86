"""Files in a directory: one a page, in 256 shards by the first byte of the key.

    DIRECTORY/lock            flock, held while open; names the holder
    DIRECTORY/tmp/            being written; emptied at open
    DIRECTORY/ab/abcd….page   header and page, named by the key in hex

An object is written to tmp/, synchronised and renamed, so a name never leads to half a page, not
even after a power cut. The rename itself is not synchronised: if it is lost, the page is missing,
and that is a miss.
"""

import contextlib
import errno
import fcntl
import itertools
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from typing_extensions import Buffer

from runtime.errors import StorageError, StorageLocked
from runtime.storage.base import Failure, Store

SUFFIX = ".page"
KEY_BYTES = 32
_REASONS = {
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "no_space",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "denied",
    errno.ENOENT: "missing",
}


class FileStore(Store):
    """`directory` is made when it is not there. One process at a time can have it open."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        self._lock: int | None = None
        self._numbers = itertools.count()
        self._counts: Counter[str] = Counter()
        self._counting = threading.Lock()

    def open(self) -> None:
        if self._lock is not None:
            raise StorageLocked(f"{self.directory} is already open in this process.")
        try:
            self._tmp.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageError(f"Cannot use {self.directory} as a store: {error}.") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(lock, 32).decode(errors="replace").strip() or "unknown"
            os.close(lock)
            raise StorageLocked(
                f"{self.directory} is in use by process {holder}. "
                "Give each engine a directory of its own, or stop that one."
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        self._lock = lock
        self._counts.clear()
        for stale in self._tmp.iterdir():
            stale.unlink(missing_ok=True)

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def exists(self, keys: Sequence[bytes]) -> list[bool]:
        return [self._path(key).is_file() for key in keys]

    def put(
        self, keys: Sequence[bytes], headers: Sequence[bytes], pages: Sequence[memoryview]
    ) -> list[Failure]:
        return [
            self._attempt("puts", partial(self._write, *each))
            for each in zip(keys, headers, pages, strict=True)
        ]

    def get(
        self, keys: Sequence[bytes], headers: Sequence[bytearray], pages: Sequence[memoryview]
    ) -> list[Failure]:
        return [
            self._attempt("gets", partial(self._read, *each))
            for each in zip(keys, headers, pages, strict=True)
        ]

    def remove(self, keys: Sequence[bytes]) -> list[Failure]:
        return [self._attempt("removes", partial(self._unlink, key)) for key in keys]

    def list(self) -> Iterator[bytes]:
        for path in self.directory.glob(f"[0-9a-f][0-9a-f]/*{SUFFIX}"):
            with contextlib.suppress(ValueError):
                key = bytes.fromhex(path.stem)
                if len(key) == KEY_BYTES and self._path(key) == path:
                    yield key

    def stats(self) -> dict[str, int]:
        with self._counting:
            return dict(self._counts)

    @property
    def _tmp(self) -> Path:
        return self.directory / "tmp"

    def _path(self, key: bytes) -> Path:
        name = key.hex()
        return self.directory / name[:2] / (name + SUFFIX)

    def _attempt(self, verb: str, act: Callable[[], Failure]) -> Failure:
        if self._lock is None:
            failure = "closed"
        else:
            try:
                failure = act()
            except OSError as error:
                failure = _REASONS.get(error.errno or 0, "io")
        with self._counting:
            self._counts[f"failed_{failure}" if failure else verb] += 1
        return failure

    def _write(self, key: bytes, header: bytes, page: memoryview) -> Failure:
        path = self._path(key)
        temporary = self._tmp / f"{path.name}.{next(self._numbers)}"
        try:
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                _write_all(file, header)
                _write_all(file, page)
                os.fsync(file)
            finally:
                os.close(file)
            path.parent.mkdir(exist_ok=True)
            os.replace(temporary, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            # A directory that vanished is trouble with the store, not an absent object.
            return "io" if error.errno == errno.ENOENT else _REASONS.get(error.errno or 0, "io")
        return ""

    def _read(self, key: bytes, header: bytearray, page: memoryview) -> Failure:
        file = os.open(self._path(key), os.O_RDONLY | os.O_CLOEXEC)
        try:
            if os.fstat(file).st_size != len(header) + page.nbytes:
                return "length"
            whole = _read_all(file, memoryview(header)) and _read_all(file, page)
            return "" if whole else "length"
        finally:
            os.close(file)

    def _unlink(self, key: bytes) -> Failure:
        self._path(key).unlink(missing_ok=True)
        return ""


def _write_all(file: int, data: Buffer) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _read_all(file: int, buffer: memoryview) -> bool:
    while buffer:
        count = os.readv(file, [buffer])
        if not count:
            return False
        buffer = buffer[count:]
    return True

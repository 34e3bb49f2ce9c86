"""A recording: what was collected, opened when no server has it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from kvctl.collector.fold import Fold
from kvctl.collector.segment import Damage, Position, Record, read
from kvctl.errors import StoreError
from kvctl.store.database import Database, connect_reader
from kvctl.store.writer import Writer

BATCH_RECORDS = 2000


@dataclass(frozen=True)
class Recording:
    tables: duckdb.DuckDBPyConnection
    problem: str = ""
    """What of it could not be read."""


def open_recording(path: Path) -> Recording:
    """A database file, that of a context's directory, or tables made in memory from segments.
    StoreError when there is nothing to read."""
    if path.is_dir():
        if (path / "kvctl.duckdb").exists():
            return Recording(connect_reader(path / "kvctl.duckdb"))
        folder = path / "segments" if (path / "segments").is_dir() else path
        segments = sorted(folder.glob("*.seg"))
        if not segments:
            raise StoreError(f"{path} has neither kvctl.duckdb nor segments")
        return _read(path, segments)
    if path.suffix == ".seg" and path.is_file():
        return _read(path, [path])
    return Recording(connect_reader(path))


def _read(path: Path, segments: list[Path]) -> Recording:
    try:
        return _made(path, segments)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}") from error


def _made(path: Path, segments: list[Path]) -> Recording:
    database = Database(None)
    writer, fold = Writer(database), Fold()
    batch: list[tuple[Position, Record]] = []
    problems: list[str] = []
    for number, segment in enumerate(segments):
        for found in read(segment):
            if isinstance(found, Damage):
                problems.append(f"{segment.name}: {found}")
            else:
                batch.append((Position(number, found[0]), found[1]))
            if len(batch) >= BATCH_RECORDS:
                writer.write(fold.apply(batch))
                batch = []
    if batch:
        writer.write(fold.apply(batch))
    problem = "; ".join(problems)
    if writer.position() is None:
        raise StoreError(f"{path} has no record that can be read ({problem or 'it is empty'})")
    return Recording(database.cursor(), problem)

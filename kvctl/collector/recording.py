"""A recording: what was collected, opened when no server has it."""

from __future__ import annotations

from pathlib import Path

import duckdb

from kvctl.collector.fold import Fold
from kvctl.collector.segment import Damage, Position, Record, read
from kvctl.errors import StoreError
from kvctl.store.database import Database, connect_reader
from kvctl.store.writer import Writer

BATCH_RECORDS = 2000


def open_recording(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection to a database file, to that of a context's directory, or to tables made in
    memory from segments. StoreError when there is nothing to read."""
    if path.is_dir():
        if (path / "kvctl.duckdb").exists():
            return connect_reader(path / "kvctl.duckdb")
        folder = path / "segments" if (path / "segments").is_dir() else path
        segments = sorted(folder.glob("*.seg"))
        if not segments:
            raise StoreError(f"{path} has neither kvctl.duckdb nor segments")
        return _tables(segments)
    if path.suffix == ".seg" and path.is_file():
        return _tables([path])
    return connect_reader(path)


def _tables(segments: list[Path]) -> duckdb.DuckDBPyConnection:
    database = Database(None)
    writer, fold = Writer(database), Fold()
    batch: list[tuple[Position, Record]] = []
    for number, path in enumerate(segments):
        for found in read(path):
            if not isinstance(found, Damage):
                batch.append((Position(number, found[0]), found[1]))
            if len(batch) >= BATCH_RECORDS:
                writer.write(fold.apply(batch))
                batch = []
    if batch:
        writer.write(fold.apply(batch))
    return database.cursor()

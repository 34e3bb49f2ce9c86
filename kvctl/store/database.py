"""Opens the database file: settings, tables, and what to do when it is damaged."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import duckdb

from kvctl.errors import StoreError
from telemetry import schema

TYPES = {
    "uint64": "UBIGINT",
    "int64": "BIGINT",
    "uint32": "UINTEGER",
    "uint16": "USMALLINT",
    "text": "VARCHAR",
    "binary": "BLOB",
}
OWN_COLUMNS = (
    ("engine", "VARCHAR", "name of the engine"),
    ("epoch", "VARCHAR", "life of the engine process"),
    (
        "trust",
        "VARCHAR",
        "exact: folded and proven; after_gap: rows before it are missing; mismatch",
    ),
)
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 2,
    "memory_limit": "512MB",
    # Checkpoints stall inserts: 256 MB means p99 7 ms instead of 100 ms at the 16 MB default.
    "checkpoint_threshold": "256MB",
    # SQL from operators runs in this process; it must reach no file, network or setting.
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}


def event_columns() -> list[tuple[str, str, str]]:
    """(name, DuckDB type, meaning) of every column of `events`."""
    engine, epoch, trust = OWN_COLUMNS
    log = [(name, TYPES[kind], text) for name, kind, text in schema.columns()]
    return [engine, epoch, *log, trust]


def create(con: duckdb.DuckDBPyConnection) -> None:
    """Make what is missing, all or nothing. Rows of the log get a newer version's columns; when
    another table lacks one it cannot be commented on, and the tables are made again from the
    segments."""
    columns = event_columns()
    body = ", ".join(f"{name} {kind}" for name, kind, _ in columns)
    con.execute("BEGIN")
    con.execute(f"CREATE TABLE IF NOT EXISTS events ({body})")
    for name, kind, text in columns:
        con.execute(f"ALTER TABLE events ADD COLUMN IF NOT EXISTS {name} {kind}")
        quoted = text.replace("'", "''")
        con.execute(f"COMMENT ON COLUMN events.{name} IS '{quoted}'")
    con.execute(files("kvctl.store").joinpath("schema.sql").read_text())
    con.execute("COMMIT")


class Database:
    """The one writing connection of this process. Each thread takes its own cursor.

    path: the file, or None for tables in memory. `aside` says what had to be set aside when it was
    opened ("" when nothing): the caller then fills the tables from the segments.
    StoreError when another process has the file.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.aside = ""
        self._con = self._open()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        return self._con.cursor()

    def reopen(self) -> None:
        """After a failure that made the open database void."""
        self._con.close()
        self._con = self._open()

    def close(self) -> None:
        self._con.close()

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self.path is None:
            return _connect(":memory:")
        wal = self.path.with_name(self.path.name + ".wal")
        # A damaged write-ahead log can abort the process that opens it, and this one must start:
        # after an unclean end another process opens the file first.
        if wal.exists() and not _opens(self.path):
            self.aside = _set_aside([self.path, wal])
        try:
            return _connect(str(self.path))
        except duckdb.Error as error:
            if "lock" in str(error).lower():
                raise StoreError(f"{self.path} is in use by another process: {error}") from error
            self.aside = f"{_set_aside([self.path, wal])} ({error})"
            return _connect(str(self.path))


def connect_reader(path: Path) -> duckdb.DuckDBPyConnection:
    """A closed file, read only."""
    if not path.is_file():
        raise StoreError(f"{path} is not a file")
    try:
        con = duckdb.connect(str(path), read_only=True, config=SETTINGS)
        con.execute("SELECT count(*) FROM latest").fetchone()
    except (duckdb.IOException, duckdb.ConnectionException) as error:
        if "lock" in str(error) or "existing connections" in str(error):
            raise StoreError(
                f"{path} is being written by a running server; ask that server, not the file"
            ) from error
        raise StoreError(f"{path} cannot be opened: {error}") from error
    except duckdb.CatalogException as error:
        raise StoreError(f"{path} is not a database of kvctl: {error}") from error
    except duckdb.Error as error:
        raise StoreError(f"{path}: {unreadable(error)}") from error
    return con


def unreadable(error: duckdb.Error) -> StoreError:
    return StoreError(
        f"the tables cannot be read: {error}. Everything is in the segments: read those (--file"
        " DIRECTORY/segments), or remove the database and start the server, which makes it again"
    )


def _connect(path: str) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(path, config=SETTINGS)
    try:
        create(con)
    except duckdb.Error:
        con.close()
        raise
    return con


def _opens(path: Path) -> bool:
    probe = "import duckdb, sys; duckdb.connect(sys.argv[1]).close()"
    done = subprocess.run([sys.executable, "-P", "-c", probe, str(path)], capture_output=True)
    return done.returncode == 0


def _set_aside(paths: list[Path]) -> str:
    names = []
    for path in paths:
        if path.exists():
            number = 1
            while (target := path.with_name(f"{path.name}.damaged-{number}")).exists():
                number += 1
            path.rename(target)
            names.append(target.name)
    return "set aside as " + ", ".join(names)

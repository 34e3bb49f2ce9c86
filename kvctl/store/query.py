"""SQL from people: one reading statement, bounded in rows and time."""

from __future__ import annotations

import threading
import time
from typing import Any

import duckdb

from kvctl.errors import SqlError, SqlRefused, TimedOut
from kvctl.store.database import unreadable
from kvctl.store.values import plain


def run(con: duckdb.DuckDBPyConnection, query: str, limit: int, timeout_s: float) -> dict[str, Any]:
    """columns, types, rows (at most `limit`), truncated, elapsed_ms. The connection is a cursor of
    the caller's; its database allows no external access (see database.SETTINGS)."""
    statement = _reading(con, query)
    begun = time.monotonic()
    expired = threading.Event()

    def interrupt() -> None:
        expired.set()
        con.interrupt()

    timer = threading.Timer(timeout_s, interrupt)
    timer.start()
    try:
        result = con.sql(statement).limit(limit + 1)
        rows = result.fetchall()
    except duckdb.Error as error:
        if expired.is_set():
            raise TimedOut(f"the query took longer than {timeout_s:g} s and was stopped") from error
        if type(error) is duckdb.Error or isinstance(error, duckdb.IOException):
            raise unreadable(error) from error
        raise SqlError(str(error)) from error
    finally:
        timer.cancel()
    return {
        "columns": result.columns,
        "types": [str(kind) for kind in result.types],
        "rows": [[plain(value) for value in row] for row in rows[:limit]],
        "truncated": len(rows) > limit,
        "elapsed_ms": round((time.monotonic() - begun) * 1000, 3),
    }


def _reading(con: duckdb.DuckDBPyConnection, query: str) -> str:
    try:
        statements = con.extract_statements(query)
    except duckdb.Error as error:
        raise SqlError(str(error)) from error
    if not statements:
        raise SqlRefused("there is no statement in it")
    if len(statements) != 1:
        raise SqlRefused(f"one statement at a time, these are {len(statements)}")
    (statement,) = statements
    if statement.type != duckdb.StatementType.SELECT:
        raise SqlRefused(
            f"{statement.type.name} is refused: only SELECT, WITH, FROM, DESCRIBE and SHOW,"
            " which read"
        )
    return statement.query.rstrip().rstrip(";")

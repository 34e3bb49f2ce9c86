"""Reading the tables: what verbs ask through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb

from kvctl.store.database import unreadable
from kvctl.store.values import plain
from kvctl.table import Table, records


class Store:
    """A database, and what a running server adds to it. Safe from several threads: each question
    has a cursor of its own.

    about: source, mode, and of a server pid, started, problem. live: state of each followed
    address, empty over a file.
    """

    def __init__(
        self,
        cursor: Callable[[], duckdb.DuckDBPyConnection],
        about: Callable[[], dict[str, Any]],
        live: Callable[[], dict[str, dict[str, Any]]] = dict,
    ) -> None:
        self.cursor = cursor
        self.about = about
        self.live = live

    def table(self, sql: str, params: dict[str, Any] | None = None) -> Table:
        """StoreError when the database cannot be read."""
        with self.cursor() as con:
            try:
                con.execute(sql, params or {})
                rows = con.fetchall()
            except duckdb.Error as error:
                raise unreadable(error) from error
            columns = [name for name, *_ in con.description]
            return {"columns": columns, "rows": [[plain(v) for v in row] for row in rows]}

    def dicts(self, sql: str, params: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        return records(self.table(sql, params))

    def one(self, sql: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The single row of a query that always has one."""
        return self.dicts(sql, params)[0]

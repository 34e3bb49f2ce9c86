"""Puts what was folded into the tables: one transaction a batch, by Arrow."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from kvctl.store.database import Database, event_columns

if TYPE_CHECKING:
    from runtime._core import PoolInfo, SessionInfo

Row = dict[str, Any]


@dataclass
class State:
    """Sessions and pools of one epoch as of row `seq`. wall: what makes wall time of the core's
    clock."""

    engine: str
    epoch: str
    seq: int
    wall: int
    sessions: list[SessionInfo]
    pools: list[PoolInfo]


@dataclass(frozen=True)
class Owner:
    """What `events` adds to the log's own columns."""

    engine: str
    epoch: str
    trust: str


@dataclass
class Rows:
    """What one batch of records adds."""

    position: tuple[int, int] | None = None
    """(segment, offset) of the last record in it."""
    events: list[tuple[Owner, list[pa.RecordBatch]]] = field(default_factory=list)
    """The log's rows, runs of batches with one owner and schema together: inserting has a price per
    run. Columns that `events` lacks are ignored."""
    messages: list[Row] = field(default_factory=list)
    actions: list[Row] = field(default_factory=list)
    engines: list[Row] = field(default_factory=list)
    """The new state of each epoch that changed."""
    states: list[State] = field(default_factory=list)

    def add(self, owner: Owner, batch: pa.RecordBatch) -> None:
        batch = batch.replace_schema_metadata(None)
        if self.events:
            last, batches = self.events[-1]
            if last == owner and batches[0].schema.equals(batch.schema):
                batches.append(batch)
                return
        self.events.append((owner, [batch]))


class Writer:
    """Not thread-safe: one thread writes. A failed `write` leaves the tables as they were."""

    def __init__(self, database: Database) -> None:
        self._con = database.cursor()
        self._columns = [name for name, _, _ in event_columns()]

    def position(self) -> tuple[int, int] | None:
        """The last record that the tables contain."""
        row = self._con.execute('SELECT segment, "offset" FROM progress').fetchone()
        return (row[0], row[1]) if row else None

    def write(self, rows: Rows) -> None:
        self._con.execute("BEGIN")
        try:
            for owner, batches in rows.events:
                self._insert_events(_table(owner, batches))
            for table in ("messages", "actions"):
                if new := getattr(rows, table):
                    self._insert(table, new)
            for row in rows.engines:
                self._con.execute(
                    "DELETE FROM engines WHERE engine = $engine AND epoch = $epoch",
                    {"engine": row["engine"], "epoch": row["epoch"]},
                )
            if rows.engines:
                self._insert("engines", rows.engines)
            for state in rows.states:
                self._replace(state)
            if rows.position:
                self._con.execute("DELETE FROM progress")
                self._con.execute("INSERT INTO progress VALUES (?, ?)", rows.position)
            self._con.execute("COMMIT")
        except BaseException:
            # Or every later batch would run in a dead transaction.
            _rollback(self._con)
            raise

    def _insert_events(self, data: pa.Table) -> None:
        listed = ", ".join(f'"{name}"' for name in data.column_names if name in self._columns)
        self._con.register("incoming", data)
        try:
            self._con.execute(f"INSERT INTO events ({listed}) SELECT {listed} FROM incoming")
        finally:
            self._con.unregister("incoming")

    def _insert(self, table: str, rows: list[Row]) -> None:
        """A list a column: for a handful of rows, Arrow's way in takes several times as long."""
        listed = ", ".join(f'"{name}"' for name in rows[0])
        columns = [[row[name] for row in rows] for name in rows[0]]
        values = ", ".join(["unnest(?)"] * len(columns))
        self._con.execute(f"INSERT INTO {table} ({listed}) SELECT {values}", columns)

    def _replace(self, state: State) -> None:
        key = {"engine": state.engine, "epoch": state.epoch}
        where = "WHERE engine = $engine AND epoch = $epoch"
        self._con.execute(f"DELETE FROM pool_state {where}", key)
        names = [session.name for session in state.sessions]
        self._con.execute(
            f"DELETE FROM session_state {where} AND list_contains($names, session)",
            key | {"names": names},
        )
        self._con.execute(
            "UPDATE session_state SET open = false, pages = 0, device_pages = 0, host_pages = 0,"
            " storage_pages = 0, fastest_device = 0, fastest_host = 0, fastest_storage = 0,"
            f" shared_pages = 0, leases = '[]' {where} AND open",
            key,
        )
        if state.pools:
            self._insert("pool_state", [_pool(state, p) for p in state.pools])
        if state.sessions:
            self._insert("session_state", [_session(state, s) for s in state.sessions])


def _rollback(con: duckdb.DuckDBPyConnection) -> None:
    try:
        con.execute("ROLLBACK")
    except duckdb.Error:
        return


def _table(owner: Owner, batches: list[pa.RecordBatch]) -> pa.Table:
    """One chunk, one dictionary a column: DuckDB inserts that three times as fast as a chunk a
    message (3.5 against 10 us a row, at 60 rows a message)."""
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    for name, value in vars(owner).items():
        table = table.append_column(name, pa.repeat(pa.scalar(value), table.num_rows))
    return table


def _pool(state: State, pool: PoolInfo) -> Row:
    return {
        "engine": state.engine,
        "epoch": state.epoch,
        "tier": pool.tier,
        "capacity": pool.capacity,
        "used": pool.used,
        "fenced": pool.fenced,
        "free": pool.free,
        "leased": pool.leased,
        "seq": state.seq,
    }


def _session(state: State, session: SessionInfo) -> Row:
    leases = [
        {"lease": lease, "tier": tier, "owner": owner, "pages": pages, "expires": end + state.wall}
        for lease, tier, owner, pages, end in session.leases
    ]
    on_device, on_host, in_storage = session.fastest
    return {
        "engine": state.engine,
        "epoch": state.epoch,
        "session": session.name,
        "parent": session.parent,
        "open": True,
        "pages": session.pages,
        "device_pages": session.device_pages,
        "host_pages": session.host_pages,
        "storage_pages": session.storage_pages,
        "fastest_device": on_device,
        "fastest_host": on_host,
        "fastest_storage": in_storage,
        "shared_pages": session.shared_pages,
        "leases": json.dumps(leases),
        "last_use": session.last_use + state.wall,
        "seq": state.seq,
    }

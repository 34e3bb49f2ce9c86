"""What the collector does with a message, against DuckDB's own Arrow insert of the same rows.

ours: messages as they come off the wire, in batches as the keeper takes them: into a segment
(fsync), decoded, folded by the replica and compared with the engine's state_hash, and written with
everything derived from them, committed. other: the same rows, ready as one plain Arrow table a
batch, inserted into the same table by DuckDB and committed. Both databases are files with the
product's settings.

The rows are those of a real core (see `traffic`): SESSIONS sessions whose prompts grow by 80 to 300
tokens a request up to 4K, on pages of 16, in tiers that are all too small. Of its 200 000 rows 54 %
are steps of moves between tiers, 15 % evictions, 15 % new, freed or allocated pages, and the rest
ten of each request: arrival, match, locks, session, canary check, first token, finish, tool call.
"""

from __future__ import annotations

import random
import tempfile
import time
from array import array
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from kvctl.collector.fold import Fold
from kvctl.collector.segment import Position, Record, SegmentLog
from kvctl.store.database import Database
from kvctl.store.writer import Writer
from runtime._core import Core
from telemetry.message import Message
from tests.bench.report import Goal, Row, rated

PAGE = 16
SESSIONS = 32
REQUESTS = 3_000
MESSAGE_ROWS, BATCH_ROWS = 2 << 10, 30 << 10
"""What one of the publisher's 10 ms and one of the keeper's 150 ms hold at the speed that is
measured here, 200 000 rows a second. From eight engines together, messages would be of 256 rows."""
GOAL = Goal(">=", 0.5)


def rows() -> Iterator[Row]:
    for message_rows, goal, repeat in ((MESSAGE_ROWS, GOAL, 9), (256, None, 3)):
        payloads = [*traffic(message_rows)]
        size = BATCH_ROWS // message_rows
        batches = [payloads[at : at + size] for at in range(0, len(payloads), size)]
        with tempfile.TemporaryDirectory() as folder:
            pairs = []
            for turn in range(repeat):
                here, there = Path(folder) / f"ours-{turn}", Path(folder) / f"other-{turn}"
                ours = _collect(batches, here) if turn % 2 else None
                other = _insert(batches, there)
                pairs.append((ours or _collect(batches, here), other))
        yield rated(f"ingest, messages of {message_rows} rows", "krow/s", pairs, goal=goal)


def _collect(batches: list[list[bytes]], folder: Path) -> float:
    database = Database(_file(folder))
    log, fold, writer = SegmentLog(folder / "segments"), Fold(), Writer(database)
    number = 0
    started = time.perf_counter()
    for batch in batches:
        records = []
        for payload in batch:
            header = {"kind": "message", "address": "bench", "number": number, "received": number}
            records.append(Record(header, payload))
            number += 1
        positions: list[Position] = log.append(records)
        writer.write(fold.apply(list(zip(positions, records, strict=True))))
    took = time.perf_counter() - started
    (life,) = fold.lives.values()
    assert life.gapless, life.problem
    _close(database, log, life.rows)
    return life.rows / took / 1e3


def _insert(batches: list[list[bytes]], folder: Path) -> float:
    database = Database(_file(folder))
    tables = [_table(batch) for batch in batches]
    names = ", ".join(tables[0].column_names)
    con = database.cursor()
    started = time.perf_counter()
    for table in tables:
        con.register("incoming", table)
        con.execute("BEGIN")
        con.execute(f"INSERT INTO events ({names}) SELECT {names} FROM incoming")
        con.execute("COMMIT")
        con.unregister("incoming")
    took = time.perf_counter() - started
    count = sum(table.num_rows for table in tables)
    _close(database, None, count)
    return count / took / 1e3


def _table(batch: list[bytes]) -> pa.Table:
    """The rows of a batch as `events` has them, as plain columns."""
    tables = []
    for payload in batch:
        message = Message.decode(0, payload)
        table = pa.Table.from_batches([message.batch])
        plain = [
            c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for c in table.columns
        ]
        table = pa.table(plain, names=table.column_names)
        own = {"engine": message.header.engine, "epoch": message.header.epoch, "trust": "exact"}
        for name, value in own.items():
            table = table.append_column(name, pa.repeat(pa.scalar(value), table.num_rows))
        tables.append(table)
    return pa.concat_tables(tables).combine_chunks()


def _file(folder: Path) -> Path:
    folder.mkdir()
    return folder / "bench.duckdb"


def _close(database: Database, log: SegmentLog | None, rows: int) -> None:
    assert database.cursor().execute("SELECT count(*) FROM events").fetchone() == (rows,)
    database.close()
    if log:
        log.close()


def traffic(message_rows: int) -> Iterator[bytes]:
    """Messages of a real core at work, as they go over the wire."""
    rng = random.Random(3)
    core = Core(
        engine="bench",
        epoch="1",
        namespace="bench",
        page_size=PAGE,
        device=4_000,
        host=6_000,
        storage=12_000,
    )
    log, now = core.log(), 0
    paths = [array("I", rng.choices(range(50_000), k=600)) for _ in range(SESSIONS)]
    for session in range(SESSIONS):
        core.open_session(now, f"agent-{session}")
    for request in range(REQUESTS):
        now += 1_000_000
        at = rng.randrange(SESSIONS)
        if len(paths[at]) > 4_000:
            paths[at] = paths[at][:600]
        paths[at].extend(rng.choices(range(50_000), k=rng.randrange(80, 300)))
        serve(core, now, f"agent-{at}", f"r{request}", paths[at])
        while log.pending() >= message_rows and (message := log.drain(message_rows)):
            yield message.payload
    core.check()


def serve(core: Core, now: int, session: str, request: str, tokens: array[int]) -> None:
    """One request from arrival to release, with every move it asks for done at once."""
    core.note(now, "request", "arrival", session=session, request=request, tokens=len(tokens))
    held = core.acquire(now, session, request, tokens)
    while core.restore(now, held.receipt).pending:
        move(core, now)
    ready = core.restore(now, held.receipt).ready
    core.note(now, "canary", "check", session=session, reason="read", pages=ready)
    grant = core.reserve(now, held.receipt, len(tokens) // PAGE - ready)
    core.commit(now, grant.op, tokens, ready, grant.pages)
    core.note(now, "request", "first_token", session=session, request=request, duration=5)
    move(core, now)
    core.release(now, held.receipt)
    core.note(now, "request", "finish", session=session, request=request, duration=9)
    core.note(now, "tool", "start", session=session)


def move(core: Core, now: int) -> None:
    while actions := core.actions():
        for action in actions:
            core.complete(now, action.op, b"\1" * action.pages, bytes=action.pages << 16)

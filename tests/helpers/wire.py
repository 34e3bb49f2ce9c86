"""Messages of the log made by hand, for what no healthy core would send, and a drain to send
them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from telemetry import schema

TYPES = {
    "uint64": pa.uint64(),
    "int64": pa.int64(),
    "uint32": pa.uint32(),
    "uint16": pa.uint16(),
    "text": pa.dictionary(pa.int32(), pa.utf8()),
    "binary": pa.binary(),
}
SECOND = 1_000_000_000
BOOT = 1_700_000_000 * SECOND


def payload(
    rows: list[dict[str, Any]],
    *,
    engine: str = "eng",
    epoch: str = "e1",
    dropped: int = 0,
    state_hash: str = "0" * 32,
    claim_rows: int | None = None,
) -> bytes:
    """An Arrow IPC stream as the core writes it; each row needs at least seq. Rows are a second
    apart."""
    columns = schema.columns()
    full = [
        {"ts": BOOT + row["seq"] * SECOND, "clock": row["seq"] * SECOND, "rank": 0} | row
        for row in rows
    ]
    arrays = [
        pa.array([row.get(name) for row in full], pa.utf8()).dictionary_encode()
        if kind == "text" and name != "detail"
        else pa.array([row.get(name) for row in full], pa.utf8() if kind == "text" else TYPES[kind])
        for name, kind, _ in columns
    ]
    batch = pa.RecordBatch.from_arrays(arrays, names=[name for name, *_ in columns])
    metadata = {
        "v": "1",
        "engine": engine,
        "epoch": epoch,
        "first": str(rows[0]["seq"]),
        "rows": str(len(rows) if claim_rows is None else claim_rows),
        "dropped": str(dropped),
        "state_hash": state_hash,
    }
    batch = batch.replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def notes(first: int, count: int, **meta: Any) -> bytes:
    """`count` rows that change no state, numbered from `first`."""
    rows = [
        {"seq": seq, "kind": "tool", "phase": "start", "session": "s1"}
        for seq in range(first, first + count)
    ]
    return payload(rows, **meta)


@dataclass(frozen=True)
class Batch:
    payload: bytes
    rows: int = 1


class ListLog:
    """The drain end of a log whose messages the test writes."""

    def __init__(self, payloads: list[bytes] | None = None) -> None:
        self.waiting = deque(payloads or [])

    def drain(self, max_rows: int = 4096) -> Batch | None:
        return Batch(self.waiting.popleft()) if self.waiting else None

    def dropped(self) -> int:
        return 0

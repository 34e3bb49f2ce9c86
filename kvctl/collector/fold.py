"""Segment records in, table rows out. Deterministic: the same records give the same rows, whether
they come from an engine or from a segment read again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kvctl.collector.segment import Position, Record
from kvctl.store.writer import Owner, Row, Rows, State
from runtime._core import LogError, Replica
from telemetry.message import Header, Message

GAP_ROW = pa.schema(
    [
        ("seq", pa.uint64()),
        ("score", pa.int64()),
        ("ts", pa.int64()),
        ("kind", pa.string()),
        ("detail", pa.string()),
    ]
)


@dataclass
class Life:
    """One epoch of an engine as far as it was folded."""

    engine: str
    epoch: str
    ordinal: int
    """Epochs were met in this order; wall clocks can go back."""
    address: str
    replica: Replica = field(default_factory=Replica)
    seq: int = 0
    """Last row received."""
    number: int = -1
    """Last message received, or given up as lost."""
    wall: int = 0
    rows: int = 0
    messages: int = 0
    dropped: int = 0
    gaps: int = 0
    lost_rows: int = 0
    trust: str = "exact"
    first_ts: int = 0
    last_ts: int = 0
    problem: str = ""
    lost: str = ""
    """Why messages are missing since the last one received."""

    @property
    def gapless(self) -> bool:
        return self.gaps == 0 and self.trust == "exact" and not self.lost

    @property
    def owner(self) -> Owner:
        """Of the rows received now."""
        return Owner(self.engine, self.epoch, self.trust)

    def row(self) -> Row:
        return {
            "engine": self.engine,
            "epoch": self.epoch,
            "life": self.ordinal,
            "address": self.address,
            "seq": self.seq,
            "number": self.number,
            "rows": self.rows,
            "messages": self.messages,
            "dropped": self.dropped,
            "gaps": self.gaps,
            "lost_rows": self.lost_rows,
            "trust": self.trust,
            "state_hash": self.replica.state_hash(),
            "gapless": self.gapless,
            "first_ts": self.first_ts,
            "last_ts": self.last_ts,
            "problem": self.problem,
        }

    def state(self) -> State:
        """As of the last row that could be folded."""
        replica = self.replica
        return State(
            self.engine, self.epoch, replica.seq(), self.wall, replica.sessions(), replica.pools()
        )


class Fold:
    """Not thread-safe."""

    def __init__(self) -> None:
        self.lives: dict[tuple[str, str], Life] = {}
        self._current: dict[str, Life] = {}
        self._changed: dict[tuple[str, str], Life] = {}

    def resume(self, address: str) -> tuple[str, int] | None:
        """Epoch and number of the last message received from an address."""
        life = self._current.get(address)
        return (life.epoch, life.number) if life else None

    def apply(self, records: list[tuple[Position, Record]]) -> Rows:
        rows = Rows()
        self._changed = {}
        for position, record in records:
            rows.position = (position.segment, position.offset)
            if record.header["kind"] == "action":
                rows.actions.append(record.header["action"])
            elif record.header["kind"] == "gap":
                self._lost(record.header)
            else:
                self._message(record, rows)
        rows.engines = [life.row() for life in self._changed.values()]
        rows.states = [life.state() for life in self._changed.values() if life.replica.seq()]
        return rows

    def _lost(self, header: dict[str, Any]) -> None:
        """Remembered until the next message says which rows it was."""
        life = self._current.get(header["address"])
        if life is not None and life.epoch == header["epoch"]:
            life.lost = f"messages {header['first']}..{header['last']}: {header['reason']}"
            life.number = max(life.number, header["last"])
            self._touch(life)

    def _touch(self, life: Life) -> None:
        self._changed[life.engine, life.epoch] = life

    def _life(self, address: str, header: Header, rows: Rows) -> Life:
        life = self.lives.get((header.engine, header.epoch))
        if life is None:
            before = self._current.get(address)
            if before and before.lost:
                # How many rows went with the engine, nobody knows.
                self._gap(before, before.seq + 1, before.seq + 1, before.last_ts, rows)
            life = Life(header.engine, header.epoch, len(self.lives), address)
            self.lives[header.engine, header.epoch] = life
        self._current[address] = life
        return life

    def _message(self, record: Record, rows: Rows) -> None:
        message = Message.decode(record.header["number"], record.payload)
        received, header = record.header["received"], message.header
        life = self._life(record.header["address"], header, rows)
        if message.number <= life.number:
            return
        self._touch(life)
        ts = message.batch["ts"]
        if not life.messages:
            life.first_ts = ts[0].as_py()
        life.dropped += header.dropped
        if header.first > life.seq + 1:
            if not life.lost:
                life.lost = (
                    f"the engine dropped {header.dropped} rows that were not sent in time"
                    if header.dropped
                    else "never received"
                )
            self._gap(life, life.seq + 1, header.first - 1, ts[0].as_py(), rows)
        life.lost = ""
        folded = self._replica(life, message)
        life.seq, life.number = header.last, message.number
        life.rows += header.rows
        life.messages += 1
        life.last_ts = ts[-1].as_py()
        life.wall = life.last_ts - message.batch["clock"][-1].as_py()
        rows.add(life.owner, message.batch)
        rows.messages.append(
            {
                "engine": life.engine,
                "epoch": life.epoch,
                "number": message.number,
                "first": header.first,
                "rows": header.rows,
                "bytes": len(message.payload),
                "dropped": header.dropped,
                "received_ts": received,
                "state_hash": header.state_hash,
                "folded_hash": folded,
                "trust": life.trust,
            }
        )

    def _replica(self, life: Life, message: Message) -> str | None:
        """Fold, and compare what comes out with what the engine says. Once it fails nothing after
        it can be proven."""
        if life.trust != "exact":
            return None
        try:
            return life.replica.fold(message.payload)
        except LogError as error:
            life.trust = "mismatch"
            life.problem = f"message {message.number} does not fold: {error}"
            return None

    def _gap(self, life: Life, first: int, last: int, ts: int, rows: Rows) -> None:
        life.gaps += 1
        life.lost_rows += last - first + 1
        if life.trust == "exact":
            life.trust = "after_gap"
            life.problem = f"rows {first}..{last} are lost ({life.lost})"
        row = {"seq": last, "score": first, "ts": ts, "kind": "gap", "detail": life.lost}
        rows.add(life.owner, pa.RecordBatch.from_pylist([row], GAP_ROW))
        life.lost = ""
        self._touch(life)

"""What a subscriber yields: messages of the log, and what is to be known about the stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from telemetry.errors import BadPayload

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Header:
    """The payload's schema metadata."""

    engine: str
    epoch: str
    first: int
    """Sequence number of the first row."""
    rows: int
    dropped: int
    """Rows that the engine itself lost just before this batch, because nobody drained them."""
    state_hash: str
    """After the last row."""

    @property
    def last(self) -> int:
        return self.first + self.rows - 1


REQUIRED = ("seq", "ts", "clock", "kind")


@dataclass(frozen=True)
class Message:
    number: int
    payload: bytes
    header: Header
    batch: pa.RecordBatch = field(compare=False, repr=False)

    @staticmethod
    def decode(number: int, payload: bytes) -> Message:
        """Raises BadPayload unless the whole batch is sound: later readers hand it to native
        code."""
        import pyarrow as pa

        try:
            with pa.ipc.open_stream(payload) as reader:
                header = _header(reader.schema.metadata or {})
                batch = reader.read_next_batch()
            batch.validate(full=True)
            names = batch.schema.names
            missing = [name for name in REQUIRED if name not in names]
            if missing:
                raise ValueError(f"no column {missing[0]}")
            if batch.num_rows != header.rows:
                raise ValueError(f"{batch.num_rows} rows, the header says {header.rows}")
        except (pa.ArrowException, ValueError, KeyError, OSError, StopIteration) as error:
            raise BadPayload(f"message {number} ({len(payload)} bytes): {error!r}") from error
        return Message(number, payload, header, batch)


def _header(metadata: dict[bytes, bytes]) -> Header:
    meta = {key.decode(): value.decode() for key, value in metadata.items()}
    header = Header(
        engine=meta["engine"],
        epoch=meta["epoch"],
        first=int(meta["first"]),
        rows=int(meta["rows"]),
        dropped=int(meta["dropped"]),
        state_hash=meta["state_hash"],
    )
    if int(meta["v"]) < 1 or not header.epoch or header.first < 1 or header.rows < 1:
        raise ValueError(f"version {meta['v']}, {header}")
    return header


@dataclass(frozen=True)
class Gap:
    """Messages `first` to `last` of an epoch will not come."""

    epoch: str
    first: int
    last: int
    reason: str


@dataclass(frozen=True)
class Epoch:
    """A new life of the engine begins; its numbers start from 0 again."""

    engine: str
    epoch: str


@dataclass(frozen=True)
class Silence:
    """Not even a heartbeat for `seconds`. Said once; the next frame ends it."""

    seconds: float


Item = Message | Gap | Epoch | Silence

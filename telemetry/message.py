"""What a subscriber yields: messages of the log, and what is to be known about the stream."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
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


@dataclass(frozen=True)
class Message:
    number: int
    payload: bytes
    header: Header

    @staticmethod
    def decode(number: int, payload: bytes) -> Message:
        """Raises BadPayload unless the whole batch is sound: later readers hand it to native
        code."""
        message = Message(number, payload, _header(payload))
        if message.batch.num_rows != message.header.rows:
            raise BadPayload(
                f"message {number} has {message.batch.num_rows} rows, "
                f"its header says {message.header.rows}"
            )
        return message

    @cached_property
    def batch(self) -> pa.RecordBatch:
        import pyarrow as pa

        try:
            with pa.ipc.open_stream(self.payload) as reader:
                batch = reader.read_next_batch()
            batch.validate(full=True)
        except (pa.ArrowException, ValueError, OSError, StopIteration) as error:
            raise BadPayload(f"message {self.number} is not an Arrow batch: {error}") from error
        return batch


def _header(payload: bytes) -> Header:
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(payload) as reader:
            meta = {key.decode(): value.decode() for key, value in reader.schema.metadata.items()}
        if int(meta["v"]) < 1 or not meta["epoch"]:
            raise ValueError(f"version {meta['v']}, epoch {meta['epoch']!r}")
        header = Header(
            engine=meta["engine"],
            epoch=meta["epoch"],
            first=int(meta["first"]),
            rows=int(meta["rows"]),
            dropped=int(meta["dropped"]),
            state_hash=meta["state_hash"],
        )
    except (pa.ArrowException, ValueError, KeyError, AttributeError, OSError) as error:
        raise BadPayload(f"{len(payload)} bytes without a log header: {error!r}") from error
    if header.first < 1 or header.rows < 1:
        raise BadPayload(f"rows {header.first}..{header.last}: rows count from 1")
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

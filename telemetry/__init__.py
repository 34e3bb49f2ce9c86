"""The log that both halves speak: its columns, its framing, its publisher and its subscriber.

Owns: the table of columns, messages on the wire (numbers, replay, heartbeat), gaps and epochs.
Does not know: what the rows mean, DuckDB, tensors. The rows are made by `runtime._core`, which
alone encodes and folds them; here they travel.
May import: runtime._core. Cheap to import: pyarrow and zmq are loaded by what uses them.

On the wire (PUB, then the ROUTER that answers replays at the next port):
  live       [topic, number: 8 bytes big-endian, payload]     from 0, one sequence per epoch
  heartbeat  [topic, last number, b"", oldest number, life]   8 x ff where there is none yet;
                                                              life: 8 bytes, another at each start
  ask        DEALER sends [b"", first number wanted]
  answer     [b"", topic, number, payload]..., then [b"", b"", 8 x ff, b""]
A subscriber written for vLLM's events reads the same frames. An answer that begins above what was
asked for says that the rest has left the replay ring.
"""

__kvctl__ = "0.1.0"

"""An engine's core and publisher as a process, without tensors: what collectors are tried on.

`python talker.py PORT RING` prints its address, then for each line `N` on stdin plays N turns and
answers with the core's row number and state hash.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from array import array
from pathlib import Path

from runtime._core import Core
from telemetry.publisher import Publisher

ROOT = Path(__file__).parents[2]
PAGE = 4
STEP_NS = 1_000_000


def new_core(epoch: str = "e1", engine: str = "eng", log_rows: int = 1 << 20) -> Core:
    return Core(
        engine=engine,
        epoch=epoch,
        namespace="test",
        page_size=PAGE,
        device=24,
        host=32,
        storage=48,
        page_bytes=64,
        log_rows=log_rows,
    )


class Churn:
    """Sessions that grow, evict each other and are pinned: rows of most kinds. Seeded."""

    def __init__(self, core: Core, seed: int = 0) -> None:
        self.core = core
        self._random = random.Random(seed)
        self._now = 0
        self._tokens: dict[str, array[int]] = {}
        self._turn = 0

    def play(self, turns: int) -> None:
        for _ in range(turns):
            self._play_one()

    def _tick(self) -> int:
        self._now += STEP_NS
        return self._now

    def _play_one(self) -> None:
        core, rng = self.core, self._random
        self._turn += 1
        session, request = f"s{rng.randrange(6)}", f"r{self._turn}"
        tokens = self._tokens.setdefault(session, array("I"))
        if len(tokens) > 60:
            del tokens[:]
        tokens.extend(rng.randrange(1000) for _ in range(rng.randrange(4, 20)))
        core.open_session(self._tick(), session)
        core.note(
            self._tick(), "request", "arrival", session=session, request=request, tokens=len(tokens)
        )
        match = core.acquire(self._tick(), session, request, tokens)
        while core.restore(self._tick(), match.receipt).pending:
            self._move()
        have = sum(count for *_, count in core.table(match.receipt))
        grant = core.reserve(self._tick(), match.receipt, len(tokens) // PAGE - have)
        core.commit(self._tick(), grant.op, tokens, have, grant.pages)
        core.release(self._tick(), match.receipt)
        core.note(self._tick(), "request", "finish", session=session, request=request, duration=9)
        if rng.random() < 0.1:
            core.pin(self._tick(), session, "host", 20 * STEP_NS, "ops")
        self._move()
        core.tick(self._tick())

    def _move(self) -> None:
        while actions := self.core.actions():
            for action in actions:
                arrived = bytes(self._random.random() > 0.02 for _ in range(action.pages))
                self.core.complete(
                    self._tick(), action.op, arrived, bytes=64 * sum(arrived), duration=1000
                )


class Talker:
    """The process, from outside. `core` at the other end has epoch `epoch`."""

    def __init__(self, epoch: str = "e1", ring: int = 10_000, port: str = "*") -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, epoch, str(ring), port],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = self._line()

    def play(self, turns: int) -> tuple[int, str]:
        """(row number, state hash) after that many more turns."""
        assert self._process.stdin
        self._process.stdin.write(f"{turns}\n")
        self._process.stdin.flush()
        seq, state_hash = self._line().split()
        return int(seq), state_hash

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Talker:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _line(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline().strip()
        assert line, "the talker has died"
        return line


def main(epoch: str, ring: str, port: str) -> None:
    core = new_core(epoch)
    churn = Churn(core)
    replay = "*" if port == "*" else str(int(port) + 1)
    with Publisher(
        core.log(),
        f"tcp://127.0.0.1:{port}",
        f"tcp://127.0.0.1:{replay}",
        ring_messages=int(ring),
        heartbeat_s=0.2,
    ) as publisher:
        control = "tcp://127.0.0.1:1"
        address = f"{publisher.endpoint},replay={publisher.replay_endpoint},control={control}"
        print(address, flush=True)
        for line in sys.stdin:
            for _ in range(int(line)):
                churn.play(1)
                # Many small messages, as an engine's steps make them.
                while core.log().pending():
                    time.sleep(0.001)
            print(core.seq(), core.state_hash(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

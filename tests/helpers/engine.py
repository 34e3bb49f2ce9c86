"""A real engine with a toy model, as a process: what operators' tools are tried on.

`python engine.py DIRECTORY` prints its address, serves the requests below, then steps and serves
what stdin asks for, `SESSION FIRST_TOKEN END_TOKEN` a line, until stdin ends. It proves what the
cache gives it. `alpha` and its child `alpha/sub` share a prefix; `flood` pushes alpha off device
and host and out of storage, so that alpha's second request misses what was evicted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

ROOT = Path(__file__).parents[2]
LOOPBACK = "tcp://127.0.0.1:*"


class Engine:
    """The process, from outside, once it has served everything."""

    def __init__(self, directory: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(directory)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = self._line()
        assert self._line() == "served"

    def serve(self, session: str, first: int, end: int) -> int:
        """One more request, whose answer is right; how many of its tokens were cached."""
        assert self.process.stdin
        self.process.stdin.write(f"{session} {first} {end}\n")
        self.process.stdin.flush()
        return int(self._line())

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def _line(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline().strip()
        assert line, "the engine has died"
        return line


def state_of(tokens: range) -> torch.Tensor:
    import torch

    return torch.tensor(tokens, dtype=torch.float32).view(1, 1, 1, -1, 1).expand(1, 2, 1, -1, 2)


def main(directory: str) -> None:
    import threading
    from itertools import chain
    from queue import SimpleQueue

    import torch

    from runtime.cache import TieredCache
    from runtime.layout import Layout
    from runtime.storage.file import FileStore

    layout = Layout(layers=1, kv_heads=1, head_dim=2, page_size=4, dtype="float32")
    cache = TieredCache(
        layout,
        engine="toy",
        namespace="toy",
        device_pages=8,
        host_pages=8,
        storage=FileStore(directory),
        storage_pages=12,
        publish=LOOPBACK,
        replay=LOOPBACK,
        control=LOOPBACK,
    )
    at = cache.endpoints
    print(f"{at['publish']},replay={at['replay']},control={at['control']}", flush=True)

    def serve(session: str, tokens: range, request: str, parent: str = "") -> int:
        with cache.begin(request, session, [*tokens], parent=parent) as served:
            cached = served.restore()
            assert torch.equal(served.read(), state_of(tokens[:cached]))
            served.write(cached, state_of(tokens[cached:]))
            served.first_token()
        for _ in range(20):
            cache.step()
            time.sleep(0.005)
        return cached

    serve("alpha", range(16), "a1")
    serve("alpha/sub", range(24), "s1", parent="alpha")
    for turn in range(3):
        serve("flood", range(1000 + 100 * turn, 1032 + 100 * turn), f"f{turn}")
    serve("alpha", range(20), "a2")
    print("served", flush=True)

    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(
        target=lambda: [lines.put(x) for x in chain(sys.stdin, [""])], daemon=True
    ).start()
    while not cache.stop_requested:
        cache.step()
        time.sleep(0.01)
        if lines.empty():
            continue
        if not (line := lines.get()):
            break
        session, first, end = line.split()
        print(serve(session, range(int(first), int(end)), f"{session}-{end}"), flush=True)
    cache.close()


if __name__ == "__main__":
    main(sys.argv[1])

"""A real engine with a toy model, as a process: what operators' tools are tried on.

`python engine.py DIRECTORY` prints its address, serves the requests below, then steps until stdin
ends. `alpha` and its child `alpha/sub` share a prefix; `flood` pushes alpha off device and host and
out of storage, so that alpha's second request misses what was evicted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOOPBACK = "tcp://127.0.0.1:*"


@contextmanager
def running(directory: Path) -> Iterator[str]:
    """The address of an engine that has served everything."""
    process = subprocess.Popen(
        [sys.executable, __file__, str(directory)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    try:
        address = process.stdout.readline().strip()
        assert process.stdout.readline() == "served\n"
        yield address
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def main(directory: str) -> None:
    import threading

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

    def serve(session: str, tokens: range, request: str, parent: str = "") -> None:
        with cache.begin(request, session, [*tokens], parent=parent) as served:
            cached = served.restore()
            served.write(cached, torch.ones(1, 2, 1, len(tokens) - cached, 2))
            served.first_token()
        for _ in range(20):
            cache.step()
            time.sleep(0.005)

    serve("alpha", range(16), "a1")
    serve("alpha/sub", range(24), "s1", parent="alpha")
    for turn in range(3):
        serve("flood", range(1000 + 100 * turn, 1032 + 100 * turn), f"f{turn}")
    serve("alpha", range(20), "a2")
    print("served", flush=True)

    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.is_set() and not cache.stop_requested:
        cache.step()
        time.sleep(0.01)
    cache.close()


if __name__ == "__main__":
    main(sys.argv[1])

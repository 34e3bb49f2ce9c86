"""A collector of the demo's own, in a context that goes away with it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from kvctl.context import Context
from kvctl.demo.child import Child
from kvctl.errors import Unreachable
from kvctl.source import LiveSource

START_S = 30.0


@contextmanager
def served(address: str, home: Path) -> Iterator[LiveSource]:
    """Collect from the engine at `address` into the context `home`, until the block is left."""
    with Child("kvctl.server", ["--attended", "--home", str(home), address]) as server:
        deadline = time.monotonic() + START_S
        while (source := _connected(home)) is None:
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise server.failure()
            time.sleep(0.05)
        with closing(source):
            yield source


def _connected(home: Path) -> LiveSource | None:
    try:
        return LiveSource(Context(home))
    except Unreachable:
        return None

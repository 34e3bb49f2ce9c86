"""The demo's engine, seen from outside: its progress, and the two words it waits for.

What its lines mean is described at the top of runtime/demo/__main__.py.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kvctl.demo.child import Child
from kvctl.errors import TimedOut

Event = dict[str, Any]


class Engine(Child):
    """heard: called for every event, on a thread of our own."""

    def __init__(self, model: str, workload: Path, heard: Callable[[Event], None]) -> None:
        super().__init__("runtime.demo", ["--model", model, "--workload", str(workload)])
        self._heard = heard
        self._events: list[Event] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, name="demo-engine", daemon=True)
        self._reader.start()

    def wait(self, event: str, timeout_s: float) -> Event:
        """The first event of that name, now or within the time."""
        deadline = time.monotonic() + timeout_s
        with self._news:
            while (found := self.seen(event)) is None:
                if not self._reader.is_alive() and self.process.poll() is not None:
                    raise self.failure()
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise TimedOut(f"the engine did not report {event!r} in {timeout_s:.0f} s")
                self._news.wait(min(left_s, 0.5))
        return found

    def seen(self, event: str) -> Event | None:
        return next((each for each in self._events if each["event"] == event), None)

    def requests(self, session: str) -> list[Event]:
        """The session's requests so far."""
        return [
            each
            for each in self._events
            if each["event"] == "request" and each["session"] == session
        ]

    def tell(self, word: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            event = json.loads(line)
            with self._news:
                self._events.append(event)
                self._news.notify_all()
            self._heard(event)
        self.process.wait()
        with self._news:
            self._news.notify_all()

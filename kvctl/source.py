"""Where answers come from. Screens and commands know only `Source`; live or file, they cannot
tell."""

from __future__ import annotations

import json
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kvctl.errors import TimedOut, Unreachable, from_code

if TYPE_CHECKING:
    import zmq

    from kvctl.context import Context

CONNECT_MS = 2000
"""A server on this machine that is there accepts at once."""


class Source(Protocol):
    """Answers verbs (see kvctl.verbs). Safe to call from several threads."""

    name: str
    """For the header: the context, or the file."""
    live: bool
    """False over a file: acting verbs are refused with `read_only`."""

    def ask(self, verb: str, **args: Any) -> dict[str, Any]:
        """The verb's result, or a KvctlError. Arguments that are None are left out."""
        ...

    def close(self) -> None: ...


class LiveSource:
    """A running server, by context or by endpoint. Unreachable when there is none.

    timeout_s: for an answer, on top of what sql may take by its own `timeout_s`.
    """

    live = True

    def __init__(self, where: Context | str, timeout_s: float = 8.0) -> None:
        import zmq

        if isinstance(where, str):
            self.name = self.endpoint = where
        else:
            self.name = where.name
            self.endpoint = where.server()["endpoint"]
        self._timeout_s = timeout_s
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._closed = threading.Event()

    def ask(self, verb: str, **args: Any) -> dict[str, Any]:
        import zmq

        if self._closed.is_set():
            raise Unreachable(f"the connection to {self.endpoint} is closed")
        given = {key: value for key, value in args.items() if value is not None}
        request = {"v": 1, "id": uuid.uuid4().hex, "verb": verb, "args": given}
        wait_s = self._timeout_s + (float(given.get("timeout_s", 10)) if verb == "sql" else 0)
        # A socket of its own for each question: no late answer meets the next one, no thread waits.
        with self._context.socket(zmq.DEALER) as dealer:
            dealer.setsockopt(zmq.LINGER, 0)
            dealer.setsockopt(zmq.IMMEDIATE, 1)
            dealer.setsockopt(zmq.SNDTIMEO, CONNECT_MS)
            dealer.connect(self.endpoint)
            try:
                dealer.send(json.dumps(request).encode())
            except zmq.Again:
                raise Unreachable(f"nobody answers at {self.endpoint}: kvctl serve") from None
            return self._receive(dealer, verb, wait_s)

    def _receive(self, dealer: zmq.Socket[bytes], verb: str, wait_s: float) -> dict[str, Any]:
        deadline = time.monotonic() + wait_s
        while not dealer.poll(100):
            if self._closed.is_set():
                raise Unreachable(f"the connection to {self.endpoint} was closed")
            if time.monotonic() >= deadline:
                raise TimedOut(f"{verb}: no answer from {self.endpoint} within {wait_s:g} s")
        reply = json.loads(dealer.recv())
        if not reply["ok"]:
            raise from_code(reply["error"]["code"], reply["error"]["message"])
        result: dict[str, Any] = reply["result"]
        return result

    def close(self) -> None:
        self._closed.set()
        self._context.term()


class FileSource:
    """A recording, read without a server: a database file, a context's directory, or segments
    (`*.seg`, or a directory of them), whose tables are then made in memory. StoreError when there
    is nothing to read or a server has it open."""

    live = False

    def __init__(self, path: str | Path) -> None:
        from kvctl.collector.recording import open_recording
        from kvctl.store.store import Store

        self.name = str(path)
        recording = open_recording(Path(path))
        self._con = recording.tables
        about = {"mode": "file", "source": self.name, "problem": recording.problem}
        self._store = Store(self._con.cursor, lambda: about)

    def ask(self, verb: str, **args: Any) -> dict[str, Any]:
        from kvctl.verbs import answer

        given = {key: value for key, value in args.items() if value is not None}
        return answer(self._store, verb, given)

    def close(self) -> None:
        self._con.close()

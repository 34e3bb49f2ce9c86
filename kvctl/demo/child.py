"""A program that the demo starts and, whatever happens, ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from kvctl.errors import NotEstablished

GRACE_S = 10.0


def end_in_order() -> None:
    """From here on SIGTERM, and SIGHUP of a terminal that is closed, leave every `with` block, as
    Ctrl-C does."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))


def end_with_terminal(home: Path) -> None:
    """While a screen is drawn, a terminal that is closed ends us here and now, children and `home`
    first: leaving in order would wait for Textual, and Textual for the terminal."""

    def hang_up(number: int, _: object) -> None:
        for child in [*_running]:
            child.end()
        shutil.rmtree(home, ignore_errors=True)
        os._exit(128 + number)

    signal.signal(signal.SIGHUP, hang_up)


_running: list[Child] = []


class Child:
    """`python -P -m MODULE …`, with pipes for stdin and stdout; leaving the `with` block ends it.

    It runs in a session of its own, so that Ctrl-C reaches only us and we end it in order; what it
    writes to stderr is kept for the message if it fails, and off the operator's screen.
    """

    def __init__(self, module: str, arguments: Sequence[str]) -> None:
        self.module = module
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115, closed by `end`
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            start_new_session=True,
        )
        _running.append(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def failure(self) -> NotEstablished:
        """The error for a child that ended, or must be ended, before it had done its work."""
        code = self.process.poll()
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        said = lines[-1] if lines else "it said nothing"
        state = "does not answer" if code is None else f"ended with status {code}"
        return NotEstablished(f"{self.module} {state}: {said}")

    def end(self) -> None:
        """Ask it to end, and make it end after GRACE_S. Harmless when it has ended."""
        if self in _running:
            _running.remove(self)
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                # What is still buffered has no reader any more.
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._stderr.close()

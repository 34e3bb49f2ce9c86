"""Starts a server of its own for whoever needs one."""

from __future__ import annotations

import subprocess
import sys
import time

from kvctl.context import Context
from kvctl.errors import NotEstablished, Unreachable
from kvctl.source import LiveSource

START_S = 15.0


def ensure_server(context: Context, engines: list[str]) -> LiveSource:
    """The context's server, started detached when none runs; it then follows `engines` too.
    NotEstablished, with the server's own words, when it does not come up."""
    if context.running():
        source = LiveSource(context)
        for engine in engines:
            source.ask("attach", address=engine)
        return source
    context.make()
    command = [sys.executable, "-P", "-m", "kvctl.server", "--home", str(context.home), *engines]
    with context.log.open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            source = LiveSource(context)
            source.ask("status")
            return source
        except Unreachable:
            time.sleep(0.05)
    said = context.log.read_text(errors="replace").strip().splitlines()[-1:]
    raise NotEstablished(f"the server did not start ({context.log}): {' '.join(said) or 'silent'}")

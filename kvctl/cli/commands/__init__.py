"""One file per verb: `configure(parser)` adds arguments, `run(args, settings)` gives the exit code.

`COMMANDS` says what there is without importing any of it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    name: str
    summary: str
    acting: bool = False
    """Changes something in an engine: absent in read-only mode."""


COMMANDS = (
    Command("demo", "serve a real model through the cache and watch it"),
    Command("serve", "collect from engines, keep what they say, answer questions"),
    Command("tui", "see and steer in the terminal"),
    Command("engines", "engines, and how far what we know of them can be trusted"),
    Command("sessions", "sessions: where their pages are, how well they hit"),
    Command("events", "the log"),
    Command("why", "why a session or a request missed"),
    Command("pin", "keep a session's pages in a tier for a while", acting=True),
    Command("unpin", "end a session's leases", acting=True),
    Command("demote", "move a session's own pages off the device", acting=True),
    Command("prefetch", "bring a session's pages from storage to the host", acting=True),
    Command("flush", "drop a session's own pages from every tier", acting=True),
    Command("sql", "ask the database"),
    Command("audit", "have every copy checked; fails when one is damaged", acting=True),
    Command("doctor", "is this installation and its server in order"),
    Command("version", "print versions"),
)

"""One file per verb: `configure(parser)` adds arguments, `run(args, settings)` gives the exit code.

`COMMANDS` says what there is without importing any of it.
"""

from dataclasses import dataclass

from kvctl.actions import SESSION_ACTIONS


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
    *(Command(action.name, action.summary, action.acting) for action in SESSION_ACTIONS),
    Command("sql", "ask the database"),
    Command("audit", "have every copy checked; fails when one is damaged", acting=True),
    Command("doctor", "is this installation and its server in order"),
    Command("version", "print versions"),
)

"""What an operator can do to a session: one table for command line, screens and read-only mode.

Read-only is a property of the data, not an `if` in each handler: who offers an action asks
`allowed`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kvctl.errors import UsageError
from kvctl.source import Source
from kvctl.table import records


@dataclass(frozen=True)
class Action:
    name: str
    """The verb, the command, and what is typed after `:`."""
    key: str
    """Its key in the terminal UI."""
    summary: str
    acting: bool = False
    """Changes something in an engine."""
    dangerous: bool = False
    """Throws cached state away; needs a confirmation."""


SESSION_ACTIONS = (
    Action("why", "w", "why the session missed, other than for new text"),
    Action("pin", "p", "keep the session's pages in a tier for a while", acting=True),
    Action("unpin", "u", "end the session's leases", acting=True),
    Action("demote", "d", "move the session's own pages off the device", acting=True),
    Action("prefetch", "f", "bring the session's pages from storage to the host", acting=True),
    Action(
        "flush", "x", "drop the session's own pages from every tier", acting=True, dangerous=True
    ),
)
BY_NAME = {action.name: action for action in SESSION_ACTIONS}


def allowed(action: Action, read_only: bool) -> bool:
    return not (action.acting and read_only)


def perform(
    source: Source, name: str, session: str, engine: str | None = None, **args: Any
) -> Iterator[dict[str, Any]]:
    """Each answer of the engine, as it comes: one, or for unpin one per lease.

    Errors are the source's, and UsageError when unpin finds no lease.
    """
    if name == "unpin":
        for lease in _leases(source, session, engine):
            yield {"outcome": "accepted", **source.ask("unpin", engine=engine, lease=lease)}
    else:
        yield source.ask(name, engine=engine, session=session, **args)


def _leases(source: Source, session: str, engine: str | None) -> list[int]:
    sessions = records(source.ask("sessions", engine=engine, session=session))
    held = [lease["lease"] for row in sessions for lease in row["leases"]]
    if not held:
        raise UsageError(f"session {session!r} holds no lease: nothing to unpin")
    return held

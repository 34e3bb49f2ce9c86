"""Where answers come from. Screens and commands know only `Source`; live or file, they cannot
tell."""

from __future__ import annotations

from typing import Any, Protocol


class Source(Protocol):
    """Answers verbs (see kvctl.verbs). Safe to call from several threads; calls are serialised."""

    name: str
    """For the header: the context, or the file."""
    live: bool
    """False over a file: acting verbs are refused with `read_only`."""

    def ask(self, verb: str, **args: Any) -> dict[str, Any]:
        """The verb's result, or a KvctlError. Arguments that are None are left out."""
        ...

    def close(self) -> None: ...

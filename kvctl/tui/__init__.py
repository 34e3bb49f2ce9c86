"""The terminal UI: what the caches of a cluster hold, why a session missed, and the keys to act on
it.

Owns: screens, keys, polling. Does not know: sockets, files, engines; every answer comes from a
`Source` and no screen knows whether that is live or a file.
May import: kvctl.source, kvctl.actions, kvctl.table, kvctl.text, kvctl.phrase, kvctl.errors,
textual.
`import kvctl.tui` is cheap; textual is loaded by `run`.
"""

import sys
from collections.abc import Callable

from kvctl.source import Source


def possible() -> bool:
    """Whether there is a terminal to run on. Textual reads stdin and draws on stderr, and without
    a terminal it spins; stdout counts too, for who redirects it wants data."""
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def run(source: Source, *, read_only: bool = False, remark: Callable[[], str] = str) -> None:
    """Show `source` until the operator quits; only when `possible`. The source stays open: it is
    the caller's. remark: what the caller wants said beside the screens' names, asked at every poll.
    """
    from kvctl.tui.app import KvctlApp

    KvctlApp(source, read_only=read_only, remark=remark).run()

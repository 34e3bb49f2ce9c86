"""The terminal UI: what the caches of a cluster hold, why a session missed, and the keys to act on
it.

Owns: screens, keys, polling. Does not know: sockets, files, engines; every answer comes from a
`Source` and no screen knows whether that is live or a file.
May import: kvctl.source, kvctl.actions, kvctl.text, kvctl.phrase, kvctl.errors, textual.
`import kvctl.tui` is cheap; textual is loaded by `run`.
"""

from kvctl.source import Source


def run(source: Source, *, read_only: bool = False) -> None:
    """Show `source` until the operator quits. Needs a terminal on stdin and stdout (the caller
    checks: without one Textual spins). Closes nothing: the source is the caller's."""
    from kvctl.tui.app import KvctlApp

    KvctlApp(source, read_only=read_only).run()

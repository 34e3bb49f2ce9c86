"""The command line: verbs in, answers out.

Owns: arguments, environment variables, exit codes, which verb runs. Does not know: how an answer is
found (kvctl.verbs) or drawn (kvctl.output, kvctl.tui).
May import: everything of kvctl, but a command only when it is the one that runs: `kvctl --help`
answers in 150 ms.
"""

from kvctl.cli.dispatch import main

__all__ = ["main"]

"""Drop a session's own pages from every tier. Its next request computes everything again."""

import argparse
import sys

from kvctl.cli.commands import acting
from kvctl.cli.settings import Settings
from kvctl.errors import UsageError
from kvctl.text import plain


def configure(parser: argparse.ArgumentParser) -> None:
    acting.configure(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(args: argparse.Namespace, settings: Settings) -> int:
    if not args.yes:
        _confirm(args.session)
    return acting.act("flush", args, settings)


def _confirm(session: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError("flush asks before it drops anything, and here is no terminal; add --yes")
    print(
        f"Type the name {plain(session)} to flush that session: ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    if sys.stdin.readline().strip() != session:
        raise UsageError("that is not the name; nothing was done")

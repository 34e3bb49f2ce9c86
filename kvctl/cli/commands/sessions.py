"""Sessions: where their pages are, how well they hit, what is pinned; most recently used first."""

import argparse

from kvctl.cli.opening import opened
from kvctl.cli.settings import Settings
from kvctl.exits import Exit
from kvctl.output import print_table

SHOWN = (
    "session",
    "parent",
    "open",
    "pages",
    "fastest_device",
    "fastest_host",
    "fastest_storage",
    "hit_rate",
    "last_reason",
    "leases",
    "last_use",
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", metavar="NAME")
    parser.add_argument("--limit", type=int, metavar="N", help="default: 500")


def run(args: argparse.Namespace, settings: Settings) -> int:
    with opened(settings) as source:
        table = source.ask("sessions", engine=args.engine, limit=args.limit)
    print_table(table, settings.output, SHOWN)
    return Exit.OK

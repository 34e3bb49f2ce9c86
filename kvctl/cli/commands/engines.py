"""Engines, and how far what we know of them can be trusted."""

import argparse

from kvctl.cli.opening import opened
from kvctl.cli.settings import Settings
from kvctl.exits import Exit
from kvctl.output import print_table

SHOWN = ("engine", "state", "epoch", "seq", "lag_ms", "dropped", "gaps", "trust", "address")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all-epochs", action="store_true", help="also what ran before a restart")


def run(args: argparse.Namespace, settings: Settings) -> int:
    with opened(settings) as source:
        table = source.ask("engines", all_epochs=args.all_epochs or None)
    print_table(table, settings.output, SHOWN)
    return Exit.OK

"""Serve a real model through the cache, watch it, and check that every answer is right."""

import argparse
from pathlib import Path

from kvctl import tui
from kvctl.cli.settings import Settings
from kvctl.errors import UsageError

WORKLOAD = Path("examples/agents")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        choices=("smollm2", "tiny"),
        default="smollm2",
        help="tiny: random weights, for tests; default: smollm2",
    )
    add_workload(parser)
    parser.add_argument(
        "--no-tui", action="store_true", help="a progress bar instead of the screen"
    )


def add_workload(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workload", type=Path, metavar="DIR", default=WORKLOAD, help=f"default: {WORKLOAD}"
    )


def run(args: argparse.Namespace, settings: Settings) -> int:
    if settings.output == "csv":
        raise UsageError("the demo's summary is no table; choose -o table or json")
    from kvctl.demo import run as play

    screen = tui.possible() and not args.no_tui and settings.output == "table"
    return play(args.model, args.workload, screen=screen, output=settings.output)

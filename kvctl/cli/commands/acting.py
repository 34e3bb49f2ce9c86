"""What pin, unpin, demote, prefetch and flush share: do it, say what came of it."""

from __future__ import annotations

import argparse
from typing import Any

from kvctl.actions import perform
from kvctl.cli.opening import opened
from kvctl.cli.settings import Settings
from kvctl.exits import Exit
from kvctl.output import print_object
from kvctl.phrase import outcome


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("--engine", metavar="NAME", help="needed when several have the session")


def act(name: str, args: argparse.Namespace, settings: Settings, **more: Any) -> int:
    """Exit 1 when the engine rejects it; with several leases to unpin, one answer a line."""
    code = Exit.OK
    with opened(settings) as source:
        for answer in perform(source, name, args.session, args.engine, **more):
            print_object(answer, settings.output, [outcome(name, args.session, answer)])
            if answer["outcome"] == "rejected":
                code = Exit.FINDINGS
    return code

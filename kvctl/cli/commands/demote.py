"""Move a session's own pages off the device; what has no copy below is backed up first."""

import argparse

from kvctl.cli.commands import acting
from kvctl.cli.settings import Settings

configure = acting.configure


def run(args: argparse.Namespace, settings: Settings) -> int:
    return acting.act("demote", args, settings)

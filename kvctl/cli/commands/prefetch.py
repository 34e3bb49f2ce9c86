"""Bring a session's pages from storage to the host."""

import argparse

from kvctl.cli.commands import acting
from kvctl.cli.settings import Settings

configure = acting.configure


def run(args: argparse.Namespace, settings: Settings) -> int:
    return acting.act("prefetch", args, settings)

"""Keep a session's pages in a tier for a while. Pinning again renews the lease."""

import argparse

from kvctl.cli.commands import acting
from kvctl.cli.settings import Settings
from kvctl.duration import seconds


def configure(parser: argparse.ArgumentParser) -> None:
    acting.configure(parser)
    parser.add_argument("--tier", choices=("device", "host"), default="host", help="default: host")
    parser.add_argument("--ttl", metavar="TIME", default="10m", help="90s, 10m, 2h; default: 10m")


def run(args: argparse.Namespace, settings: Settings) -> int:
    return acting.act("pin", args, settings, tier=args.tier, ttl_s=seconds(args.ttl))

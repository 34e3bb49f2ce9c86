"""Versions of kvctl and of the core it was built with."""

import argparse

from kvctl import __version__
from kvctl.cli.settings import Settings
from kvctl.exits import Exit
from kvctl.output import print_object


def configure(parser: argparse.ArgumentParser) -> None:
    """Takes no arguments of its own."""


def run(args: argparse.Namespace, settings: Settings) -> int:
    from runtime import _core

    versions = {"kvctl": __version__, "core": _core.__version__}
    print_object(versions, settings.output, [f"{name} {v}" for name, v in versions.items()])
    return Exit.OK

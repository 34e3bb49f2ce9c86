"""See and steer in the terminal. Without a terminal the sessions are printed once instead."""

import argparse

from kvctl import tui
from kvctl.cli.commands import sessions
from kvctl.cli.commands.serve import add_engines
from kvctl.cli.opening import opened
from kvctl.cli.settings import Settings
from kvctl.exits import Exit
from kvctl.output import narrate, print_table


def configure(parser: argparse.ArgumentParser) -> None:
    add_engines(parser, "collect from this engine too, by a server that is started when none runs")


def run(args: argparse.Namespace, settings: Settings) -> int:
    if args.engine and settings.file is None:
        from kvctl.launch import ensure_server

        ensure_server(settings.home(), args.engine).close()
    with opened(settings) as source:
        if tui.possible():
            tui.run(source, read_only=settings.read_only)
        else:
            narrate("kvctl: the screen needs a terminal; here are the sessions as they are now")
            print_table(source.ask("sessions"), settings.output, sessions.SHOWN)
    return Exit.OK

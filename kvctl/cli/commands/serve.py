"""Collect from engines, keep what they say, answer questions: in the foreground, or detached."""

import argparse

from kvctl.cli.opening import opened
from kvctl.cli.settings import Settings
from kvctl.errors import UsageError
from kvctl.exits import Exit
from kvctl.output import narrate


def configure(parser: argparse.ArgumentParser) -> None:
    add_engines(parser, "an engine to collect from, for example tcp://127.0.0.1:5557; repeatable")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--detach", action="store_true", help="run in the background")
    how.add_argument("--stop", action="store_true", help="end the context's server")


def add_engines(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--engine", action="append", default=[], metavar="ADDRESS", help=text)


def run(args: argparse.Namespace, settings: Settings) -> int:
    if settings.file is not None:
        raise UsageError("serve collects into its context; --file only reads a recording")
    home = settings.home()
    if args.stop:
        with opened(settings) as source:
            source.ask("shutdown")
        narrate(f"kvctl: the server of {home.home} is stopping")
    elif args.detach:
        from kvctl.launch import ensure_server

        source = ensure_server(home, args.engine)
        engines = source.ask("status")["engines"]
        source.close()
        narrate(f"kvctl: a server runs for {home.home}")
        if all(engine["state"] == "recorded" for engine in engines):
            narrate(
                "kvctl: it follows no engine yet; name one: kvctl serve --detach --engine ADDRESS"
            )
    else:
        from kvctl.server import main

        return main(["--home", str(home.home), *args.engine])
    return Exit.OK

"""Why a session, or one request, missed: what took the pages, when, and for whom.

Of a session it is the latest miss that new text alone does not explain; when there is none, the
latest request.
"""

import argparse

from kvctl.cli.opening import opened
from kvctl.cli.settings import Settings
from kvctl.errors import UsageError
from kvctl.exits import Exit
from kvctl.output import narrate, print_object


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", nargs="?")
    parser.add_argument("--request", metavar="ID", help="this request instead")
    parser.add_argument("--engine", metavar="NAME", help="needed when several fit")


def run(args: argparse.Namespace, settings: Settings) -> int:
    if (args.session is None) == (args.request is None):
        raise UsageError("name either a session or, with --request, a request")
    with opened(settings) as source:
        answer = source.ask("why", session=args.session, request=args.request, engine=args.engine)
    print_object(answer, settings.output, answer["sentences"])
    if not answer["certain"]:
        narrate("kvctl: some of this is not certain, the log does not show every link")
    return Exit.OK

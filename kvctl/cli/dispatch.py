"""From words to a verb, and from whatever happened to an exit code."""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
from collections.abc import Sequence

from kvctl.cli.commands import COMMANDS, Command
from kvctl.cli.settings import add_options, resolve
from kvctl.errors import KvctlError, ReadOnly, UsageError
from kvctl.exits import Exit
from kvctl.output import narrate
from kvctl.text import plain

EXITS = """exit codes:
  0 ok   1 findings   2 usage or configuration   3 unreachable   4 timeout
  5 could not be established   130 interrupted
environment: KVCTL_CONTEXT, KVCTL_FILE, KVCTL_OUTPUT, KVCTL_READ_ONLY, KVCTL_TIMEOUT"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; argv without the program's name. Raises nothing an operator can cause."""
    # A stream that the caller closed is None.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, open as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A name that the terminal's encoding cannot write must not end the listing.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(argv)
        sys.stdout.flush()
        return code
    except KvctlError as error:
        narrate("kvctl: " + "\n".join(plain(line) for line in str(error).splitlines() if line))
        return error.exit
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader (`head`) has had enough.
        _silence_stdout()
        return Exit.OK
    except OSError as error:
        # A full disk under stdout, most of all. An answer that did not get out is no finding.
        narrate(f"kvctl: {plain(error)}")
        _silence_stdout()
        return Exit.NOT_ESTABLISHED
    except SystemExit as leaving:
        # argparse: 0 after --help, 2 after a wrong argument.
        return leaving.code if isinstance(leaving.code, int) else Exit.USAGE


def _silence_stdout() -> None:
    """What is still buffered goes nowhere: the interpreter's own flush must not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(argv: Sequence[str] | None) -> int:
    first = argparse.ArgumentParser(
        prog="kvctl",
        description="See and steer the KV caches of a cluster that serves language models.",
        epilog=f"verbs:\n{_listing()}\n\n`kvctl VERB --help` says more.\n\n{EXITS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_options(first)
    first.add_argument("verb", nargs="?", metavar="VERB", help="what to do, see below")
    first.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    given = first.parse_args(argv)
    if given.verb is None:
        first.print_help(sys.stderr)
        return Exit.USAGE

    command = _find(given.verb)
    module = importlib.import_module(f"kvctl.cli.commands.{command.name}")
    parser = argparse.ArgumentParser(
        prog=f"kvctl {command.name}", description=module.__doc__, allow_abbrev=False
    )
    module.configure(parser)
    add_options(parser)
    args = parser.parse_args(given.rest, given)
    settings = resolve(args)
    if settings.read_only and command.acting:
        raise ReadOnly(f"{command.name} changes the cluster, and this is read-only")
    return module.run(args, settings)


def _find(verb: str) -> Command:
    for command in COMMANDS:
        if command.name == verb:
            return command
    near = difflib.get_close_matches(verb, [command.name for command in COMMANDS], n=1)
    hint = f"did you mean {near[0]}?" if near else "see kvctl --help"
    raise UsageError(f"no verb {verb!r}; {hint}")


def _listing() -> str:
    return "\n".join(f"  {command.name:9} {command.summary}" for command in COMMANDS)

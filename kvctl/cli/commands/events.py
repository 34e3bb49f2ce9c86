"""The log: its last rows, or those after a row, or what comes in from now on."""

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

from kvctl.cli.opening import opened
from kvctl.cli.settings import Settings
from kvctl.errors import UsageError
from kvctl.exits import Exit
from kvctl.output import print_csv, print_json, print_people, print_table
from kvctl.phrase import phrase
from kvctl.source import Source
from kvctl.table import Table, records
from kvctl.text import clock, plain

FOLLOW_PERIOD_S = 0.25
SHOWN = ("ts", "engine", "seq", "kind", "phase", "session", "request", "what")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", metavar="NAME")
    parser.add_argument("--kind", metavar="KIND", help="for example evict, match, hint, canary")
    parser.add_argument("--session", metavar="NAME")
    parser.add_argument("--request", metavar="ID")
    parser.add_argument("--since-seq", type=int, metavar="SEQ", help="rows after this one")
    parser.add_argument("--limit", type=int, metavar="N", help="default: 200")
    parser.add_argument(
        "--follow",
        action="store_true",
        help="go on with what comes in; with -o json one object a line",
    )


def run(args: argparse.Namespace, settings: Settings) -> int:
    wanted = {name: getattr(args, name) for name in ("engine", "kind", "session", "request")}
    with opened(settings) as source:
        if args.follow and not source.live:
            raise UsageError("--follow needs a server; a recording does not grow")
        before = source.ask("status")["engines"] if args.follow else []
        table = source.ask("events", after_seq=args.since_seq, limit=args.limit, **wanted)
        if args.follow:
            _follow(_growing(source, before, table, wanted), settings.output)
        else:
            _print(table, settings.output)
    return Exit.OK


def _print(table: Table, output: str) -> None:
    if output == "table":
        rows = [[*(row[c] for c in SHOWN[:-1]), phrase(row)] for row in records(table)]
        print_people(SHOWN, rows)
    else:
        print_table(table, output)


def _follow(tables: Iterator[Table], output: str) -> None:
    """Until interrupted, or until the server is gone."""
    for number, table in enumerate(tables):
        if output == "csv":
            print_csv(table["columns"], table["rows"], header=number == 0)
        else:
            for row in records(table):
                print_json(row) if output == "json" else print(_line(row))
        sys.stdout.flush()


def _growing(
    source: Source, before: list[dict[str, Any]], table: Table, wanted: dict[str, Any]
) -> Iterator[Table]:
    """`table`, then new rows as they come: each engine's in order, a new epoch from its start.

    before: the engines as they stood before `table` was asked for.
    """
    reached = {(engine["engine"], engine["epoch"]): engine["seq"] or 0 for engine in before}
    for row in records(table):
        reached[row["engine"], row["epoch"]] = row["seq"]
    yield table
    while True:
        time.sleep(FOLLOW_PERIOD_S)
        for engine in source.ask("status")["engines"]:
            name, epoch = engine["engine"], engine["epoch"]
            if name and wanted["engine"] in (None, name):
                after = reached.setdefault((name, epoch), 0)
                asked = {**wanted, "engine": name, "epoch": epoch, "after_seq": after}
                table = source.ask("events", **asked)
                for row in records(table):
                    reached[name, epoch] = row["seq"]
                yield table


def _line(row: dict[str, Any]) -> str:
    words = [plain(row[name] or "") for name in ("engine", "kind", "phase", "session")]
    return "{} {:>7} {:10} {:8} {:10} {:20} {}".format(
        clock(row["ts"]), row["seq"], *words, phrase(row)
    )

"""One reading statement over what was collected. SHOW TABLES; DESCRIBE events: what there is."""

import argparse

from kvctl.cli.opening import opened
from kvctl.cli.settings import Settings
from kvctl.exits import Exit
from kvctl.output import narrate, print_table


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY")
    parser.add_argument("--limit", type=int, metavar="N", help="rows at most; default: 1000")


def run(args: argparse.Namespace, settings: Settings) -> int:
    with opened(settings) as source:
        table = source.ask("sql", query=args.query, limit=args.limit, timeout_s=settings.timeout_s)
    print_table(table, settings.output)
    if table["truncated"]:
        narrate(f"kvctl: only the first {len(table['rows'])} rows; --limit shows more")
    return Exit.OK

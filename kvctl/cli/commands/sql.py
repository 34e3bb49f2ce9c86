"""One reading statement over what was collected, in DuckDB's SQL."""

import argparse

from kvctl.cli.opening import opened
from kvctl.cli.settings import Settings
from kvctl.exits import Exit
from kvctl.output import narrate, print_table

EXAMPLES = (
    ("which tables and views there are", "SHOW TABLES"),
    ("what a column means", "FROM dictionary WHERE table_name = 'requests'"),
    (
        "whose pages left which tier, and for whom",
        "SELECT tier, last_user, for_session, sum(pages) AS pages FROM evictions"
        " GROUP BY ALL ORDER BY pages DESC",
    ),
    (
        "the slowest first tokens",
        "SELECT request, session, tokens, hit_tokens, ttft_ns FROM requests"
        " ORDER BY ttft_ns DESC NULLS LAST LIMIT 10",
    ),
    (
        "the log around a row",
        "SELECT seq, kind, phase, session, reason, cause FROM events WHERE seq BETWEEN 90 AND 110"
        " ORDER BY seq",
    ),
)
"""(what it shows, the query)."""


def configure(parser: argparse.ArgumentParser) -> None:
    shown = "\n".join(f'  {what}:\n    kvctl sql "{query}"' for what, query in EXAMPLES)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"examples:\n{shown}"
    parser.add_argument("query", metavar="QUERY")
    parser.add_argument("--limit", type=int, metavar="N", help="rows at most; default: 1000")


def run(args: argparse.Namespace, settings: Settings) -> int:
    with opened(settings) as source:
        table = source.ask("sql", query=args.query, limit=args.limit, timeout_s=settings.timeout_s)
    print_table(table, settings.output)
    if table["truncated"]:
        narrate(f"kvctl: only the first {len(table['rows'])} rows; --limit shows more")
    return Exit.OK

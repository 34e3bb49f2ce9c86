"""Answers on stdout: a table for people, JSON and CSV for programs. Narration goes to stderr.

JSON is one object with "v": 1: a table as {"v": 1, "rows": [{column: value}...]}, anything else as
its own fields. The order of fields is fixed, text is ASCII with escapes, hashes are hex strings.
CSV has a header line and full values.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kvctl.table import Table, records
from kvctl.text import human, plain

JSON_VERSION = 1
FORMATS = ("table", "json", "csv")
# Wider than any row: what goes to a pipe or a file is never cut.
UNBOUNDED = 10_000


def narrate(text: str) -> None:
    print(text, file=sys.stderr)


def print_table(table: Table, output: str, shown: Sequence[str] | None = None) -> None:
    """`shown` picks columns for people; programs get all of them."""
    if output == "json":
        print_json({"rows": records(table)})
    elif output == "csv":
        print_csv(table["columns"], table["rows"])
    else:
        columns = table["columns"] if shown is None else shown
        at = [table["columns"].index(column) for column in columns]
        print_people(columns, [[row[i] for i in at] for row in table["rows"]])


def print_object(answer: Mapping[str, Any], output: str, lines: Iterable[str]) -> None:
    """What is not a table: `lines` are for people."""
    if output == "json":
        print_json(answer)
    elif output == "csv":
        print_csv(["name", "value"], answer.items())
    else:
        for line in lines:
            print(plain(line))


def print_json(answer: Mapping[str, Any]) -> None:
    print(json.dumps({"v": JSON_VERSION, **answer}, default=_encode))


def print_csv(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, header: bool = True
) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if header:
        writer.writerow(columns)
    writer.writerows([_flat(cell) for cell in row] for row in rows)


def print_people(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as Drawn
    from rich.text import Text

    now_ns = time.time_ns()
    drawn = Drawn(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, column in enumerate(columns):
        numeric = any(isinstance(row[index], int | float) for row in rows)
        drawn.add_column(Text(column), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        cells = [human(column, cell, now_ns) for column, cell in zip(columns, row, strict=True)]
        drawn.add_row(*(Text(cell) for cell in cells))
    width = None if sys.stdout.isatty() else UNBOUNDED
    Console(file=sys.stdout, width=width, highlight=False).print(drawn)


def _encode(value: Any) -> Any:
    """What JSON has no word for: bytes as hex, everything else as its text."""
    return value.hex() if isinstance(value, bytes) else str(value)


def _flat(cell: Any) -> Any:
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, bytes):
        return cell.hex()
    return json.dumps(cell, default=_encode) if isinstance(cell, dict | list) else cell

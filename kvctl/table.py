"""A table as verbs answer it, and its rows by name."""

from collections.abc import Mapping
from typing import Any

Table = Mapping[str, Any]
"""{"columns": [name…], "rows": [[value…]…]}, JSON-ready."""


def records(table: Table) -> list[dict[str, Any]]:
    """Each row by column name; columns of one name (SQL allows that) get _2, _3 ..."""
    names: list[str] = []
    for column in table["columns"]:
        name, count = column, 1
        while name in names:
            count += 1
            name = f"{column}_{count}"
        names.append(name)
    return [dict(zip(names, row, strict=True)) for row in table["rows"]]

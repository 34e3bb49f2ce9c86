"""The columns of the log, as one table: (name, Arrow type, meaning).

The words are the core's (`runtime._core`); nothing here repeats them. `python -m telemetry.schema`
prints the table as Markdown.
"""

from __future__ import annotations

import runtime._core as _core

Column = tuple[str, str, str]


def columns() -> list[Column]:
    return _core.SCHEMA


def kinds() -> list[str]:
    return _core.KINDS


def markdown() -> str:
    head = ["| column | type | meaning |", "|---|---|---|"]
    return "\n".join(head + [f"| {name} | {kind} | {text} |" for name, kind, text in columns()])


if __name__ == "__main__":
    print(markdown())

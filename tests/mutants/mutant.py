"""A mutant: one invariant of the core, broken on purpose by a small change to its source.

`NAME.txt` begins with a line `ITEM: what goes wrong`; ITEM is the number of the invariant in the
design's list of what must always hold (1 lifetime of pages, 2 splits, 3 failures, 4 receipts,
5 accounting, 6 holes, 7 recurrent state, 8 making room, 14 claims of bytes, 15 aborts). Then, for
each place:

    --- FILE IN runtime/core
    text that stands there exactly once, however its lines are broken
    +++
    text instead
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CORE = HERE.parents[1] / "runtime" / "core"
INVARIANTS = (1, 2, 3, 4, 5, 6, 7, 8, 14, 15)


@dataclass(frozen=True)
class Mutant:
    name: str
    invariant: int
    says: str
    changes: tuple[tuple[str, str, str], ...]
    """(file, text, text instead)"""

    @classmethod
    def read(cls, path: Path) -> Mutant:
        first, rest = path.read_text().split("\n", 1)
        invariant, says = first.split(": ", 1)
        places = re.findall(r"^--- (\S+)\n(.*?)\n\+\+\+\n(.*?)(?=^--- |\Z)", rest, re.M | re.S)
        changes = tuple((file, old.strip("\n"), new.strip("\n")) for file, old, new in places)
        return cls(path.stem, int(invariant), says, changes)

    def sources(self, core: Path = CORE) -> dict[str, str]:
        """The changed files. ValueError when the text is not there exactly once."""
        found: dict[str, str] = {}
        for file, old, new in self.changes:
            text = found.get(file) or (core / file).read_text()
            places = list(re.finditer(r"\s+".join(map(re.escape, old.split())), text))
            if len(places) != 1:
                raise ValueError(f"{self.name}: {file} has {len(places)} times: {old}")
            found[file] = text[: places[0].start()] + new + text[places[0].end() :]
        return found


def all_mutants() -> list[Mutant]:
    return [Mutant.read(path) for path in sorted(HERE.glob("*.txt"))]

"""Cores that have done everything that changes state, as golden files that every version reads.

`make golden` writes version 1 again. Once released, a version is never written again: a change
that breaks it needs a version 2 beside it.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from played import hybrid, observed, plain
from runtime._core import Core, Replica

FOLDER = Path(__file__).parents[4] / "golden"

PIECE_HEADER_BYTES = 40


@dataclass(frozen=True)
class Golden:
    name: str
    play: Callable[[], Core]

    @property
    def log(self) -> Path:
        return FOLDER / f"{self.name}_log_v1.arrow"

    @property
    def journal(self) -> Path:
        return FOLDER / f"{self.name}_journal_v1.bin"

    @property
    def state(self) -> Path:
        return FOLDER / f"{self.name}_state_v1.json"

    def write(self) -> None:
        core = self.play()
        message = core.log().drain(10**6)
        assert message
        self.log.write_bytes(message.payload)
        self.journal.write_bytes(journal_of(core))
        self.state.write_text(json.dumps(state_of(core), indent=1) + "\n")


GOLDENS = [
    Golden(module.__name__.rpartition(".")[2], module.play) for module in (plain, hybrid, observed)
]


def journal_of(core: Core) -> bytes:
    """What the only piece of a journal holds: version 1 was before pieces."""
    return core.journal()[PIECE_HEADER_BYTES:]


def state_of(source: Core | Replica) -> dict[str, object]:
    return {
        "seq": source.seq(),
        "state_hash": source.state_hash(),
        "sessions": [[s.name, s.parent, s.pages, s.leases] for s in source.sessions()],
        "pools": [
            [p.component, p.tier, p.capacity, p.used, p.fenced, p.leased] for p in source.pools()
        ],
    }

"""What is written about the log is true of the log."""

import re
import subprocess
import sys
from pathlib import Path

from helpers.talker import Churn, new_core

from runtime._core import KINDS, PHASES
from telemetry import schema
from telemetry.message import Message

ROOT = Path(__file__).parents[3]


def documented() -> dict[str, list[str]]:
    """Kind -> phases, of the table in ARCHITECTURE.md."""
    text = (ROOT / "ARCHITECTURE.md").read_text().split("## Kinds of rows")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([a-z, ]+) \| ([^|]+) \|", text, re.MULTILINE)
    phases = {kinds: re.findall(r"[a-z_]+", names) for kinds, names in rows}
    return {kind: names for kinds, names in phases.items() for kind in kinds.split(", ")}


def test_every_row_of_a_busy_engine_is_of_a_kind_and_phase_that_the_documentation_names():
    core, known, seen = new_core(), documented(), set()
    Churn(core).play(200)
    core.flush(1 << 60, "s0", "ops")
    log, number = core.log(), 0
    while batch := log.drain():
        rows = Message.decode(number, batch.payload).batch.select(["kind", "phase"]).to_pylist()
        seen |= {(row["kind"], row["phase"]) for row in rows}
        number += 1
    assert len(seen) > 40
    assert not [pair for pair in seen if pair[1] not in known.get(pair[0], ()) and pair[1]]
    assert not {kind for kind, _ in seen} - set(known)


def test_the_documentation_names_no_word_that_the_log_lacks():
    known = documented()
    del known["kind"]
    assert set(known) <= set(KINDS)
    assert {phase for phases in known.values() for phase in phases} <= set(PHASES)


def test_the_columns_are_printed_as_one_table():
    printed = subprocess.run(
        [sys.executable, "-m", "telemetry.schema"], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode()
    for name, kind, meaning in schema.columns():
        assert f"| {name} | {kind} | {meaning} |\n" in printed

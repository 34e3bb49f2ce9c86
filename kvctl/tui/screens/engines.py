"""Engines: how full each tier is, and whether what we know of the engine can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.content import Content

from kvctl.text import UNKNOWN, plain, span
from kvctl.tui.bars import bar
from kvctl.tui.screens.view import View
from kvctl.tui.snapshot import STATUS, Question, Snapshot
from kvctl.tui.widgets.grid import Column, Grid, Record

_STATES = {"live": "$success", "silent": "$warning", "waiting": "dim"}
_TRUST = {"exact": "$success", "after_gap": "$warning", "mismatch": "$error"}


class EnginesView(View):
    NAME = "engines"

    def make_grid(self) -> Grid:
        return Grid(COLUMNS, key=lambda r: (r["engine"], r["address"]), empty="no engine yet")

    def questions(self) -> Mapping[str, Question]:
        return {"pools": ("pools", {})}

    def show(self, snapshot: Snapshot) -> None:
        records = engine_records(snapshot)
        self.grid.show(self.matching(records, "engine", "address", "state"))
        self.on_grid_highlighted()

    def on_grid_highlighted(self) -> None:
        record = self.grid.current
        self.panel(describe(record) if record else Content(""))


def engine_records(snapshot: Snapshot) -> list[Record]:
    """The status's engines, each with its pools by tier under "pools"."""
    pools: dict[tuple[str, str], dict[str, Record]] = {}
    for pool in snapshot.records("pools"):
        pools.setdefault((pool["engine"], pool["epoch"]), {})[pool["tier"]] = pool
    engines = snapshot.answers[STATUS]["engines"]
    return [
        {**engine, "pools": pools.get((engine["engine"], engine["epoch"]), {})}
        for engine in engines
    ]


def _pool(tier: str) -> Any:
    def cell(record: Record, width: int) -> Content:
        pool = record["pools"].get(tier)
        if pool is None or not pool["capacity"]:
            return Content.styled(UNKNOWN, "dim")
        used = pool["used"] + pool["fenced"]
        percent = f" {used / pool['capacity']:4.0%}"
        return Content.assemble(bar([(tier, used)], pool["capacity"], width - 5), percent)

    return cell


def describe(engine: Record) -> Content:
    """The panel: the pools in numbers, then where the log stands."""
    lines = []
    for tier, pool in engine["pools"].items():
        if pool["capacity"]:
            lines.append(
                f"{tier:8}{pool['used']:>7} of {pool['capacity']} pages used, {pool['free']} free, "
                f"{pool['fenced']} being written, {pool['leased']} leased"
            )
    lines.append(
        f"log     row {engine['seq']}, {engine['rows']} kept, {engine['gaps']} gaps, "
        f"{engine['dropped']} dropped, state {plain(engine['state_hash'] or UNKNOWN)[:16]}"
    )
    lines.append(f"at      {plain(engine['address'])}, epoch {plain(engine['epoch'])}")
    if engine["problem"]:
        lines.append(f"problem {plain(engine['problem'])}")
    return Content("\n".join(lines))


COLUMNS = (
    Column("ENGINE", 10, lambda r, w: plain(r["engine"] or r["address"]), grow=True),
    Column("STATE", 8, lambda r, w: Content.styled(r["state"], _STATES.get(r["state"], ""))),
    Column("DEVICE", 15, _pool("device")),
    Column("HOST", 15, _pool("host")),
    Column("STORAGE", 15, _pool("storage")),
    Column("SEQ", 8, lambda r, w: str(r["seq"]), right=True),
    Column(
        "LAG",
        7,
        lambda r, w: UNKNOWN if r["lag_ms"] is None else span(r["lag_ms"] * 1e6),
        right=True,
        from_width=100,
    ),
    Column("EPOCH", 8, lambda r, w: plain(r["epoch"]), from_width=100),
    Column(
        "TRUST",
        9,
        lambda r, w: Content.styled(
            plain(r["trust"] or "").replace("_", " "), _TRUST.get(r["trust"], "")
        ),
        from_width=100,
    ),
)

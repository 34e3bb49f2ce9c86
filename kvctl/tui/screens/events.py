"""Events: the log's tail. `/` takes words, and `kind=`, `session=`, `request=`, `engine=`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.content import Content

from kvctl.phrase import phrase
from kvctl.text import clock, plain
from kvctl.tui.screens.view import Target, View
from kvctl.tui.snapshot import Question, Snapshot
from kvctl.tui.widgets.grid import Column, Grid, Record

TAIL_ROWS = 300
FIELDS = ("kind", "session", "request", "engine")
_STYLES = {
    ("canary", "violation"): "bold $error",
    ("gap", ""): "bold $error",
    ("evict", "lost"): "$error",
    ("evict", "gone"): "$error",
    ("evict", "kept"): "$warning",
    ("hint", ""): "$accent",
    ("lease", ""): "$accent",
    ("match", ""): "bold",
}


class EventsView(View):
    NAME = "events"

    def make_grid(self) -> Grid:
        return Grid(
            COLUMNS,
            key=lambda r: (r["engine"], r["epoch"], r["seq"]),
            empty="no event yet",
            tail=True,
        )

    def questions(self) -> Mapping[str, Question]:
        fields, _ = parse_filter(self.filter)
        return {"events": ("events", {"limit": TAIL_ROWS, **fields})}

    def show(self, snapshot: Snapshot) -> None:
        _, text = parse_filter(self.filter)
        # Rows that are being read stay; at the end of the list, new ones come in.
        if self.grid.following or text != self._shown_filter:
            self._shown_filter = text
            records = [{**r, "phrase": phrase(r)} for r in snapshot.records("events")]
            refused = snapshot.errors.get("events")
            self.grid.show(
                [r for r in records if _has(r, text)],
                empty=plain(refused) if refused else "no event yet",
            )
        self.draw_panel()

    _shown_filter = ""

    def filter_by(self, text: str) -> None:
        if parse_filter(text)[0] != parse_filter(self.filter)[0]:
            self.grid.show([], empty="asking …")
        super().filter_by(text)

    def target(self) -> Target | None:
        record = self.grid.current
        return (record["engine"], record["session"]) if record and record["session"] else None

    def on_grid_highlighted(self) -> None:
        self.draw_panel()

    def draw_panel(self) -> None:
        record = self.grid.current
        if record is None:
            self.panel(Content(""))
            return
        held = "" if self.grid.following else "   held here; G follows the end"
        head = Content.assemble((f"#{record['seq']}", "bold"), (held, "$warning"))
        filled = [f"{name}={plain(value)}" for name, value in record.items() if _says(name, value)]
        self.panel(Content("\n").join([head, Content("  ".join(filled))]))


def parse_filter(text: str) -> tuple[dict[str, str], str]:
    """The filter's `field=value` words, and the rest."""
    fields, rest = {}, []
    for word in text.split():
        name, equals, value = word.partition("=")
        if equals and value and name in FIELDS:
            fields[name] = value
        elif not (equals and name in FIELDS):
            rest.append(word)
    return fields, " ".join(rest).casefold()


def _has(record: Record, text: str) -> bool:
    where = (
        record["kind"],
        record["phase"],
        record["session"],
        record["request"],
        record["phrase"],
    )
    return text in " ".join(str(part or "") for part in where).casefold()


def _says(name: str, value: Any) -> bool:
    return name not in ("seq", "phrase") and value not in (None, "", 0, [])


def _style(record: Record) -> str:
    kind = record["kind"]
    return _STYLES.get((kind, record["phase"]), _STYLES.get((kind, ""), ""))


COLUMNS = (
    Column("TIME", 12, lambda r, w: Content.styled(clock(r["ts"]), "dim")),
    Column("ENGINE", 10, lambda r, w: plain(r["engine"]), from_width=130),
    Column("SEQ", 6, lambda r, w: Content.styled(str(r["seq"]), "dim"), right=True),
    Column("KIND", 8, lambda r, w: Content.styled(plain(r["kind"]), _style(r))),
    Column("PHASE", 8, lambda r, w: plain(r["phase"] or "")),
    Column("SESSION", 14, lambda r, w: plain(r["session"] or "")),
    Column("WHAT", 16, lambda r, w: r["phrase"], grow=True),
)

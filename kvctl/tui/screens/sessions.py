"""Sessions: where each one's pages are, how well it hits, and why the one at hand missed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.content import Content

from kvctl.text import UNKNOWN, leases, plain, rate, span, words
from kvctl.tui.bars import bar, legend, residency
from kvctl.tui.screens.view import Target, View
from kvctl.tui.snapshot import Answer, Question, Snapshot
from kvctl.tui.widgets.grid import Column, Grid, Record

LIMIT = 500
LOW_HIT_RATE = 0.5
"""Below it a session recomputes more than it reuses."""


class SessionsView(View):
    NAME = "sessions"
    # One line a sentence, so that the last, for whom it was, is in sight; `w` shows them whole.
    DEFAULT_CSS = "SessionsView > #panel { text-wrap: nowrap; text-overflow: ellipsis; }"

    def make_grid(self) -> Grid:
        return Grid(COLUMNS, key=lambda r: (r["engine"], r["session"]), empty="no session yet")

    def questions(self) -> Mapping[str, Question]:
        asked: dict[str, Question] = {"sessions": ("sessions", {"limit": LIMIT})}
        if (target := self.target()) is not None:
            asked["why"] = ("why", {"engine": target[0], "session": target[1]})
        return asked

    def show(self, snapshot: Snapshot) -> None:
        records = [{**r, "now_ns": snapshot.now_ns} for r in snapshot.records("sessions")]
        # By name, so that a row keeps its place while it is being looked at.
        records.sort(key=lambda r: (not r["open"], r["session"], r["engine"]))
        self.grid.show(self.matching(records, "session", "parent", "last_reason"))
        self.draw_panel()

    def target(self) -> Target | None:
        record = self.grid.current
        return (record["engine"], record["session"]) if record else None

    def on_grid_highlighted(self) -> None:
        self.draw_panel()

    def draw_panel(self) -> None:
        record = self.grid.current
        if record is None or self.snapshot is None:
            self.panel(legend())
            return
        head = Content.assemble((plain(record["session"]), "bold"), (" why   ", "dim"), legend())
        answer = self.snapshot.answers.get("why", {})
        if (answer.get("engine"), answer.get("session")) == self.target():
            self.panel(Content("\n").join([head, why_lines(answer)]))
        elif (error := self.snapshot.errors.get("why")) is not None and not answer:
            self.panel(Content("\n").join([head, Content(plain(error))]))
        else:
            self.panel(Content("\n").join([head, Content.styled("asking …", "dim")]))


def why_lines(answer: Answer) -> Content:
    """The sentences of a `why`, the answer first and plainest."""
    lines = [
        Content.styled(plain(sentence), "" if index == 0 else "dim")
        for index, sentence in enumerate(answer["sentences"])
    ]
    if not answer["certain"]:
        lines.append(Content.styled("Some of this is not known for certain.", "$warning"))
    return Content("\n").join(lines)


def hit_cell(record: Record, width: int) -> Content:
    hit = record["hit_rate"]
    if hit is None:
        return Content.styled(UNKNOWN, "dim")
    return Content.styled(rate(hit), "$warning" if hit < LOW_HIT_RATE else "$success")


def state_cell(record: Record, width: int) -> Content:
    if not record["open"]:
        return Content.styled("closed", "dim")
    if not record["last_use"]:
        return Content.styled("open", "dim")
    return Content(span(max(0, record["now_ns"] - record["last_use"])))


def _text(column: str) -> Any:
    return lambda record, width: plain(record[column] or "")


COLUMNS = (
    Column("SESSION", 14, _text("session"), grow=True),
    Column("PARENT", 14, _text("parent"), from_width=100),
    Column("ENGINE", 10, _text("engine"), from_width=130),
    Column("WHERE PAGES ARE", 17, lambda r, w: bar(residency(r), r["pages"], w), grow=True),
    Column("PAGES", 5, lambda r, w: str(r["pages"]), right=True),
    Column("HIT", 4, hit_cell, right=True),
    Column("LAST MISS", 13, lambda r, w: words(r["last_reason"] or "")),
    Column("PINNED", 12, lambda r, w: Content.styled(leases(r["leases"], r["now_ns"]), "$accent")),
    Column("IDLE", 6, state_cell, right=True),
)

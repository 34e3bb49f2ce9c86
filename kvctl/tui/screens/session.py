"""One session: its pages in numbers, its leases, why it missed last, and its requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.content import Content

from kvctl.text import UNKNOWN, clock, leases, plain, rate, span, words
from kvctl.tui.bars import bar, legend, residency
from kvctl.tui.screens.sessions import why_lines
from kvctl.tui.screens.view import Target, View
from kvctl.tui.snapshot import Question, Snapshot
from kvctl.tui.widgets.grid import Column, Grid, Record

BAR_CELLS = 40


class SessionView(View):
    NAME = "session"
    DEFAULT_CSS = "SessionView > #panel { height: 40%; min-height: 13; }"

    def __init__(self, commands: list[str], target: Target) -> None:
        super().__init__(commands)
        self._target = target

    def crumbs(self) -> str:
        return plain(self._target[1])

    def make_grid(self) -> Grid:
        return Grid(COLUMNS, key=lambda r: r["request"], empty="no request yet", tail=True)

    def questions(self) -> Mapping[str, Question]:
        engine, session = self._target
        args: Mapping[str, Any] = {"engine": engine, "session": session}
        return {
            "sessions": ("sessions", args),
            "why": ("why", args),
            "requests": ("requests", args),
        }

    def target(self) -> Target:
        return self._target

    def show(self, snapshot: Snapshot) -> None:
        self.grid.show(self.matching(snapshot.records("requests"), "request", "reason"))
        found = snapshot.records("sessions")
        lines = [describe(found[0], snapshot.now_ns) if found else Content("This session is gone.")]
        if "why" in snapshot.answers:
            lines.append(why_lines(snapshot.answers["why"]))
        self.panel(Content("\n\n").join(lines))


def describe(session: Record, now_ns: int) -> Content:
    """Four lines: who, where, how well, pinned."""
    parent = f", child of {plain(session['parent'])}" if session["parent"] else ""
    tokens, requests = session["tokens"], session["requests"]
    hit = UNKNOWN if session["hit_rate"] is None else rate(session["hit_rate"])
    where = ", ".join(f"{session[f'{t}_pages']} in {t}" for t in ("device", "host", "storage"))
    return Content("\n").join(
        [
            Content.assemble(
                (plain(session["session"]), "bold"),
                f" on {plain(session['engine'])}{parent}{'' if session['open'] else ', closed'}",
            ),
            Content("  ").join([bar(residency(session), session["pages"], BAR_CELLS), legend()]),
            Content(f"{session['pages']} pages, {session['shared_pages']} shared; copies: {where}"),
            Content.assemble(
                f"took {hit} of {tokens} tokens from the cache in {requests} requests; pinned: ",
                (leases(session["leases"], now_ns) or "no", "$accent"),
            ),
        ]
    )


def _count(column: str) -> Any:
    return lambda record, width: str(record[column] or "")


COLUMNS = (
    Column("ARRIVED", 12, lambda r, w: clock(r["arrival_ts"]) if r["arrival_ts"] else UNKNOWN),
    Column("REQUEST", 10, lambda r, w: plain(r["request"]), grow=True),
    Column("TOKENS", 6, _count("tokens"), right=True),
    Column("DEVICE", 6, _count("device_tokens"), right=True),
    Column("HOST", 6, _count("host_tokens"), right=True),
    Column("STORAGE", 7, _count("storage_tokens"), right=True),
    Column("SAVED", 6, _count("saved_tokens"), right=True),
    Column("MISSED", 13, lambda r, w: words(r["reason"] or "")),
    Column(
        "1ST TOKEN", 9, lambda r, w: span(r["ttft_ns"]) if r["ttft_ns"] else UNKNOWN, right=True
    ),
)

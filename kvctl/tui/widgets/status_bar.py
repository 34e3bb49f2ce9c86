"""The top line: what one is looking at, whether one may act on it, how far it can be trusted."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from textual.content import Content
from textual.widgets import Static

from kvctl.text import UNKNOWN, plain, span
from kvctl.tui.snapshot import Answer, Snapshot

LAG_LIMIT_MS = 1000
"""Above it the screen shows the past."""
_TRUST = ("exact", "after_gap", "mismatch")


class StatusBar(Static):
    DEFAULT_CSS = """
    StatusBar { height: 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def show(self, name: str, read_only: bool, snapshot: Snapshot | None) -> None:
        self.update(headline(name, read_only, snapshot))


def headline(name: str, read_only: bool, snapshot: Snapshot | None) -> Content:
    """One line for any state of the source, also before its first answer (None)."""
    label, style = _state(snapshot)
    parts: list[Content | str | tuple[str, str]] = [
        (" kvctl ", "bold $text-primary"),
        (f" {label} ", f"bold {style} reverse"),
        (f" {PurePath(plain(name)).name} ", "bold"),
        ("read-only " if read_only else "read-write ", "dim" if read_only else ""),
    ]
    status = snapshot.status if snapshot else None
    if snapshot is not None and snapshot.problem:
        parts.append((f" {plain(snapshot.problem)}", "$error"))
    elif status is not None:
        parts.extend(_health(status))
    return Content.assemble(*parts)


def _state(snapshot: Snapshot | None) -> tuple[str, str]:
    if snapshot is None:
        return "CONNECTING", "$warning"
    if snapshot.problem or snapshot.status is None:
        return "UNREACHABLE", "$error"
    if snapshot.status["mode"] == "file":
        return "FILE", "$accent"
    states = {engine["state"] for engine in snapshot.status["engines"]}
    if "live" in states:
        return "LIVE", "$success"
    return ("SILENT", "$warning") if "silent" in states else ("WAITING", "$warning")


def _health(status: Answer) -> list[Content]:
    lag = status["lag_ms"]
    trust = worst_trust(status["engines"])
    figures = [
        _figure(
            "lag",
            UNKNOWN if lag is None else span(lag * 1e6),
            lag is not None and lag > LAG_LIMIT_MS,
        ),
        _figure("drops", status["dropped"], status["dropped"]),
        _figure("gaps", status["gaps"], status["gaps"]),
        _figure("trust", trust.replace("_", " "), trust != "exact"),
    ]
    if status["violations"]:
        figures.append(_figure("violations", status["violations"], True))
    if status["problem"]:
        figures.append(Content.styled(plain(status["problem"]), "$error"))
    return [Content("  ").join([Content(""), *figures])]


def worst_trust(engines: list[dict[str, Any]]) -> str:
    """An engine that has said nothing yet is not distrusted."""
    said = (engine["trust"] for engine in engines if engine["trust"] in _TRUST)
    return max(said, key=_TRUST.index, default="exact")


def _figure(name: str, value: object, bad: object) -> Content:
    return Content.assemble((f"{name} ", "dim"), (str(value), "bold $error" if bad else ""))

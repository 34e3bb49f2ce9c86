"""The engine's events as a progress bar on stderr."""

from __future__ import annotations

from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kvctl.text import plain


class Bar:
    """`heard` may be called from any thread."""

    def __init__(self) -> None:
        self._bar = Progress(
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task("starting", total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def heard(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "hello":
                self._show("loading the model", 0, event["requests"])
            case "phase":
                self._show(plain(event["title"]))
            case "request":
                self._show(None, event["n"], event["of"])
            case "compared":
                self._show("the same prompts without a cache", event["n"], event["of"])
            case "result":
                self._show("done")

    def _show(self, words: str | None, done: int | None = None, of: int | None = None) -> None:
        self._bar.update(self._task, description=words, completed=done, total=of)

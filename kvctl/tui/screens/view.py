"""What all screens share: status bar, rows, a panel about the row under the cursor, the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static

from kvctl.tui.snapshot import Question, Snapshot
from kvctl.tui.widgets.grid import Grid, Record
from kvctl.tui.widgets.prompt import Prompt
from kvctl.tui.widgets.status_bar import StatusBar

Target = tuple[str, str]
"""(engine, session): what an action is about."""
PANEL_LINES_MIN = 6


class View(Screen[None]):
    """Subclasses say what to ask (`questions`) and show the answers, on the UI's thread."""

    NAME: ClassVar[str] = ""
    DEFAULT_CSS = f"""
    View {{ layout: vertical; }}
    View > #crumbs {{ height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }}
    View > #panel {{ height: 30%; min-height: {PANEL_LINES_MIN + 1}; padding: 0 1;
                     border-top: solid $panel; }}
    View > #notice {{ height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }}
    """

    def __init__(self, commands: list[str]) -> None:
        super().__init__()
        self.filter = ""
        self._remark = ""
        self.snapshot: Snapshot | None = None
        self.status_bar = StatusBar()
        self.grid = self.make_grid()
        self.prompt = Prompt(commands)
        self._crumbs = Static(id="crumbs")
        self._panel = Static(id="panel")
        self._notice = Static(id="notice")

    def compose(self) -> ComposeResult:
        yield self.status_bar
        yield self._crumbs
        yield self.grid
        yield self._panel
        yield self._notice
        yield self.prompt
        yield Footer(show_command_palette=False, compact=True)

    def make_grid(self) -> Grid:
        raise NotImplementedError

    def questions(self) -> Mapping[str, Question]:
        """What this screen needs to know now, by the name that `show` looks it up under."""
        raise NotImplementedError

    def show(self, snapshot: Snapshot) -> None:
        raise NotImplementedError

    def crumbs(self) -> str:
        """Where one is, for the second line."""
        return self.NAME

    def target(self) -> Target | None:
        """What an action would be about, if anything."""
        return None

    def on_mount(self) -> None:
        self.grid.focus()
        self.draw_crumbs()

    def receive(self, snapshot: Snapshot) -> None:
        """Take answers to this screen's questions. A dead source leaves the rows as they were."""
        if not snapshot.problem:
            self.snapshot = snapshot
            self.show(snapshot)

    def filter_by(self, text: str) -> None:
        self.filter = text
        self.draw_crumbs()
        if self.snapshot is not None:
            self.show(self.snapshot)

    def matching(self, records: list[Record], *columns: str) -> list[Record]:
        """Records with the filter's text in one of the columns, whatever the case."""
        needle = self.filter.casefold()
        return [r for r in records if any(needle in str(r[c]).casefold() for c in columns)]

    def draw_crumbs(self) -> None:
        parts: list[Content | str | tuple[str, str]] = []
        for number, name in enumerate(("engines", "sessions", "events"), start=1):
            parts.append((f"{number} {name}", "bold" if name == self.NAME else "dim"))
            parts.append("   ")
        if self.crumbs() != self.NAME:
            parts.append((f"> {self.crumbs()}", "bold"))
        if self.filter:
            parts.append((f"   /{self.filter}", "$warning"))
        if self._remark:
            parts.append((f"   {self._remark}", "dim"))
        self._crumbs.update(Content.assemble(*parts))

    def remark(self, text: str) -> None:
        if text != self._remark:
            self._remark = text
            self.draw_crumbs()

    def panel(self, content: Content) -> None:
        self._panel.update(content)

    def say(self, content: Content) -> None:
        """Show what became of something until the next one."""
        self._notice.update(content)

    def on_prompt_closed(self) -> None:
        self.grid.focus()

    def on_prompt_typed(self, event: Prompt.Typed) -> None:
        self.filter_by(event.text)

"""What opens above a screen: a question before something dangerous, and pages of text."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalGroup, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static


class Confirm(ModalScreen[bool]):
    """True only when `word` was typed: a stray key must not throw a session's state away."""

    DEFAULT_CSS = """
    Confirm { align: center middle; }
    Confirm > VerticalGroup { width: 64; max-width: 95%; padding: 1 2; background: $surface;
                              border: round $error; border-title-color: $error; }
    Confirm Input { margin-top: 1; }
    """
    BINDINGS = [Binding("escape", "dismiss(False)", "Cancel")]  # noqa: RUF012  (as Textual declares it)

    def __init__(self, title: str, question: Content, word: str) -> None:
        super().__init__()
        self._title = title
        self._question = question
        self._word = word

    def compose(self) -> ComposeResult:
        with VerticalGroup() as box:
            box.border_title = self._title
            yield Static(self._question)
            yield Input(placeholder="type the name and press enter, or esc", compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip() == self._word:
            self.dismiss(True)
        else:
            event.input.value = ""
            event.input.placeholder = "that is not the name; nothing was done"


class Page(ModalScreen[None]):
    """Text to read; esc, q or enter closes it."""

    DEFAULT_CSS = """
    Page { align: center middle; }
    Page > VerticalScroll { width: 90%; max-width: 100; height: auto; max-height: 95%; padding: 0 2;
                            background: $surface; border: round $primary; }
    """
    BINDINGS = [Binding("escape,q,enter", "dismiss", "Close")]  # noqa: RUF012  (as Textual declares it)

    def __init__(self, title: str, text: Content) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            box.border_title = self._title
            yield Static(self._text)

"""The line where a command (`:`) or a filter (`/`) is typed."""

from __future__ import annotations

from textual.binding import Binding
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import Input


class Prompt(Input):
    """Hidden until opened. `kind` is ":" or "/"."""

    DEFAULT_CSS = """
    Prompt { display: none; height: 1; border: none; padding: 0 1; background: $panel; }
    Prompt:focus { border: none; }
    Prompt.open { display: block; }
    """
    BINDINGS = [Binding("escape", "cancel", show=False)]  # noqa: RUF012  (as Textual declares it)

    class Typed(Message):
        """A filter changed while it is being typed."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Entered(Message):
        """A command was entered."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Closed(Message):
        """The line is gone; whoever shows rows wants the focus back."""

    def __init__(self, commands: list[str]) -> None:
        super().__init__(compact=True)
        self._commands = SuggestFromList(commands)
        self.kind = ":"

    def open(self, kind: str, value: str = "") -> None:
        self.kind = kind
        self.placeholder = (
            "command, or esc" if kind == ":" else "filter, enter keeps it, esc clears it"
        )
        self.suggester = self._commands if kind == ":" else None
        self.value = value
        self.add_class("open")
        self.focus()

    def close(self) -> None:
        self.remove_class("open")
        self.post_message(self.Closed())

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.kind == "/" and self.has_class("open"):
            self.post_message(self.Typed(self.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self.kind == ":":
            self.post_message(self.Entered(self.value.strip()))
        self.close()

    def action_cancel(self) -> None:
        if self.kind == "/":
            self.post_message(self.Typed(""))
        self.close()

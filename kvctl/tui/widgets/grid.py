"""A table of any length that draws only the lines in sight."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style

Record = dict[str, Any]
# A mark besides the background, which themes of the terminal's own colours do not have.
CURSOR = Content.styled("▌", "$accent")
NO_CURSOR = Content(" ")
ROOMY_WIDTH = 100
"""From here on columns stand two cells apart instead of one."""


@dataclass(frozen=True)
class Column:
    title: str
    width: int
    """Cells; the least, when `grow`."""
    cell: Callable[[Record, int], Content | str]
    """(record, cells it may fill)."""
    right: bool = False
    grow: bool = False
    """Shares the room that is left over."""
    from_width: int = 0
    """Shown only when the grid is at least this wide."""


class Grid(ScrollView, can_focus=True):
    """Rows are records with a key; the cursor stays on its key when rows come and go.

    With `tail` the cursor starts on the last row, and stays on the last row while it is there.
    """

    DEFAULT_CSS = """
    Grid { height: 1fr; background: $background; overflow-x: hidden; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home,g", "edge(0)", show=False),
        Binding("end,G", "edge(1)", show=False),
        Binding("enter", "select", "Open", show=False),
    ]

    class Highlighted(Message):
        """The cursor is on another record."""

    class Selected(Message):
        """Enter, or a second click, on the record under the cursor."""

        def __init__(self, record: Record) -> None:
            super().__init__()
            self.record = record

    def __init__(
        self,
        columns: Sequence[Column],
        key: Callable[[Record], Hashable],
        *,
        empty: str = "",
        tail: bool = False,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._columns = columns
        self._key = key
        self._empty = empty
        self._tail = tail
        self._records: Sequence[Record] = ()
        self._cursor = 0
        self._placed: list[tuple[Column, int]] = []

    @property
    def current(self) -> Record | None:
        return self._records[self._cursor] if self._records else None

    @property
    def records(self) -> Sequence[Record]:
        return self._records

    @property
    def following(self) -> bool:
        """The cursor is on the last row."""
        return self._cursor >= len(self._records) - 1

    def show(self, records: Sequence[Record], *, empty: str | None = None) -> None:
        """Replace the rows."""
        before = self.current
        follow = self._tail and self.following
        self._records = records
        if empty is not None:
            self._empty = empty
        if follow:
            self._cursor = len(records) - 1
        elif before is not None:
            self._cursor = self._find(self._key(before))
        self._cursor = max(0, min(self._cursor, len(records) - 1))
        self.virtual_size = Size(0, len(records) + 1)
        self._reveal()
        self.refresh()
        if self._moved_from(before):
            self.post_message(self.Highlighted())

    def _find(self, key: Hashable) -> int:
        for index, record in enumerate(self._records):
            if self._key(record) == key:
                return index
        return self._cursor

    def _moved_from(self, before: Record | None) -> bool:
        now = self.current
        if before is None or now is None:
            return before is not now
        return self._key(before) != self._key(now)

    def _go(self, index: int) -> None:
        index = max(0, min(index, len(self._records) - 1))
        if index != self._cursor:
            self._cursor = index
            self._reveal()
            self.refresh()
            self.post_message(self.Highlighted())

    def _reveal(self) -> None:
        """Scroll so that the cursor's row is below the header and above the end."""
        page = max(1, self.size.height - 1)
        top = min(max(self.scroll_offset.y, self._cursor - page + 1), self._cursor)
        if top != self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, force=True, immediate=True)

    def action_move(self, by: int) -> None:
        self._go(self._cursor + by)

    def action_page(self, by: int) -> None:
        self._go(self._cursor + by * max(1, self.size.height - 2))

    def action_edge(self, last: int) -> None:
        self._go((len(self._records) - 1) * last)

    def action_select(self) -> None:
        if (record := self.current) is not None:
            self.post_message(self.Selected(record))

    def on_click(self, event: Click) -> None:
        index = self.scroll_offset.y + event.y - 1
        if event.y < 1 or index >= len(self._records):
            return
        if event.chain > 1 and index == self._cursor:
            self.action_select()
        else:
            self._go(index)

    def on_resize(self, event: Resize) -> None:
        self._placed = []
        self._reveal()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        base = self.visual_style
        if y == 0:
            cells = [(Content(c.title), c, w) for c, w in self._columns_at(width)]
            return self._strip(_line(cells, _gap(width)), width, base, "bold dim")
        index = self.scroll_offset.y + y - 1
        if index >= len(self._records):
            note = f"  {self._empty}" if not self._records and y == 2 else ""
            return self._strip(Content(note), width, base, "dim")
        record = self._records[index]
        cells = [(_content(c.cell(record, w)), c, w) for c, w in self._columns_at(width)]
        if index != self._cursor:
            return self._strip(_line(cells, _gap(width)), width, base, "")
        marked = _line(cells, _gap(width), CURSOR)
        return self._strip(marked, width, base, "bold on $boost")

    def _columns_at(self, width: int) -> list[tuple[Column, int]]:
        if not self._placed:
            shown = [c for c in self._columns if width >= c.from_width]
            spare = width - 1 - sum(c.width + _gap(width) for c in shown)
            growing = sum(c.grow for c in shown) or 1
            self._placed = [
                (c, c.width + (max(0, spare) // growing if c.grow else 0)) for c in shown
            ]
        return self._placed

    def _strip(self, line: Content, width: int, base: Style, under: str) -> Strip:
        if under:
            base = base + self.app.stylesheet.parse_style(under)
        parts = line.render(base, "", parse_style=self.app.stylesheet.parse_style)
        segments = [Segment(text, style.rich_style) for text, style in parts]
        return Strip(segments).adjust_cell_length(width, base.rich_style)


def _content(cell: Content | str) -> Content:
    return cell if isinstance(cell, Content) else Content(cell)


def _gap(width: int) -> int:
    return 2 if width >= ROOMY_WIDTH else 1


def _line(
    cells: Sequence[tuple[Content, Column, int]], gap: int, mark: Content = NO_CURSOR
) -> Content:
    parts = [mark]
    for content, column, width in cells:
        content = content.truncate(width, ellipsis=True)
        room = width - content.cell_length
        parts.append(content.pad_left(room) if column.right else content.pad_right(room))
        parts.append(Content(" " * gap))
    return Content("").join(parts)

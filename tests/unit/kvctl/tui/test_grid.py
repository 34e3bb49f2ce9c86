"""The table that draws only what is in sight."""

import pytest
from textual.app import App, ComposeResult

from kvctl.tui.widgets.grid import Column, Grid

COLUMNS = (
    Column("NAME", 8, lambda r, w: r["name"], grow=True),
    Column("N", 6, lambda r, w: str(r["n"]), right=True),
    Column("WIDE", 6, lambda r, w: "wide", from_width=60),
)


class Table(App[None]):
    def __init__(self, tail: bool = False) -> None:
        super().__init__()
        self.table = Grid(COLUMNS, key=lambda r: r["n"], empty="nothing here", tail=tail)
        self.selected: list[int] = []

    def compose(self) -> ComposeResult:
        yield self.table

    def on_grid_selected(self, event: Grid.Selected) -> None:
        self.selected.append(event.record["n"])

    def lines(self) -> list[str]:
        return [self.table.render_line(y).text for y in range(self.table.size.height)]


def rows(*numbers):
    return [{"name": f"row{n}", "n": n} for n in numbers]


async def test_it_shows_the_rows_under_their_titles_and_marks_the_cursor():
    app = Table()
    async with app.run_test(size=(40, 6)) as pilot:
        app.table.show(rows(1, 2))
        await pilot.pause()
        header, first, second, *rest = app.lines()
        assert header.split() == ["NAME", "N"]
        assert first.startswith("▌row1")
        assert second.startswith(" row2")
        assert all(len(line) == 40 for line in app.lines())
        assert not "".join(rest).strip()


async def test_more_width_brings_more_columns():
    app = Table()
    async with app.run_test(size=(60, 6)) as pilot:
        app.table.show(rows(1))
        await pilot.pause()
        assert "WIDE" in app.lines()[0]


async def test_an_empty_table_says_so():
    app = Table()
    async with app.run_test(size=(40, 6)) as pilot:
        app.table.show([])
        await pilot.pause()
        assert any("nothing here" in line for line in app.lines())
        assert app.table.current is None
        await pilot.press("down", "enter", "G")
        assert app.selected == []


async def test_the_cursor_stays_on_its_row_when_others_come_and_go():
    app = Table()
    async with app.run_test(size=(40, 6)) as pilot:
        app.table.show(rows(1, 2, 3))
        await pilot.press("j")
        app.table.show(rows(0, 5, 1, 2))
        assert app.table.current["n"] == 2
        app.table.show(rows(0, 5))
        assert app.table.current["n"] == 5, "the nearest row when its own is gone"
        await pilot.press("enter")
        assert app.selected == [5]


async def test_the_last_row_is_visible_when_the_end_is_followed():
    app = Table(tail=True)
    async with app.run_test(size=(40, 6)) as pilot:
        for last in (3, 50, 51, 300):
            app.table.show(rows(*range(last)))
            await pilot.pause()
            assert app.table.following
            assert any(line.startswith(f"▌row{last - 1} ") for line in app.lines())


async def test_a_bounded_window_goes_on_moving_at_its_limit():
    app = Table(tail=True)
    async with app.run_test(size=(40, 6)) as pilot:
        for first in range(4):
            app.table.show(rows(*range(first, first + 3)))
            await pilot.pause()
            assert [line.split()[0].strip("▌") for line in app.lines()[1:4]] == [
                f"row{n}" for n in range(first, first + 3)
            ]


async def test_a_row_that_is_being_read_holds_still():
    app = Table(tail=True)
    async with app.run_test(size=(40, 6)) as pilot:
        app.table.show(rows(*range(20)))
        await pilot.press("up")
        app.table.show(rows(*range(30)))
        assert app.table.current["n"] == 18
        assert not app.table.following


async def test_keys_and_clicks_move_the_cursor():
    app = Table()
    async with app.run_test(size=(40, 6)) as pilot:
        app.table.show(rows(*range(100)))
        for key, at in [("end", 99), ("k", 98), ("pageup", 94), ("home", 0), ("pagedown", 4)]:
            await pilot.press(key)
            assert app.table.current["n"] == at
        await pilot.click(Grid, offset=(3, 2))
        assert app.table.current["n"] == app.table.scroll_offset.y + 1
        await pilot.click(Grid, offset=(3, 2), times=2)
        assert app.selected == [app.table.current["n"]]


@pytest.mark.parametrize("name", ["[", "[/]", "[red]x", "日本語日本語日本語", "e\u0301"])
async def test_names_are_shown_as_they_are(name):
    app = Table()
    async with app.run_test(size=(40, 6)) as pilot:
        app.table.show([{"name": name, "n": 1}])
        await pilot.pause()
        assert name in app.lines()[1]
        assert app.table.render_line(1).cell_length == 40


async def test_a_million_rows_draw_only_what_is_in_sight():
    drawn = []

    def cell(record, width):
        drawn.append(record["n"])
        return str(record["n"])

    app = Table()
    app.table._columns = (Column("N", 8, cell),)
    async with app.run_test(size=(40, 6)) as pilot:
        app.table.show([{"n": n} for n in range(1_000_000)])
        await pilot.press("end")
        await pilot.pause()
        assert max(drawn) == 999_999
        assert len(set(drawn)) < 20

import pytest

from kvctl.tui.bars import bar, residency


def session(pages, device=0, host=0, storage=0):
    return {
        "pages": pages,
        "fastest_device": device,
        "fastest_host": host,
        "fastest_storage": storage,
    }


def test_each_page_counts_once_where_its_fastest_copy_is_or_as_missing():
    assert residency(session(40, 10, 20, 3)) == [
        ("device", 10),
        ("host", 20),
        ("storage", 3),
        ("missing", 7),
    ]


def test_a_bar_is_to_scale_and_full():
    assert bar(residency(session(4, device=1, host=1)), 4, 8).plain == "▇▇▅▅····"


def test_what_is_there_at_all_can_be_seen():
    parts = [("device", 1), ("host", 1), ("storage", 998), ("missing", 1)]
    drawn = bar(parts, 1001, 10).plain
    assert [drawn.count(glyph) for glyph in "▇▅▃·"] == [1, 1, 7, 1]


@pytest.mark.parametrize("width", [4, 5, 17, 20, 33])
@pytest.mark.parametrize("total", [1, 3, 7, 60, 1000])
def test_a_bar_fills_its_width_exactly(width, total):
    for device in range(0, total + 1, max(1, total // 7)):
        parts = [("device", device), ("missing", total - device)]
        assert bar(parts, total, width).cell_length == width


def test_nothing_to_draw_is_blank():
    assert bar(residency(session(0)), 0, 5).plain == "     "

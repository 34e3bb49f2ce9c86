import pytest

from kvctl.tui.bars import bar, residency


def counts(**pages):
    names = ("pages", "device_pages", "host_pages", "storage_pages")
    return dict.fromkeys(names, 0) | pages


@pytest.mark.parametrize(
    ("session", "shares"),
    [
        (counts(), [0, 0, 0, 0]),
        (counts(pages=40, device_pages=10, host_pages=20, storage_pages=30), [10, 10, 10, 10]),
        (counts(pages=40, device_pages=40, host_pages=40, storage_pages=40), [40, 0, 0, 0]),
        (counts(pages=40, device_pages=10, storage_pages=5), [10, 0, 0, 30]),
        (counts(pages=40, host_pages=60), [0, 40, 0, 0]),
    ],
)
def test_each_page_counts_once_in_its_fastest_tier(session, shares):
    parts = residency(session)
    assert [amount for _, amount in parts] == shares
    assert sum(shares) == session["pages"]


def test_a_bar_is_to_scale_and_full():
    assert bar(residency(counts(pages=4, device_pages=1, host_pages=2)), 4, 8).plain == "▇▇▅▅····"


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
    assert bar(residency(counts()), 0, 5).plain == "     "

import pytest
from helpers.recorded import ENGINE, RecordedSource

from kvctl.errors import TimedOut, Unreachable
from kvctl.tui.snapshot import Snapshot, take
from kvctl.tui.widgets.status_bar import headline


def snapshot(engines=None, **status):
    answer = RecordedSource().ask("status") | status
    if engines is not None:
        answer["engines"] = [ENGINE | changes for changes in engines]
    return Snapshot(0, {"status": answer}, {})


def test_before_the_first_answer():
    assert "CONNECTING" in headline("prod", True, None).plain


@pytest.mark.parametrize(
    ("states", "label"),
    [
        (["live", "silent"], "LIVE"),
        (["silent", "waiting"], "SILENT"),
        (["waiting"], "WAITING"),
        ([], "WAITING"),
    ],
)
def test_the_label_says_whether_any_engine_speaks(states, label):
    line = headline("prod", False, snapshot([{"state": state} for state in states]))
    assert f" {label} " in line.plain


def test_a_file_is_called_one_by_its_name():
    line = headline("/var/lib/kvctl/kvctl.duckdb", True, snapshot(mode="file", lag_ms=None)).plain
    assert " FILE  kvctl.duckdb read-only" in line
    assert "lag -" in line


def test_what_hurts_trust_is_always_in_sight():
    engines = [{"trust": "exact"}, {"trust": "after_gap"}, {"trust": None, "state": "waiting"}]
    line = headline("p", False, snapshot(engines, gaps=2, dropped=7, violations=1)).plain
    assert "drops 7  gaps 2  trust after gap  violations 1" in line


@pytest.mark.parametrize("error", [Unreachable("nobody at ipc://x"), TimedOut("no answer")])
def test_a_dead_server_is_a_state(error):
    line = headline("p", False, Snapshot(0, {}, {"status": error})).plain
    assert "UNREACHABLE" in line
    assert str(error) in line


def test_a_dead_server_is_asked_once_per_poll():
    source = RecordedSource()
    source.dead = True
    found = take(source, {"sessions": ("sessions", {}), "pools": ("pools", {})})
    assert [*found.errors] == ["status"]
    assert found.problem

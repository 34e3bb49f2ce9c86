"""What screens are tested with has the shape of what they get."""

from pathlib import Path

import pytest
from helpers.recorded import EVENT, RecordedSource

from kvctl.source import FileSource

GOLDEN = Path(__file__).parents[3] / "golden" / "log_v1.seg"


@pytest.fixture(scope="module")
def real():
    source = FileSource(GOLDEN)
    yield source
    source.close()


@pytest.mark.parametrize("verb", ["sessions", "pools", "requests"])
def test_recorded_tables_have_the_columns_of_real_ones(real, verb):
    args = {"session": "s1"} if verb == "requests" else {}
    recorded = RecordedSource().ask(verb, **args)
    assert recorded["columns"] == real.ask(verb, **args)["columns"]
    assert {len(row) for row in recorded["rows"]} == {len(recorded["columns"])}


def test_recorded_events_have_real_columns(real):
    assert set(EVENT) <= set(real.ask("events")["columns"])


def test_a_recorded_status_has_the_fields_of_a_real_one(real):
    recorded, status = RecordedSource().ask("status"), real.ask("status")
    assert recorded.keys() == status.keys()
    assert recorded["engines"][0].keys() == status["engines"][0].keys()


def test_a_recorded_why_has_the_fields_of_a_real_one(real):
    recorded = RecordedSource().ask("why", engine="golden", session="s1")
    assert recorded.keys() == real.ask("why", engine="golden", session="s1").keys()

import json
from pathlib import Path

import pytest

from kvctl.source import FileSource

GOLDEN = Path(__file__).parents[3] / "golden"


@pytest.mark.parametrize("name", ["log_v1", "hybrid_v1"])
def test_a_recording_of_version_1_is_still_read_and_still_folds(name):
    told = json.loads((GOLDEN / f"{name}.json").read_text())
    source = FileSource(GOLDEN / f"{name}.seg")
    (engine,) = source.ask("status")["engines"]
    source.close()
    assert (engine["messages"], engine["rows"]) == (told["messages"], told["rows"])
    assert (engine["state_hash"], engine["gapless"]) == (told["state_hash"], True)

import json
from pathlib import Path

from kvctl.source import FileSource

GOLDEN = Path(__file__).parents[3] / "golden"


def test_a_recording_of_version_1_is_still_read_and_still_folds():
    told = json.loads((GOLDEN / "log_v1.json").read_text())
    source = FileSource(GOLDEN / "log_v1.seg")
    (engine,) = source.ask("status")["engines"]
    source.close()
    assert (engine["messages"], engine["rows"]) == (told["messages"], told["rows"])
    assert (engine["state_hash"], engine["gapless"]) == (told["state_hash"], True)

"""Recordings that are whole, damaged, or none at all."""

from pathlib import Path

import pytest

from kvctl.collector.segment import MAGIC
from kvctl.errors import StoreError
from kvctl.source import FileSource

WHOLE = (Path(__file__).parents[3] / "golden" / "log_v1.seg").read_bytes()


def test_what_of_a_recording_cannot_be_read_is_said(tmp_path):
    path = tmp_path / "part.seg"
    path.write_bytes(WHOLE + b"torn")
    source = FileSource(path)
    status = source.ask("status")
    source.close()
    assert status["messages"] > 0
    assert status["problem"] == f"part.seg: 4 damaged bytes at {len(WHOLE)} skipped"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "it is empty"),
        (MAGIC, "it is empty"),
        (b"junk", "4 damaged bytes at 0"),
        (WHOLE[:500], "490 damaged bytes at 10"),
    ],
)
def test_a_file_without_any_record_is_no_recording(tmp_path, content, says):
    path = tmp_path / "1.seg"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=f"no record that can be read .*{says}"):
        FileSource(path)


def test_a_segment_that_cannot_be_opened_is_an_error_of_the_recording(tmp_path):
    (tmp_path / "1.seg").mkdir()
    with pytest.raises(StoreError, match="cannot be read"):
        FileSource(tmp_path)

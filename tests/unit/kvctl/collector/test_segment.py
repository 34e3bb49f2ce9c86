import contextlib
import resource

import pytest

from kvctl.collector.segment import MAGIC, Damage, Position, Record, SegmentLog, read
from kvctl.errors import SegmentError


def record(number: int, size: int = 100) -> Record:
    return Record({"kind": "message", "number": number}, bytes([number % 256]) * size)


def filled(folder, count=20, **settings):
    log = SegmentLog(folder, **settings)
    for number in range(count):
        log.append([record(number)])
    log.close()
    return sorted(folder.glob("*.seg"))


def numbers(log):
    return [record.header["number"] for _, record in log.replay()]


def test_what_was_appended_is_read_back_in_order(tmp_path):
    filled(tmp_path)
    log = SegmentLog(tmp_path)
    assert [found for _, found in log.replay()] == [record(number) for number in range(20)]
    assert log.problems == []


def test_positions_grow_over_files_and_restarts(tmp_path):
    first = SegmentLog(tmp_path, segment_bytes=500)
    positions = [first.append([record(number)])[0] for number in range(10)]
    first.close()
    second = SegmentLog(tmp_path, segment_bytes=500)
    positions += second.append([record(10), record(11)])
    second.close()
    assert positions == sorted(set(positions))
    assert len(list(tmp_path.glob("*.seg"))) > 2
    assert [position for position, _ in SegmentLog(tmp_path).replay()] == positions


def test_a_position_that_was_used_is_never_used_again(tmp_path):
    """Even when somebody removed the segments: tables remember where they end."""
    log = SegmentLog(tmp_path, after=7)
    assert log.append([record(0)]) == [Position(8, len(MAGIC))]


@pytest.mark.parametrize("cut", [1, 5, 13, 60, 120])
def test_a_torn_tail_is_cut_and_the_rest_kept(tmp_path, cut):
    (path,) = filled(tmp_path)
    path.write_bytes(path.read_bytes()[:-cut])
    log = SegmentLog(tmp_path)
    assert numbers(log) == list(range(19))
    assert "never acknowledged" in log.problems[0]
    again = SegmentLog(tmp_path)
    assert numbers(again) == list(range(19))
    assert again.problems == []


@pytest.mark.parametrize("at", [0, 3, 12, 200, 900, 1500])
def test_damage_costs_only_the_records_it_touches(tmp_path, at):
    (path,) = filled(tmp_path)
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)
    log = SegmentLog(tmp_path)
    found = numbers(log)
    assert len(found) >= 19
    assert found == sorted(found)
    assert log.problems


def test_a_file_that_is_no_segment_is_reported_not_fatal(tmp_path):
    filled(tmp_path)
    (tmp_path / "00000000.seg").write_bytes(b"something else entirely")
    log = SegmentLog(tmp_path)
    assert numbers(log) == list(range(20))
    assert "00000000.seg" in log.problems[0]


def test_junk_has_no_records_in_it(tmp_path):
    path = tmp_path / "1.seg"
    path.write_bytes(b"\xf5KVR" * 50)
    assert all(isinstance(found, Damage) for found in read(path))


@pytest.fixture
def small_disk():
    """Files may grow to 2000 bytes: what a full disk looks like to one process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_said_and_nothing_acknowledged_is_lost(tmp_path, small_disk):
    log = SegmentLog(tmp_path)
    kept = 0
    with contextlib.suppress(SegmentError):
        while kept < 100:
            log.append([record(kept)])
            kept += 1
    assert 0 < kept < 100
    with pytest.raises(SegmentError, match=r"cannot write .*nothing acknowledged is lost"):
        log.append([record(kept)])
    small_disk()
    log.append([record(kept)])
    log.close()
    again = SegmentLog(tmp_path)
    assert numbers(again) == list(range(kept + 1))
    assert again.problems == []

"""Collectors as real processes, following a core that plays turns; some are killed."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.talker import Talker

from kvctl.context import Context
from kvctl.errors import StoreError
from kvctl.source import FileSource, LiveSource

ROOT = Path(__file__).parents[3]
SAME = {
    "events": "FROM events ORDER BY ALL",
    "messages": "SELECT * EXCLUDE (received_ts) FROM messages ORDER BY ALL",
    "engines": "FROM engines ORDER BY ALL",
    "session_state": "FROM session_state ORDER BY ALL",
    "pool_state": "FROM pool_state ORDER BY ALL",
}
"""What two collectors of one run must agree on: everything but when it reached them."""


class Collecting:
    """A `python -m kvctl.server` of one context."""

    def __init__(self, home, address):
        self.home, self.address = home, address
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kvctl.server", "--home", str(self.home), self.address],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stderr.readline()
        assert line.startswith("serving"), line

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def engine(self):
        source = LiveSource(Context(self.home))
        try:
            return source.ask("status")["engines"][0]
        finally:
            source.close()

    def until(self, seq, timeout_s=60):
        deadline = time.monotonic() + timeout_s
        while (self.engine()["seq"] or 0) < seq:
            assert time.monotonic() < deadline, self.engine()
            time.sleep(0.05)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, said
        assert "Traceback" not in said


def rows(home, what):
    source = FileSource(home)
    try:
        return {
            name: source.ask("sql", query=query, limit=100_000)["rows"]
            for name, query in SAME.items()
            if name in what
        }
    finally:
        source.close()


@pytest.fixture
def talker():
    with Talker() as talker:
        yield talker


def test_a_collector_killed_and_restarted_ends_with_the_rows_of_an_undisturbed_one(
    tmp_path, talker
):
    calm, killed = (
        Collecting(tmp_path / "a", talker.address),
        Collecting(tmp_path / "b", talker.address),
    )
    for _ in range(3):
        talker.play(40)
        killed.kill()
        talker.play(40)
        killed.start()
    seq, state_hash = talker.play(40)
    for collecting in (calm, killed):
        collecting.until(seq)
        engine = collecting.engine()
        assert (engine["state_hash"], engine["gapless"]) == (state_hash, True)
        collecting.stop()
    assert rows(tmp_path / "a", SAME) == rows(tmp_path / "b", SAME)
    assert len(rows(tmp_path / "a", ["events"])["events"]) == seq


def test_an_outage_longer_than_the_ring_is_one_gap_row(tmp_path):
    with Talker(ring=5) as talker:
        collecting = Collecting(tmp_path, talker.address)
        before, _ = talker.play(5)
        collecting.until(before)
        collecting.kill()
        talker.play(60)
        collecting.start()
        seq, _ = talker.play(5)
        collecting.until(seq)
        source = LiveSource(Context(tmp_path))
        gaps = source.ask("gaps")["rows"]
        engine = source.ask("status")["engines"][0]
        source.close()
        collecting.stop()
    assert len(gaps) == 1
    _, _, first, last, count, _, detail = gaps[0]
    assert first == before + 1
    assert count == last - first + 1 == engine["lost_rows"]
    assert "no longer in the replay ring" in detail
    assert (engine["trust"], engine["gapless"]) == ("after_gap", False)
    kept = rows(tmp_path, ["events"])["events"]
    assert len(kept) == seq - count + 1


def test_the_tables_are_made_again_from_the_segments(tmp_path, talker):
    collecting = Collecting(tmp_path, talker.address)
    seq, _ = talker.play(30)
    collecting.until(seq)
    collecting.stop()
    before = rows(tmp_path, SAME)
    (tmp_path / "kvctl.duckdb").write_bytes(b"not a database" * 1000)
    collecting.start()
    source = LiveSource(Context(tmp_path))
    assert "set aside" in source.ask("status")["problem"]
    source.close()
    collecting.stop()
    assert rows(tmp_path, SAME) == before
    source = FileSource(tmp_path / "segments")
    assert source.ask("sql", query=SAME["events"], limit=100_000)["rows"] == before["events"]
    source.close()


def test_a_restarted_engine_is_followed_into_its_new_epoch(tmp_path):
    first = Talker("e1")
    port = first.address.split(",")[0].rsplit(":", 1)[1]
    first.kill()
    first = Talker("e1", port=port)
    collecting = Collecting(tmp_path, first.address)
    seq, _ = first.play(10)
    collecting.until(seq)
    first.kill()
    with Talker("e2", port=port) as second:
        second.play(3)
        deadline = time.monotonic() + 30
        while collecting.engine()["epoch"] != "e2":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        seq, state_hash = second.play(3)
        collecting.until(seq)
        assert collecting.engine()["state_hash"] == state_hash
        collecting.stop()
    engines = rows(tmp_path, ["engines"])["engines"]
    assert len(engines) == 2


def test_a_full_disk_stops_the_intake_says_so_and_loses_nothing(tmp_path, talker):
    collecting = Collecting(tmp_path, talker.address)
    seq, _ = talker.play(5)
    collecting.until(seq)
    (segment,) = (tmp_path / "segments").glob("*.seg")
    unlimited = resource.prlimit(collecting.process.pid, resource.RLIMIT_FSIZE)
    full = (segment.stat().st_size + 5000, unlimited[1])
    resource.prlimit(collecting.process.pid, resource.RLIMIT_FSIZE, full)
    seq, state_hash = talker.play(40)
    source = LiveSource(Context(tmp_path))
    deadline = time.monotonic() + 30
    while "cannot" not in source.ask("status")["problem"]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert source.ask("status")["lag_ms"] > 0
    with pytest.raises(StoreError, match=r"pin: engine 'eng' is gone.*; but .* not on record yet"):
        source.ask("pin", session="s1")
    resource.prlimit(collecting.process.pid, resource.RLIMIT_FSIZE, unlimited)
    collecting.until(seq)
    while (status := source.ask("status"))["lag_ms"]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert (status["engines"][0]["state_hash"], status["problem"]) == (state_hash, "")
    assert status["engines"][0]["gapless"]
    source.close()
    collecting.stop()

"""A journal in a file: what an engine was told, played again."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from toy import make, serve

from runtime.errors import ConfigError


def play(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runtime.journal", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_an_engines_journal_replays_to_its_state(tmp_path):
    path = tmp_path / "engine.journal"
    with make(device_pages=6, host_pages=8, journal=path) as cache:
        for turn in range(1, 6):
            serve(cache, "a", list(range(4 * turn)))
            serve(cache, "b", list(range(100, 100 + 3 * turn)))
        assert cache.drain(10)
        cache.close_session("b")
        cache.step()
        expected = f"{cache.core.state_hash()} after row {cache.core.seq()}\n"
    result = play(path)
    assert (result.stdout, result.returncode) == (expected, 0), result.stderr


@pytest.fixture
def pieces(tmp_path) -> list[bytes]:
    """The journal of an engine, as it was written: a piece for each step that brought something."""
    pieces = []
    with make(device_pages=6, host_pages=8, journal=tmp_path / "of.pieces") as cache:
        write = cache._journal._file.write
        cache._journal._file = SimpleNamespace(
            write=lambda piece: pieces.append(bytes(piece)) or write(piece), close=lambda: None
        )
        for turn in range(1, 4):
            serve(cache, "a", list(range(4 * turn)))
            assert cache.drain(10)
    assert len(pieces) > 3
    return pieces


def test_a_journal_that_lacks_a_piece_is_refused_and_says_which(tmp_path, pieces):
    path = tmp_path / "engine.journal"
    for gone in (0, 1, len(pieces) - 2):
        path.write_bytes(b"".join(pieces[:gone] + pieces[gone + 1 :]))
        result = play(path)
        assert (result.returncode, result.stdout) == (1, "")
        assert f"piece {gone + 1} of the journal is missing" in result.stderr


def test_a_piece_that_is_cut_is_left_out_at_the_end_and_refused_before(tmp_path, pieces):
    path = tmp_path / "engine.journal"
    last = len(pieces)
    path.write_bytes(b"".join(pieces[:-1]))
    before = play(path)
    assert (before.returncode, before.stderr) == (0, "")
    path.write_bytes(b"".join(pieces)[:-1])
    result = play(path)
    assert (result.returncode, result.stdout) == (0, before.stdout)
    assert f"piece {last} is cut, and left out ({len(pieces[-1]) - 1} bytes)" in result.stderr
    path.write_bytes(pieces[0] + pieces[1][:-1] + b"".join(pieces[2:]))
    result = play(path)
    assert (result.returncode, result.stdout) == (1, "")
    assert "piece 2 of the journal is cut" in result.stderr


def test_an_old_journal_is_never_written_over(tmp_path):
    path = tmp_path / "engine.journal"
    path.write_bytes(b"of another life")
    with pytest.raises(ConfigError, match=r"engine\.journal"):
        make(journal=path)
    assert path.read_bytes() == b"of another life"


def test_what_is_no_journal_is_refused(tmp_path):
    path = tmp_path / "novel.txt"
    path.write_text("It was a dark and stormy night")
    assert play(path).returncode == 1
    assert play(tmp_path / "nothing").returncode == 2


def test_a_disk_that_is_full_costs_the_journal_and_not_the_engine(tmp_path, monkeypatch):
    with make(journal=tmp_path / "engine.journal") as cache:
        full = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115
        monkeypatch.setattr(cache._journal, "_file", full)
        serve(cache, "a", list(range(8)))
        cache.step()
        assert "No space left" in cache.stats()["journal_fault"]
        assert serve(cache, "a", list(range(12))) == 8


def test_a_piece_that_is_written_in_parts_is_written_whole(tmp_path):
    path = tmp_path / "engine.journal"
    with make(journal=path) as cache:
        file = cache._journal._file
        cache._journal._file = SimpleNamespace(
            write=lambda piece: file.write(piece[:7]), close=file.close
        )
        serve(cache, "a", list(range(8)))
        cache.step()
        expected = f"{cache.core.state_hash()} after row {cache.core.seq()}\n"
    result = play(path)
    assert (result.stdout, result.stderr) == (expected, "")


def test_a_cache_that_cannot_open_leaves_no_journal_file_open(tmp_path):
    with pytest.raises(ConfigError):
        make(journal=tmp_path / "no" / "such" / "folder")

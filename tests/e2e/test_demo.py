"""`kvctl demo` as a person runs it: real processes, a real model, and nothing left behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN_S = 120


@pytest.fixture(scope="module")
def temporary(tmp_path_factory):
    """For temporary files."""
    return tmp_path_factory.mktemp("tmp")


@pytest.fixture(scope="module")
def start(tmp_path_factory, temporary):
    """Start the demo with a folder of its own for temporary files; nothing of ours stays in it."""
    models = tmp_path_factory.mktemp("models")
    started = []

    def start(*arguments, workload=ROOT / "examples" / "agents"):
        command = [sys.executable, "-m", "kvctl", "demo", "--model", "tiny"]
        process = subprocess.Popen(
            [*command, "--workload", str(workload), *arguments],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(temporary), "KVCTL_MODELS": str(models)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
    assert not list(temporary.glob("kvctl-*"))


@pytest.fixture(scope="module")
def told(start):
    """What one whole run told a program."""
    process = start("-o", "json")
    out, narration = process.communicate(timeout=RUN_S)
    assert process.returncode == 0, narration
    return json.loads(out)


def children(process):
    text = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(pid) for pid in text.split()]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_demo_proves_what_it_claims(told):
    assert told["ok"] is True
    assert told["result"]["compared"] == told["result"]["requests"] == 36
    assert told["result"]["different"] == []

    summary = told["summary"]
    assert summary["finished"] == summary["requests"] == 36
    assert summary["computed_tokens"] + summary["saved_tokens"] == summary["tokens"]
    assert all(summary["hit_tokens"][tier] > 0 for tier in ("device", "host", "storage"))
    assert summary["lost_pages"] > 0
    assert summary["canary"]["checks"] > 0
    assert summary["canary"]["violations"] == summary["gaps"] == 0
    columns, rows = summary["transfers"]["columns"], summary["transfers"]["rows"]
    moved = {row[columns.index("kind")]: row[columns.index("pages")] for row in rows}
    assert all(moved[kind] > 0 for kind in ("backup", "offload", "prefetch", "load"))

    engine = told["engine"]
    assert engine["gapless"] is True
    assert (engine["seq"], engine["state_hash"]) == (
        told["result"]["seq"],
        told["result"]["state_hash"],
    )


def test_the_story_is_a_miss_its_reason_a_pin_and_a_hit(told):
    story = told["story"]
    assert story["why"]["miss"]["reason"] == "evicted"
    assert story["why"]["for"]["session"] == "review-style"
    assert story["why"]["sentences"]
    assert story["pin"]["outcome"] == "accepted"
    assert story["miss"]["hit_tokens"] < 200
    assert story["hit"]["hit_tokens"] >= story["miss"]["prompt_tokens"] // 64 * 64


def test_people_get_a_page_on_stdout_and_progress_on_stderr(start):
    process = start()
    out, narration = process.communicate(timeout=RUN_S)
    assert process.returncode == 0, narration
    assert out.splitlines()[-1] == "ok"
    for words in ("it missed", "kvctl why", "kvctl pin", "it hit", "time saved", "0 violations"):
        assert words in out
    assert "36/36" in narration


@pytest.mark.parametrize(
    ("how", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 128 + signal.SIGTERM),
        (signal.SIGHUP, 128 + signal.SIGHUP),
    ],
)
def test_a_demo_that_is_interrupted_takes_its_children_with_it(start, how, code):
    process = start()
    deadline = time.monotonic() + RUN_S
    while len(pids := children(process)) < 2:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(how)
    process.communicate(timeout=RUN_S)
    assert process.returncode == code
    assert not [pid for pid in pids if alive(pid)]


def test_the_children_of_a_demo_that_is_killed_end_by_themselves(start, temporary):
    process = start()
    deadline = time.monotonic() + RUN_S
    while len(pids := children(process)) < 2:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.1)
    process.kill()
    process.communicate(timeout=RUN_S)
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    # Nobody was left to remove the server's context.
    for home in temporary.glob("kvctl-*"):
        assert (home / "segments").is_dir()
        shutil.rmtree(home)


def test_an_engine_that_cannot_start_is_explained(start, tmp_path):
    copy = Path(shutil.copytree(ROOT / "examples" / "agents", tmp_path / "agents"))
    (copy / "workload.toml").write_text("answer_tokens = 'many'")
    process = start(workload=copy)
    _, narration = process.communicate(timeout=RUN_S)
    assert process.returncode == 5
    assert "workload.toml: 'sessions' is missing" in narration
    assert "Traceback" not in narration


def test_a_folder_without_a_workload_is_a_wrong_argument(start, tmp_path):
    process = start(workload=tmp_path)
    _, narration = process.communicate(timeout=RUN_S)
    assert process.returncode == 2
    assert "no workload in" in narration

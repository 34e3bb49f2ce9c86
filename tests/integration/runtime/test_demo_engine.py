"""The demo's engine: when it speaks, what it listens to, and how it ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
END_S = 60


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Start the engine with a folder of its own for temporary files; nothing of ours stays
    in it."""
    temporary, models = tmp_path_factory.mktemp("tmp"), tmp_path_factory.mktemp("models")
    started = []

    def start(*arguments, folder=models):
        process = subprocess.Popen(
            [sys.executable, "-m", "runtime.demo", "--model", "tiny", *arguments],
            cwd=ROOT,
            env={**os.environ, "KVCTL_MODELS": str(folder), "TMPDIR": str(temporary)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with process:  # Closes what is open of its streams, and waits.
            process.stdin.close()
            if not process.stdout.closed:
                process.stdout.read()
    assert not list(temporary.glob("kvctl-*"))


def next_event(process):
    return json.loads(process.stdout.readline())


def test_it_can_be_reached_before_the_model_is_loaded(start):
    process = start("--workload", "examples/agents")
    hello = next_event(process)
    assert hello["event"] == "hello"
    assert hello["address"].count("tcp://127.0.0.1:") == 3
    assert next_event(process)["event"] == "loaded"
    assert next_event(process)["event"] == "phase"


@pytest.mark.parametrize(
    "end", [lambda p: p.stdin.close(), lambda p: p.send_signal(signal.SIGTERM)], ids=["eof", "term"]
)
def test_it_ends_in_order_when_its_starter_is_gone(start, end):
    process = start("--workload", "examples/agents")
    while next_event(process)["event"] != "request":
        pass
    end(process)
    process.stdout.read()
    assert process.wait(END_S) == 0
    assert process.stderr.read() == ""


def test_what_it_cannot_do_is_one_line(start, tmp_path):
    (tmp_path / "file").write_text("")
    process = start("--workload", "examples/agents", folder=tmp_path / "file")
    _, said = process.communicate(timeout=END_S)
    assert process.returncode == 2
    assert "set KVCTL_MODELS to another folder" in said
    assert said.count("\n") == 1

"""The README's commands are run as they stand there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import engine

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
LINES = [line.split("  #")[0].strip() for block in BLOCKS for line in block.splitlines()]
# What the running engine has in place of the README's names.
INSTEAD = {"tcp://127.0.0.1:5557": "ADDRESS", "billing-flaky": "alpha"}


def test_make_knows_every_target_that_the_readme_names():
    named = {line.split()[1] for line in LINES if line.startswith("make ")}
    named |= set(re.findall(r"`make ([a-z-]+)", (ROOT / "README.md").read_text()))
    assert {"demo", "test", "bench-spine"} <= named
    for target in named:
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, check=True)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with engine.Engine(tmp_path_factory.mktemp("engine")) as process:
        yield process


def test_every_kvctl_command_of_the_readme_works(running, tmp_path, monkeypatch):
    monkeypatch.setenv("KVCTL_HOME", str(tmp_path / "home"))
    commands = [shlex.split(line)[1:] for line in LINES if line.startswith("kvctl ")]
    assert len(commands) >= 7
    try:
        for command in commands:
            words = [INSTEAD.get(word, word) for word in command]
            words = [running.address if word == "ADDRESS" else word for word in words]
            run = kvctl(*words)
            assert run.returncode == 0, (command, run.stderr)
            assert run.stdout or command[0] == "serve", command
    finally:
        kvctl("serve", "--stop")


def kvctl(*words: str) -> "subprocess.CompletedProcess[str]":
    # Without a terminal `kvctl tui` prints its table once.
    command = [sys.executable, "-m", "kvctl", *words]
    return subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )

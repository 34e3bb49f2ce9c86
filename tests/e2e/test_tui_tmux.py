"""The screen for real: `kvctl tui` and `kvctl demo` in a terminal, keys pressed, effects seen."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.engine import Engine

from kvctl.cli import main
from kvctl.context import Context

ROOT = Path(__file__).parents[2]
WAIT_S = 180
TERM = os.environ.get("TERM", "screen")
KVCTL = f"env PYTHONPATH='{ROOT}' TERM='{TERM}' '{sys.executable}' -m kvctl"

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed, so there is no terminal to try"
)


@pytest.fixture
def terminal(tmp_path):
    """`terminal(keys)` types, `terminal()` reads; the program runs in a tmux server of its own."""
    socket = ["tmux", "-S", str(tmp_path / "tmux"), "-f", "/dev/null"]

    def tmux(*arguments):
        return subprocess.run(
            [*socket, *arguments], check=True, capture_output=True, text=True
        ).stdout

    class Terminal:
        def start(self, command):
            tmux("new-session", "-d", "-x", "100", "-y", "30", command)

        def type(self, *keys):
            tmux("send-keys", *keys)

        def see(self, *texts):
            deadline = time.monotonic() + WAIT_S
            while not all(text in (screen := tmux("capture-pane", "-p")) for text in texts):
                assert time.monotonic() < deadline, f"{texts} never appeared:\n{screen}"
                time.sleep(0.1)

        def ended(self):
            return subprocess.run([*socket, "has-session"], capture_output=True).returncode != 0

        def close(self):
            subprocess.run([*socket, "kill-server"], capture_output=True)

    terminal = Terminal()
    yield terminal
    terminal.close()


def test_tui_starts_its_server_and_a_pin_is_seen_to_happen(terminal, tmp_path):
    home = tmp_path / "home"
    with Engine(tmp_path / "store") as toy:
        options = f"--engine '{toy.address}' --context '{home}'"
        terminal.start(f"{KVCTL} tui {options}")
        try:
            terminal.see("LIVE", "read-write", "alpha/sub", "flood")
            terminal.type("G")
            terminal.see("▌flood")
            terminal.type("p")
            terminal.see("pin flood:", "host 9m")
            terminal.type("3")
            terminal.see("hint", "pin by")
            terminal.type("2", "x")
            terminal.see("Type the")
            terminal.type("flood", "Enter")
            terminal.see("flush flood:")
            terminal.type("q")
            deadline = time.monotonic() + WAIT_S
            while not terminal.ended():
                assert time.monotonic() < deadline
                time.sleep(0.1)
            assert Context(home).running(), "the server outlives the screen"
        finally:
            main(["serve", "--stop", "--context", str(home)])


def test_the_demo_says_when_its_workload_is_finished_and_q_gives_the_summary(terminal):
    demo = f"{KVCTL} demo --model tiny --workload '{ROOT}/examples/agents'"
    terminal.start(f"{demo}; echo status $?; cat")
    terminal.see("LIVE", "the workload is being played")
    terminal.see("workload finished", "cli-args")
    terminal.type("q")
    terminal.see("time saved", "status 0")


def test_a_terminal_that_is_closed_leaves_nothing_of_the_demo(terminal, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    demo = f"{KVCTL} demo --model tiny --workload '{ROOT}/examples/agents'"
    terminal.start(f"env TMPDIR='{temporary}' {demo}")
    terminal.see("LIVE", "the workload is being played")
    assert list(temporary.glob("kvctl-*"))
    terminal.close()
    deadline = time.monotonic() + WAIT_S
    while left := list(temporary.glob("kvctl-*")):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)

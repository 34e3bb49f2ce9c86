"""Exit codes and streams, without a server."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from kvctl.cli import main
from kvctl.cli.commands import COMMANDS
from kvctl.exits import Exit

ROOT = Path(__file__).parents[4]


@pytest.fixture(autouse=True)
def no_server(monkeypatch, tmp_path):
    monkeypatch.setenv("KVCTL_HOME", str(tmp_path))


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_verb_explains_itself(command, capsys):
    assert main([command, "--help"]) == Exit.OK
    out = capsys.readouterr().out
    assert f"usage: kvctl {command}" in out
    assert import_module(f"kvctl.cli.commands.{command}").__doc__.split()[0] in out


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        ([], Exit.USAGE, "usage: kvctl"),
        (["sesions"], Exit.USAGE, "did you mean sessions?"),
        (["sessions", "--wat"], Exit.USAGE, "--wat"),
        (["sessions", "-o", "yaml"], Exit.USAGE, "yaml"),
        (["sessions"], Exit.UNREACHABLE, "kvctl serve"),
        (["tui"], Exit.UNREACHABLE, "kvctl serve"),
        (["audit"], Exit.UNREACHABLE, "kvctl serve"),
        (["why"], Exit.USAGE, "either a session or"),
        (["why", "s", "--request", "r"], Exit.USAGE, "either a session or"),
        (["pin", "s", "--ttl", "soon"], Exit.USAGE, "'soon' is not a duration"),
        (["flush", "s"], Exit.USAGE, "--yes"),
        (["flush", "s", "--yes", "--read-only"], Exit.USAGE, "read-only"),
        (["demo", "-o", "csv"], Exit.USAGE, "choose -o table or json"),
        (["demo", "--workload", "/nowhere"], Exit.USAGE, "/nowhere"),
        (["serve", "--file", "x"], Exit.USAGE, "--file"),
        (["sessions", "--file", "/nowhere"], Exit.NOT_ESTABLISHED, "/nowhere"),
    ],
)
def test_what_goes_wrong_has_its_exit_code_and_leaves_stdout_empty(argv, code, says, capsys):
    assert main(argv) == code
    streams = capsys.readouterr()
    assert says in streams.err
    assert streams.out == ""


def test_read_only_knows_every_verb_that_acts():
    acting = {command.name for command in COMMANDS if command.acting}
    assert acting == {"pin", "unpin", "demote", "prefetch", "flush", "audit"}


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.acting])
def test_read_only_refuses_what_acts_before_it_asks_anybody(command, capsys):
    session = [] if command.name == "audit" else ["s"]
    assert main(["--read-only", command.name, *session]) == Exit.USAGE
    assert f"{command.name} changes the cluster" in capsys.readouterr().err


def test_doctor_without_a_server_checks_the_installation_and_says_unreachable(capsys):
    assert main(["doctor", "-o", "csv"]) == Exit.UNREACHABLE
    rows = capsys.readouterr().out.splitlines()
    for package in ("kvctl", "runtime", "canary", "telemetry"):
        assert any(row.startswith(f"{package},true,") for row in rows)
    assert any(row.startswith("server,false,") for row in rows)


def test_doctor_names_the_path_that_shadows_a_package(tmp_path):
    (tmp_path / "canary.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "kvctl", "doctor", "-o", "csv"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == Exit.FINDINGS
    assert f"canary,false,{tmp_path / 'canary.py'} is another package" in done.stdout


def test_a_reader_that_leaves_early_is_no_failure():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "kvctl", "version"],
        cwd=ROOT,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (Exit.OK, "")


@pytest.mark.parametrize("redirect", ["> /dev/full", ">&-", ">&- 2>&-"])
@pytest.mark.parametrize("output", ["table", "csv", "json"])
def test_an_answer_that_cannot_be_written_is_no_finding_and_no_traceback(redirect, output):
    done = subprocess.run(
        f"'{sys.executable}' -m kvctl doctor -o {output} {redirect}",
        shell=True,
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    if redirect == "> /dev/full":
        assert done.returncode == Exit.NOT_ESTABLISHED
        assert done.stderr == "kvctl: [Errno 28] No space left on device\n"
    else:
        assert (done.returncode, done.stderr) == (Exit.UNREACHABLE, "")


def test_an_interrupt_is_its_own_exit_code(monkeypatch):
    def interrupted(args, settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("kvctl.cli.commands.version"), "run", interrupted)
    assert main(["version"]) == Exit.INTERRUPTED

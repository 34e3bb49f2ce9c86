"""What an operator does, on a real engine and a real server: the command line, then the screen."""

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.engine import Engine

from kvctl.cli import main
from kvctl.context import Context
from kvctl.exits import Exit
from kvctl.source import FileSource, LiveSource
from kvctl.tui.app import KvctlApp

ROOT = Path(__file__).parents[3]
WAIT_S = 30


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The context of a server that has everything the engine said."""
    home = tmp_path_factory.mktemp("home")
    with Engine(tmp_path_factory.mktemp("store")) as toy:
        serve = ["serve", "--detach", "--engine", toy.address, "--context", str(home)]
        assert main(serve) == Exit.OK
        source = LiveSource(Context(home))
        wait(lambda: source.ask("summary")["finished"] == 6)
        wait(lambda: source.ask("status")["engines"][0]["state"] == "live")
        yield home
        source.close()
        assert main(["serve", "--stop", "--context", str(home)]) == Exit.OK
    wait(lambda: not Context(home).running())


@pytest.fixture
def run(home, capsys):
    """Run a verb; its exit code, stdout and stderr."""

    def run(*argv):
        code = main([*argv, "--context", str(home)])
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return run


def wait(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def answer(run, *argv):
    code, out, err = run(*argv, "-o", "json")
    assert code == Exit.OK, err
    found = json.loads(out)
    assert found.pop("v") == 1
    return found


def test_a_folder_with_packages_of_our_names_does_not_keep_the_server_from_starting(tmp_path):
    (tmp_path / "telemetry.py").write_text("raise SystemExit('not ours')")
    home = tmp_path / "home"
    kvctl = [sys.executable, "-P", "-m", "kvctl", "--context", str(home), "serve"]
    told = {
        "cwd": tmp_path,
        "env": {**os.environ, "PYTHONPATH": str(ROOT)},
        "capture_output": True,
        "text": True,
    }
    done = subprocess.run([*kvctl, "--detach"], **told)
    assert done.returncode == Exit.OK, done.stderr
    assert subprocess.run([*kvctl, "--stop"], **told).returncode == Exit.OK
    wait(lambda: not Context(home).running())
    assert not list(home.glob("*.sock"))


def test_engines_and_sessions_as_json(run):
    (toy,) = answer(run, "engines")["rows"]
    assert (toy["engine"], toy["state"], toy["trust"], toy["gaps"]) == ("toy", "live", "exact", 0)
    assert len(bytes.fromhex(toy["state_hash"])) == 16
    sessions = {row["session"]: row for row in answer(run, "sessions")["rows"]}
    assert set(sessions) == {"alpha", "alpha/sub", "flood"}
    assert sessions["alpha/sub"]["parent"] == "alpha"
    assert sessions["alpha"]["requests"] == 2
    assert sessions["alpha"]["device_pages"] > 0
    for row in sessions.values():
        assert row["fastest_device"] == row["device_pages"], "no tier is faster"
        assert row["fastest_host"] <= row["host_pages"]
        assert row["fastest_storage"] <= row["storage_pages"]
    sub = sessions["alpha/sub"]
    assert (sub["tokens"], sub["hit_tokens"], sub["saved_tokens"]) == (24, 16, 16)
    assert sub["hit_rate"] == pytest.approx(16 / 24)


def test_tables_are_for_people_and_csv_for_programs(run):
    _, table, _ = run("sessions")
    _, csv, _ = run("sessions", "-o", "csv")
    assert "alpha/sub" in table
    assert "shared_pages" not in table
    assert "shared_pages" in csv.splitlines()[0]
    assert len(csv.splitlines()) == 4


def test_why_says_in_words_and_in_fields_what_took_the_pages(run):
    code, out, _ = run("why", "alpha")
    assert code == Exit.OK
    assert "alpha" in out
    assert "evicted" in out
    found = answer(run, "why", "--request", "a2")
    assert found["miss"]["reason"] == "evicted"
    assert found["for"]["session"] == "flood"
    assert out.splitlines() == found["sentences"]


@pytest.mark.parametrize(
    "argv",
    [
        *([verb, "nobody"] for verb in ("pin", "unpin", "demote", "prefetch", "why")),
        *([verb, "alpha", "--engine", "nobody"] for verb in ("pin", "unpin", "demote", "prefetch")),
        *([verb, "--engine", "nobody"] for verb in ("sessions", "events", "audit")),
        *(["events", f"--{name}", "nobody"] for name in ("session", "request", "kind")),
        ["flush", "nobody", "--yes"],
        ["flush", "alpha", "--yes", "--engine", "nobody"],
        ["why", "alpha", "--engine", "nobody"],
        ["why", "--request", "nobody"],
    ],
)
def test_a_name_that_nothing_bears_is_a_wrong_argument(run, argv):
    code, out, err = run(*argv)
    assert (code, out) == (Exit.USAGE, "")
    assert "nobody" in err


def test_events_narrow_and_go_on_after_a_row(run):
    matches = answer(run, "events", "--kind", "match")["rows"]
    assert {row["kind"] for row in matches} == {"match"}
    after = answer(run, "events", "--since-seq", str(matches[0]["seq"]), "--limit", "3")["rows"]
    assert [row["seq"] for row in after] == [matches[0]["seq"] + n for n in (1, 2, 3)]


def test_a_pin_is_answered_and_shows_and_unpin_ends_it(run):
    pinned = answer(run, "pin", "flood", "--tier", "host", "--ttl", "5m")
    assert pinned["outcome"] in ("accepted", "clipped", "deferred")

    def leases():
        rows = answer(run, "sessions")["rows"]
        return [
            lease["lease"] for row in rows if row["session"] == "flood" for lease in row["leases"]
        ]

    wait(lambda: leases() == [pinned["lease"]])
    assert run("unpin", "flood")[0] == Exit.OK
    wait(lambda: leases() == [])
    code, _, err = run("unpin", "flood")
    assert (code, "holds no lease" in err) == (Exit.USAGE, True)


def test_what_the_engine_rejects_is_a_finding(run):
    wait(lambda: "rejected" in run("prefetch", "alpha")[1])
    assert run("prefetch", "alpha")[0] == Exit.FINDINGS


def test_sql_answers_and_explains_its_errors(run):
    found = answer(run, "sql", "SELECT count(*) AS n FROM events WHERE kind = 'match'")
    assert found["rows"][0]["n"] >= 6
    code, out, err = run("sql", "SELEC 1")
    assert (code, out) == (Exit.USAGE, "")
    assert 'syntax error at or near "SELEC"' in err
    assert run("sql", "DROP TABLE events")[0] == Exit.USAGE
    _, out, err = run("sql", "SELECT * FROM range(5)", "--limit", "2", "-o", "csv")
    assert out == "range\n0\n1\n"
    assert "only the first 2 rows" in err


def test_following_shows_what_happens_from_now_on(run, home):
    narrow = ["--kind", "hint", "--limit", "1", "-o", "json"]
    follower = subprocess.Popen(
        [sys.executable, "-m", "kvctl", "events", "--follow", *narrow, "--context", str(home)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        first = json.loads(follower.stdout.readline())
        assert first["kind"] == "hint"
        run("demote", "flood")
        seen = json.loads(follower.stdout.readline())
        assert seen["seq"] > first["seq"]
        assert seen["detail"].startswith("demote by ")
    finally:
        follower.kill()
        follower.wait()
        follower.stdout.close()


def test_doctor_finds_a_proven_log(run):
    code, out, _ = run("doctor", "-o", "csv")
    assert "toy state_hash,true," in out
    assert "toy gaps,true," in out
    assert code in (Exit.OK, Exit.FINDINGS)


def test_without_a_terminal_the_screen_is_one_table(run):
    code, out, err = run("tui")
    assert code == Exit.OK
    assert "needs a terminal" in err
    assert "alpha/sub" in out
    assert "\x1b" not in out


def test_a_screen_with_nowhere_to_draw_is_one_table_too(home):
    """Textual draws on stderr: with that redirected, a terminal on the other two is not enough."""
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "kvctl", "tui", "--context", str(home)],
            cwd=ROOT,
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.PIPE,
            timeout=WAIT_S,
            text=True,
        )
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == Exit.OK
    assert "needs a terminal" in done.stderr


def test_an_audit_has_evidence_and_then_finds_what_was_damaged(run):
    code, out, err = run("audit", "-o", "json")
    clean = json.loads(out)
    assert code == Exit.OK
    assert clean["violations"] == 0
    assert clean["checks"] > 0
    assert "sweep" in {hop["hop"] for hop in clean["hops"]}
    code, out, err = run("audit", "--inject", "host", "-o", "json")
    assert code == Exit.FINDINGS
    found = json.loads(out)
    assert (found["violations"], found["injected"]) == (1, 1)
    assert len(found["found"]) == 1
    assert "found by sweep" in err


async def test_the_screen_acts_on_the_engine_and_shows_the_effect(home):
    source = LiveSource(Context(home))
    app = KvctlApp(source)

    def row():
        records = app.view.grid.records
        return next((r for r in records if r["session"] == "flood"), None)

    async def until(condition):
        for _ in range(200):
            if condition():
                return
            await pilot.pause(0.05)
        pytest.fail("never came true")

    try:
        async with app.run_test(size=(120, 40)) as pilot:
            await until(row)
            assert row()["leases"] == []
            await pilot.press("slash", *"flood", "enter")
            await pilot.press("p")
            await until(lambda: row()["leases"])
            await pilot.press("3")
            await until(lambda: "hint" in {r["kind"] for r in app.view.grid.records})
            await pilot.press("2", "u")
            await until(lambda: row()["leases"] == [])
    finally:
        source.close()


async def test_every_screen_shows_a_record_as_it_shows_the_server(home, tmp_path):
    """A recording is the segments; no screen knows which source it has."""
    live = LiveSource(Context(home))
    record = FileSource(home / "segments")
    seen = []
    for source in (live, record):
        app = KvctlApp(source)
        async with app.run_test(size=(120, 40)) as pilot:
            shown = {}
            for key, column in (("1", "engine"), ("2", "session"), ("3", "seq")):
                await pilot.press(key)
                for _ in range(200):
                    await pilot.pause(0.05)
                    if app.view.grid.records and column in app.view.grid.records[0]:
                        break
                shown[column] = {r[column] for r in app.view.grid.records}
            seen.append(shown)
        source.close()
    assert seen[0] == seen[1]
    assert seen[0]["session"] == {"alpha", "alpha/sub", "flood"}

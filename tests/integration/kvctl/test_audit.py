"""Damage done on purpose through an engine's control endpoint, found by the audit."""

import json
import time

import pytest
from helpers.engine import Engine

from kvctl.cli import main
from kvctl.context import Context
from kvctl.exits import Exit
from kvctl.launch import ensure_server

WAIT_S = 30


@pytest.fixture
def engine(tmp_path):
    with Engine(tmp_path / "store") as engine:
        yield engine


@pytest.fixture
def source(engine, tmp_path):
    source = ensure_server(Context(tmp_path / "home"), [engine.address])
    deadline = time.monotonic() + WAIT_S
    while source.ask("summary")["finished"] < 6:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield source
    source.ask("shutdown")
    source.close()


def test_an_audit_names_hop_page_and_session_and_answers_stay_right(
    engine, source, tmp_path, capsys
):
    def audit():
        code = main(["audit", "-o", "json", "--context", str(tmp_path / "home")])
        streams = capsys.readouterr()
        return code, json.loads(streams.out), streams.err

    code, clean, _ = audit()
    assert (code, clean["violations"], clean["verdicts"][0]["exit_code"]) == (Exit.OK, 0, 0)
    for number, tier in enumerate(("device", "host", "storage"), start=1):
        flipped = source.ask("inject", session="alpha", hop=tier)
        code, told, said = audit()
        assert (code, told["violations"], told["injected"]) == (Exit.FINDINGS, number, number)
        found = told["found"][0]
        assert (found["hop"], found["session"]) == ("sweep", "alpha")
        where = json.loads(found["detail"])
        assert (where["tier"], where["page"]) == (tier, flipped["page"])
        assert where["position"] == flipped["position"]
        copy = f"page {where['page']} of {tier}, position {flipped['position']} of its path"
        assert f"found by sweep: {copy}: " in said
        assert "session 'alpha'" in said
        engine.serve("alpha", 0, 20)  # It proves what it is given.
    (log,) = source.ask("status")["engines"]
    assert log["gapless"]

"""The server's API: what it answers, refuses and survives."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import zmq
from helpers.talker import Churn, new_core

from kvctl.context import Context
from kvctl.errors import NotEstablished, TimedOut, Unreachable, UsageError, from_code
from kvctl.launch import ensure_server
from kvctl.server import Server
from kvctl.source import FileSource, LiveSource
from kvctl.table import records
from telemetry.publisher import Publisher

ANY = "tcp://127.0.0.1:*"


class Control(threading.Thread):
    """An engine's control endpoint that answers what it is told to."""

    def __init__(self, answer):
        super().__init__()
        self.context = zmq.Context()
        self.router = self.context.socket(zmq.ROUTER)
        self.router.bind(ANY)
        self.endpoint = self.router.getsockopt_string(zmq.LAST_ENDPOINT)
        self.answer, self.heard, self.done = answer, [], threading.Event()
        self.start()

    def run(self):
        while not self.done.is_set():
            if self.router.poll(50):
                identity, body = self.router.recv_multipart()
                self.heard.append(json.loads(body))
                answer = {"v": 1, "id": self.heard[-1]["id"]} | self.answer
                self.router.send_multipart([identity, json.dumps(answer).encode()])
        self.context.destroy(linger=0)

    def close(self):
        self.done.set()
        self.join()


@pytest.fixture
def engine():
    """A core that has played some turns, published; `control` is nobody's port."""
    core = new_core()
    Churn(core).play(20)
    with Publisher(core.log(), ANY, ANY, heartbeat_s=0.2) as publisher:
        yield publisher


@pytest.fixture
def control():
    control = Control({"ok": True, "result": {"outcome": "accepted", "reason": "", "lease": 7}})
    yield control
    control.close()


@pytest.fixture
def served(tmp_path, engine, control):
    context = Context(tmp_path / "home")
    address = f"{engine.endpoint},replay={engine.replay_endpoint},control={control.endpoint}"
    server, ready = Server(context, [address]), threading.Event()
    thread = threading.Thread(target=server.run, args=(lambda _: ready.set(),))
    thread.start()
    assert ready.wait(10)
    source = LiveSource(context)
    deadline = time.monotonic() + 20
    while source.ask("status")["rows"] < engine.rows or not engine.rows:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield source
    server.stop()
    thread.join()
    source.close()


def test_a_live_server_and_its_closed_file_give_the_same_answers(tmp_path, served):
    questions = {
        verb: {} for verb in ("sessions", "pools", "requests", "summary", "canary", "gaps")
    }
    questions |= {"why": {"session": "s0"}, "events": {"limit": 50}}
    live = {verb: served.ask(verb, **args) for verb, args in questions.items()}
    served.ask("shutdown")
    deadline = time.monotonic() + 20
    while Context(tmp_path / "home").running():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    file = FileSource(tmp_path / "home")
    assert {verb: file.ask(verb, **args) for verb, args in questions.items()} == live
    file.close()


def test_an_idle_engine_is_not_late(served, engine):
    heard = served.ask("status")["engines"][0]["last_ts"]
    time.sleep(1.5)  # Longer than what counts as late.
    (idle,) = served.ask("status")["engines"]
    assert (idle["state"], idle["last_ts"], idle["lag_ms"]) == ("live", heard, 0)


def test_an_action_reaches_the_engine_with_its_epoch_and_is_on_record(served, control):
    answer = served.ask("pin", session="s1", operator="me@here")
    assert (answer["outcome"], answer["lease"], answer["engine"]) == ("accepted", 7, "eng")
    (command,) = control.heard
    assert (command["verb"], command["session"], command["tier"]) == ("pin", "s1", "host")
    assert (command["owner"], command["epoch"], command["ttl_s"]) == ("me@here", "e1", 600)
    (action,) = records(served.ask("actions"))
    assert (action["id"], action["operator"]) == (answer["action"], "me@here")
    assert (action["ok"], action["outcome"], action["verb"]) == (True, "accepted", "pin")


def test_an_engines_refusal_comes_through_and_is_on_record(served, control):
    control.answer = {"ok": False, "error": {"code": "unknown_session", "message": "no 'x'"}}
    with pytest.raises(UsageError, match="no 'x'") as refused:
        served.ask("flush", session="x")
    assert refused.value.code == "unknown_session"
    (action,) = records(served.ask("actions"))
    assert (action["ok"], action["outcome"], action["detail"]) == (
        False,
        "unknown_session",
        "no 'x'",
    )


def test_an_engine_that_is_gone_is_unreachable_and_that_is_on_record(served, control):
    control.close()
    with pytest.raises(Unreachable, match="nobody listens"):
        served.ask("demote", session="s1")
    assert [action["outcome"] for action in records(served.ask("actions"))] == ["unreachable"]


@pytest.mark.parametrize(
    ("verb", "args"),
    [
        ("pin", {"session": "s1", "nonsense": 1}),
        ("pin", {"session": ["s1"]}),
        ("pin", {"session": "s1", "engine": "nobody"}),
        ("attach", {"address": "tcp://10.0.0.1:5"}),
        ("attach", {}),
        ("nonsense", {}),
    ],
)
def test_bad_commands_are_usage_errors_and_reach_no_engine(served, control, verb, args):
    with pytest.raises(UsageError):
        served.ask(verb, **args)
    assert control.heard == []


def test_slow_sql_holds_up_nobody(served):
    endless = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range = 7"

    def slow():
        with pytest.raises(TimedOut):
            served.ask("sql", query=endless, timeout_s=1)

    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(slow) for _ in range(3)]
        asked = 0
        while not all(one.done() for one in waiting):
            served.ask("status")
            asked += 1
        for one in waiting:
            one.result()
    assert asked >= 3


@pytest.mark.parametrize(
    "junk", [b"", b"\x80\x04N.", b"[]", b'{"id": 1}', b'{"id": 1, "verb": 2}', b"{" * 5000, b"\xff"]
)
def test_junk_gets_an_error_and_the_server_lives(served, junk):
    """security-03"""
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.connect(served.endpoint)
        dealer.send(junk)
        assert dealer.poll(5000)
        reply = json.loads(dealer.recv())
        assert (reply["ok"], reply["error"]["code"]) == (False, "bad_argument")
    assert served.ask("status")["rows"]


def test_many_threads_may_ask_at_once(served):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: served.ask("sessions"), range(40)))
    assert all(answer == answers[0] for answer in answers)


def test_an_engine_that_never_speaks_is_listed_as_waiting(served):
    """control-plane-08"""
    served.ask("attach", address="tcp://127.0.0.1:9")
    waiting = [engine for engine in served.ask("status")["engines"] if not engine["engine"]]
    assert [(engine["state"], engine["address"].split(",")[0]) for engine in waiting] == [
        ("waiting", "tcp://127.0.0.1:9")
    ]


def test_two_engines_of_one_name_do_not_hide_each_other_in_silence(served):
    core = new_core("e2")
    Churn(core).play(2)
    with Publisher(core.log(), ANY, ANY, heartbeat_s=0.2) as twin:
        replay, control = twin.replay_endpoint, "tcp://127.0.0.1:9"
        served.ask("attach", address=f"{twin.endpoint},replay={replay},control={control}")
        deadline = time.monotonic() + 20
        # Until the twin's first rows are stored, it is the twin that is hidden.
        status = served.ask("status")
        while not status["problem"] or status["engines"][0]["epoch"] != "e2":
            assert time.monotonic() < deadline, status
            time.sleep(0.02)
            status = served.ask("status")
    problem, (shown, hidden) = status["problem"], status["engines"]
    assert (shown["epoch"], hidden["epoch"]) == ("e2", "e1")
    assert (hidden["state"], hidden["problem"]) == ("live", problem)
    assert f"two engines are named 'eng': the one at {hidden['address']}" in problem


def test_a_server_leaves_no_thread_and_no_card(tmp_path):
    before = threading.active_count()
    context = Context(tmp_path)
    server = Server(context, ["tcp://127.0.0.1:9"])
    server.run(lambda _: server.stop())
    assert threading.active_count() == before
    assert not (tmp_path / "server.json").exists()
    assert not context.running()


def test_asking_nobody_is_unreachable():
    source = LiveSource("ipc:///nobody/here")
    with pytest.raises(Unreachable, match="nobody answers"):
        source.ask("status")
    source.close()
    with pytest.raises(Unreachable, match="closed"):
        source.ask("status")


def test_a_server_is_started_when_none_runs_and_found_when_one_does(tmp_path):
    first = ensure_server(Context(tmp_path), [])
    second = ensure_server(Context(tmp_path), ["tcp://127.0.0.1:9"])
    assert first.ask("status")["pid"] == second.ask("status")["pid"]
    assert len(second.ask("status")["engines"]) == 1
    first.ask("shutdown")
    first.close()
    second.close()


def test_a_server_that_cannot_start_says_why(tmp_path):
    with pytest.raises(NotEstablished, match="not on this machine"):
        ensure_server(Context(tmp_path), ["tcp://8.8.8.8:1"])


def test_an_error_code_makes_the_same_error_again():
    assert type(from_code("timeout", "m")) is TimedOut
    assert from_code("unknown_lease", "m").code == "unknown_lease"

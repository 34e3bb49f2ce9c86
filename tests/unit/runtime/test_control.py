"""The socket's side of control: what it refuses, and that nothing sent to it ends its thread."""

import json
import queue
import threading

import pytest
import zmq

from runtime.commands import Refused
from runtime.control import REQUEST_MAX_BYTES, WAITING_MAX, Command, ControlServer
from runtime.errors import ControlError


@pytest.fixture
def commands():
    return queue.SimpleQueue()


@pytest.fixture
def server(commands):
    server = ControlServer("tcp://127.0.0.1:*", commands.put)
    yield server
    server.close()


@pytest.fixture
def client(server):
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, 5000)
        socket.connect(server.endpoint)
        yield socket


def request(**fields):
    return json.dumps({"v": 1, "id": "1", **fields}).encode()


PIN = {
    "verb": "pin",
    "session": "s",
    "tier": "host",
    "ttl_s": 1,
    "owner": "o",
    "epoch": "e",
}


def answer(client, payload: bytes) -> dict:
    client.send(payload)
    return json.loads(client.recv())


def test_a_valid_command_is_delivered_and_its_answer_comes_back(server, client, commands):
    client.send(request(**PIN))
    command = commands.get(timeout=5)
    assert (command.verb, command.args["session"], command.args["ttl_s"]) == ("pin", "s", 1)
    server.reply(command, {"pages": 3})
    assert json.loads(client.recv()) == {"v": 1, "id": "1", "ok": True, "result": {"pages": 3}}


def test_a_refusal_comes_back_with_code_and_message(server, client, commands):
    client.send(request(**PIN))
    server.refuse(commands.get(timeout=5), Refused("unknown_session", "no session 's'"))
    assert json.loads(client.recv()) == {
        "v": 1,
        "id": "1",
        "ok": False,
        "error": {"code": "unknown_session", "message": "no session 's'"},
    }


def test_a_req_socket_is_answered_too(server, commands):
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, 5000)
        socket.connect(server.endpoint)
        socket.send(request(verb="ping"))
        server.reply(commands.get(timeout=5), {})
        assert json.loads(socket.recv())["ok"] is True


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"", "bad_request"),
        (b"\xff\xfe", "bad_request"),
        (b"[1]", "bad_request"),
        (b"{" * 1000, "bad_request"),
        (b"[" * 50_000, "bad_request"),
        (b"9" * 60_000, "bad_request"),
        (b" " * (REQUEST_MAX_BYTES + 1), "too_large"),
        (request(v=2, verb="ping"), "bad_version"),
        (request(id=7, verb="ping"), "bad_request"),
        (request(id="x" * 200, verb="ping"), "bad_request"),
        (request(verb="explode"), "unknown_verb"),
        (request(verb=["pin"]), "unknown_verb"),
        (request(), "unknown_verb"),
        (request(**{**PIN, "session": ""}), "bad_request"),
        (request(**{**PIN, "session": 5}), "bad_request"),
        (request(**{**PIN, "session": "\ud800"}), "bad_request"),
        (request(**{**PIN, "session": "x" * 300}), "bad_request"),
        (request(**{**PIN, "tier": "tape"}), "bad_request"),
        (request(**{**PIN, "tier": ["host"]}), "bad_request"),
        (request(**{**PIN, "ttl_s": 0}), "bad_request"),
        (request(**{**PIN, "ttl_s": -1}), "bad_request"),
        (request(**{**PIN, "ttl_s": True}), "bad_request"),
        (request(**{**PIN, "ttl_s": float("nan")}), "bad_request"),
        (request(**{**PIN, "ttl_s": float("inf")}), "bad_request"),
        (request(**{**PIN, "ttl_s": 10**400}), "bad_request"),
        (request(verb="unpin", lease=-1, epoch="e"), "bad_request"),
        (request(verb="unpin", lease=1 << 64, epoch="e"), "bad_request"),
        (request(verb="unpin", lease="1", epoch="e"), "bad_request"),
        (request(verb="flush", session="s", owner="o"), "bad_request"),
    ],
)
def test_bad_requests_are_answered_with_a_code_and_go_no_further(client, commands, payload, code):
    assert answer(client, payload)["error"]["code"] == code
    assert commands.empty()


def test_what_is_missing_or_wrong_is_named_with_its_value(client):
    message = answer(client, request(**{**PIN, "tier": "tape"}))["error"]["message"]
    assert "tier" in message
    assert "'tape'" in message
    assert "device, host, storage" in message
    missing = {k: v for k, v in PIN.items() if k != "ttl_s"}
    assert "'ttl_s'" in answer(client, request(**missing))["error"]["message"]


def test_junk_of_any_shape_leaves_the_endpoint_serving(server, client, commands):
    client.send_multipart([b"a", b"b", b"c", b"d"])
    client.recv_multipart()
    with zmq.Context() as context, context.socket(zmq.DEALER) as other:
        other.setsockopt(zmq.LINGER, 0)
        other.connect(server.endpoint)
        other.send(b"x" * (2 << 20))
        other.send(b"")
    client.send(request(verb="ping"))
    server.reply(commands.get(timeout=5), {})
    assert json.loads(client.recv())["ok"] is True


def test_an_engine_that_does_not_step_answers_busy_in_the_end(server, client, commands):
    for _ in range(WAITING_MAX):
        client.send(request(verb="ping"))
    assert answer(client, request(verb="ping", id="late"))["error"]["code"] == "busy"
    for _ in range(WAITING_MAX):
        server.reply(commands.get(timeout=5), {})
        client.recv()
    client.send(request(verb="ping"))
    assert isinstance(commands.get(timeout=5), Command)


@pytest.mark.parametrize(
    "endpoint", ["tcp://0.0.0.0:*", "tcp://*:5555", "tcp://192.0.2.1:5555", "nonsense"]
)
def test_only_loopback_is_served(endpoint, commands):
    with pytest.raises(ControlError):
        ControlServer(endpoint, commands.put)


def test_a_taken_port_is_said_with_the_endpoint(server, commands):
    with pytest.raises(ControlError, match=server.endpoint):
        ControlServer(server.endpoint, commands.put)


def test_close_ends_the_thread_and_frees_the_port(server, commands):
    endpoint = server.endpoint
    server.close()
    server.close()
    assert "kv-control" not in [thread.name for thread in threading.enumerate()]
    again = ControlServer(endpoint, commands.put)
    again.close()

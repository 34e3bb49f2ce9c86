"""An operator's commands reach a live engine through its endpoint, act in its step, and are in
its log."""

import json
import threading

import pytest
import zmq
from toy import make, serve

TOKENS = [*range(16)]


class Operator:
    """A client whose engine steps while it waits, as an engine's loop would."""

    def __init__(self, cache, socket) -> None:
        self.cache = cache
        self.socket = socket

    def ask(self, verb: str, **args) -> dict:
        acting = verb not in ("ping", "sessions", "pools", "check")
        request = {
            "v": 1,
            "id": verb,
            "verb": verb,
            **({"epoch": self.cache.epoch} if acting else {}),
        }
        self.socket.send_json({**request, **args})
        for _ in range(200):
            self.cache.step(0.05)
            if self.socket.poll(0):
                break
        answer = self.socket.recv_json(zmq.NOBLOCK)
        assert answer["id"] == verb
        return answer

    def result(self, verb: str, **args) -> dict:
        answer = self.ask(verb, **args)
        assert answer["ok"], answer
        return answer["result"]

    def code(self, verb: str, **args) -> str:
        return self.ask(verb, **args)["error"]["code"]


@pytest.fixture
def operator():
    options = {"device_pages": 8, "host_pages": 8, "control": "tcp://127.0.0.1:*"}
    with (
        make(**options) as cache,
        zmq.Context() as context,
        context.socket(zmq.DEALER) as socket,
    ):
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(cache.endpoints["control"])
        serve(cache, "a", TOKENS)
        cache.drain(10)
        yield Operator(cache, socket)
        cache.core.check()


def test_an_operator_sees_the_engine(operator):
    ping = operator.result("ping")
    assert (ping["engine"], ping["epoch"], ping["page_size"]) == ("toy", operator.cache.epoch, 4)
    [session] = operator.result("sessions")["sessions"]
    assert (session["session"], session["device_pages"], session["host_pages"]) == ("a", 4, 4)
    pools = {pool["tier"]: pool for pool in operator.result("pools")["pools"]}
    assert (pools["device"]["used"], pools["device"]["capacity"]) == (4, 8)
    assert operator.result("check")["state_hash"] == operator.cache.core.state_hash()


def test_a_pin_holds_what_would_be_evicted_until_it_is_undone(operator):
    pin = operator.result("pin", session="a", tier="device", ttl_s=60, owner="me")
    assert (pin["outcome"], pin["pages"]) == ("accepted", 4)
    for session in range(4):
        serve(operator.cache, f"s{session}", [*range(100 * session + 100, 100 * session + 116)])
        operator.cache.drain(10)
    assert operator.cache.core.session("a").device_pages == 4
    [lease] = operator.result("sessions")["sessions"][0]["leases"]
    assert (lease["lease"], lease["owner"], lease["tier"]) == (pin["lease"], "me", "device")
    assert operator.result("unpin", lease=pin["lease"]) == {"lease": pin["lease"]}
    assert operator.code("unpin", lease=pin["lease"]) == "unknown_lease"


def test_demote_prefetch_and_flush_act(operator):
    assert operator.result("demote", session="a", owner="me")["outcome"] == "accepted"
    operator.cache.drain(10)
    assert operator.cache.core.session("a").device_pages == 0
    assert operator.result("prefetch", session="a", owner="me")["outcome"] == "rejected"
    assert operator.result("flush", session="a", owner="me")["outcome"] == "accepted"
    assert operator.cache.core.session("a").host_pages == 0


def test_an_injected_fault_is_found_by_the_sweep(operator):
    assert operator.result("inject", hop="host", session="a")["position"] == 3
    tiers = operator.result("sweep")["tiers"]
    assert tiers["host"] == {"checked": 4, "damaged": 1}
    assert operator.code("inject", hop="storage", session="a") == "not_resident"


@pytest.mark.parametrize("verb", ["pin", "demote", "prefetch", "flush", "inject"])
def test_unknown_sessions_and_stale_epochs_are_refused_by_code(operator, verb):
    args = {"owner": "me", "tier": "host", "ttl_s": 1, "hop": "device"}
    before = operator.cache.core.state_hash()
    assert operator.code(verb, session="nobody", **args) == "unknown_session"
    assert operator.code(verb, session="a", epoch="yesterday", **args) == "stale_epoch"
    assert operator.cache.core.state_hash() == before


def test_stop_is_a_request_that_the_engine_sees(operator):
    assert not operator.cache.stop_requested
    operator.result("stop")
    assert operator.cache.stop_requested


def test_a_command_that_waits_when_the_engine_closes_is_answered():
    cache = make(control="tcp://127.0.0.1:*")
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(cache.endpoints["control"])
        socket.send_json({"v": 1, "id": "1", "verb": "ping"})
        while cache._inbox.empty():
            threading.Event().wait(0.005)
        cache.close()
        assert socket.poll(5000)
        assert json.loads(socket.recv())["error"]["code"] == "closing"


def test_the_published_log_is_whole_and_folds_to_the_engines_state():
    from runtime._core import Replica

    with zmq.Context() as context, context.socket(zmq.DEALER) as replay:
        replay.setsockopt(zmq.LINGER, 0)
        with make(host_pages=8, publish="tcp://127.0.0.1:*") as cache:
            replay.connect(cache.endpoints["replay"])
            for session in range(3):
                serve(cache, f"s{session}", [session * 100 + i for i in range(16)])
            assert cache.drain(10)
            replica = Replica()
            while replica.seq() < cache.core.seq():
                replay.send_multipart([b"", (0).to_bytes(8, "big")])
                while (frames := replay.recv_multipart())[1]:
                    replica.fold(frames[3])
            assert replica.state_hash() == cache.core.state_hash()
            assert cache.stats()["rows_dropped"] == 0

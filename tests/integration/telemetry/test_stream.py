"""Publisher and subscriber over real sockets."""

import threading
import time

import pytest
import zmq
from helpers.wire import ListLog, notes

from telemetry.address import EngineAddress
from telemetry.errors import BadAddress
from telemetry.message import Epoch, Gap, Message, Silence
from telemetry.publisher import NONE_YET, REPLAY_END, Publisher
from telemetry.subscriber import Subscriber

ANY = "tcp://127.0.0.1:*"


def publisher(log, **settings):
    return Publisher(log, ANY, ANY, **({"heartbeat_s": 0.1} | settings))


def follow(pub, **settings):
    address = f"{pub.endpoint},replay={pub.replay_endpoint},control=tcp://127.0.0.1:1"
    return Subscriber(EngineAddress.parse(address), **settings)


def until(subscriber, enough, timeout_s=10.0):
    items, deadline = [], time.monotonic() + timeout_s
    while not enough(items):
        assert time.monotonic() < deadline, f"only {items}"
        items += subscriber.poll(0.05)
    return items


def messages(items):
    return [item.number for item in items if isinstance(item, Message)]


def test_what_was_sent_before_a_subscriber_came_is_replayed():
    """events-23"""
    log = ListLog([notes(1 + 10 * n, 10) for n in range(30)])
    with publisher(log) as pub:
        while pub.messages < 30:
            time.sleep(0.01)
        with follow(pub) as sub:
            items = until(sub, lambda items: len(messages(items)) == 30)
            assert items[0] == Epoch("eng", "e1")
            log.waiting.append(notes(301, 10))
            items += until(sub, messages)
    assert messages(items) == list(range(31))


def test_who_answers_a_replay_has_been_heard_whenever_its_next_heartbeat_is():
    with publisher(ListLog([notes(1, 1)]), heartbeat_s=60) as pub:
        while not pub.messages:
            time.sleep(0.01)
        with follow(pub) as sub:
            assert not sub.heard
            until(sub, messages)
            assert sub.heard


def test_an_idle_engine_still_sends_its_rows():
    """events-19"""
    log = ListLog()
    with publisher(log) as pub, follow(pub) as sub:
        time.sleep(0.1)
        log.waiting.append(notes(1, 1))
        assert messages(until(sub, messages)) == [0]


def test_a_replay_that_begins_too_late_is_a_gap():
    log = ListLog([notes(1 + n, 1) for n in range(30)])
    with publisher(log, ring_messages=10) as pub:
        while pub.messages < 30:
            time.sleep(0.01)
        with follow(pub) as sub:
            items = until(sub, messages)
    assert [item for item in items if isinstance(item, Gap)] == [
        Gap("e1", 0, 19, "no longer in the replay ring")
    ]
    assert messages(items) == list(range(20, 30))


def test_a_restarted_engine_is_a_new_epoch_at_the_same_address():
    """events-05, events-10"""
    first = publisher(ListLog([notes(1, 1), notes(2, 1)]))
    with follow(first) as sub:
        items = until(sub, lambda items: len(messages(items)) == 2)
        first.close()
        log = ListLog([notes(1, 1, epoch="e2")])
        with Publisher(log, first.endpoint, first.replay_endpoint, heartbeat_s=0.1):
            items += until(sub, messages)
    assert [item.epoch for item in items if isinstance(item, Epoch)] == ["e1", "e2"]
    assert messages(items) == [0, 1, 0]


def test_a_bad_payload_is_counted_marked_and_survived():
    """events-18"""
    log = ListLog([notes(1, 1), b"junk", notes(3, 1)])
    with publisher(log) as pub, follow(pub) as sub:
        items = until(sub, lambda items: 2 in messages(items))
        assert sub.bad >= 1
    assert messages(items) == [0, 2]
    assert [(g.first, g.last) for g in items if isinstance(g, Gap)] == [(1, 1)]


def test_a_lost_tail_is_noticed_by_the_heartbeat():
    """The subscriber's own socket is cut off while the engine says its last words."""
    log = ListLog([notes(1, 1)])
    with publisher(log) as pub, follow(pub) as sub:
        until(sub, messages)
        sub._sub.disconnect(pub.endpoint)
        time.sleep(0.1)
        log.waiting.append(notes(2, 1))
        while pub.messages < 2:
            time.sleep(0.01)
        sub._sub.connect(pub.endpoint)
        assert messages(until(sub, messages)) == [1]


def test_silence_is_said_once_and_ends():
    log = ListLog([notes(1, 1)])
    pub = publisher(log)
    with follow(pub, silence_s=0.5) as sub:
        until(sub, messages)
        pub.close()
        items = until(sub, lambda items: any(isinstance(item, Silence) for item in items))
        for _ in range(12):
            items += sub.poll(0.05)
        assert sum(isinstance(item, Silence) for item in items) == 1
        assert sub.silent
        with Publisher(ListLog(), pub.endpoint, pub.replay_endpoint, heartbeat_s=0.1):
            deadline = time.monotonic() + 10
            while sub.silent:
                assert time.monotonic() < deadline
                sub.poll(0.05)


def test_a_subscriber_that_does_not_read_costs_nobody_anything():
    """events-01, -24, -27: what it has no room for is dropped, noticed, and fetched again."""
    count, payload = 4800, notes(1, 1)  # more than both sockets' high-water marks
    log = ListLog()
    with publisher(log, ring_messages=count) as pub, follow(pub) as slow, follow(pub) as quick:
        until(quick, lambda _: quick.heard)
        until(slow, lambda _: slow.heard)
        got = []
        for burst in range(1, 17):
            log.waiting.extend([payload] * (count // 16))
            while len(messages(got)) < burst * (count // 16):
                got += quick.poll(0.05)
        caught_up = until(slow, lambda items: len(messages(items)) == count, 60)
    assert messages(got) == messages(caught_up) == list(range(count))
    assert slow.replays > 1


def test_closing_sends_what_is_left_and_leaves_no_thread():
    before = threading.active_count()
    log = ListLog()
    pub = publisher(log)
    with follow(pub) as sub:
        sub.poll(0.3)
        log.waiting.extend(notes(1 + n, 1) for n in range(50))
        pub.close()
        pub.close()
        assert messages(until(sub, lambda items: len(messages(items)) == 50)) == list(range(50))
    assert threading.active_count() == before
    assert not log.waiting


def test_a_taken_port_is_an_error_at_once():
    with publisher(ListLog()) as pub, pytest.raises(BadAddress, match="cannot bind"):
        Publisher(ListLog(), pub.endpoint, ANY)


def test_only_loopback_is_bound():
    with pytest.raises(BadAddress, match="not on this machine"):
        Publisher(ListLog(), "tcp://0.0.0.0:5557")


@pytest.fixture
def sockets():
    context = zmq.Context()
    yield context
    context.destroy(linger=0)


def ask(context, pub, start):
    dealer = context.socket(zmq.DEALER)
    dealer.connect(pub.replay_endpoint)
    dealer.send_multipart([b"", start.to_bytes(8, "big")])
    frames = []
    while not frames or frames[-1][2] != REPLAY_END:
        assert dealer.poll(5000)
        frames.append(dealer.recv_multipart())
    return frames


def test_replay_speaks_the_framing_of_vllm(sockets):
    """events-21: six frames of the live shape, then the end mark."""
    payloads = [notes(1 + n, 1) for n in range(6)]
    with publisher(ListLog(payloads), topic="kv-events") as pub:
        while pub.messages < 6:
            time.sleep(0.01)
        frames = ask(sockets, pub, 0)
    assert frames[:-1] == [[b"", b"kv-events", n.to_bytes(8, "big"), payloads[n]] for n in range(6)]
    assert frames[-1] == [b"", b"", b"\xff" * 8, b""]


def test_a_heartbeat_repeats_the_last_number_and_says_the_oldest(sockets):
    log = ListLog()
    with publisher(log, ring_messages=2) as pub:
        sub = sockets.socket(zmq.SUB)
        sub.setsockopt(zmq.SUBSCRIBE, b"")
        sub.connect(pub.endpoint)
        *first, life = sub.recv_multipart()
        assert first == [b"kv", NONE_YET, b"", NONE_YET]
        log.waiting.extend(notes(1 + n, 1) for n in range(5))
        frames = [sub.recv_multipart() for _ in range(8)]
    beats = [frame for frame in frames if not frame[2] and frame[1] != NONE_YET]
    assert beats[0] == [b"kv", (4).to_bytes(8, "big"), b"", (3).to_bytes(8, "big"), life]


@pytest.mark.parametrize(
    "junk", [[b"x"], [b"", b"short"], [b"", b"\x80\x04N.", b"y"], [b""] * 9, [b"", b"\0" * 900]]
)
def test_junk_to_the_replay_port_is_counted_and_survived(sockets, junk):
    """security-03"""
    with publisher(ListLog([notes(1, 1)])) as pub:
        dealer = sockets.socket(zmq.DEALER)
        dealer.connect(pub.replay_endpoint)
        dealer.send_multipart(junk)
        assert len(ask(sockets, pub, 0)) == 2
        assert pub.bad_requests == 1


def test_a_failing_drain_neither_stops_the_thread_nor_goes_unnoticed():
    class Failing(ListLog):
        def drain(self, max_rows=4096):
            if self.waiting and self.waiting[0] is None:
                self.waiting.popleft()
                raise MemoryError("encoding")
            return super().drain(max_rows)

    log = Failing([None, notes(1, 1)])
    with publisher(log) as pub, follow(pub) as sub:
        assert messages(until(sub, messages)) == [0]
        assert pub.errors == 1

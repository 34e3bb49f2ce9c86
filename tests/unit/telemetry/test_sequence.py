"""The order of messages, against an engine that loses live messages at random."""

from hypothesis import given
from hypothesis import strategies as st

from telemetry.message import Epoch, Gap, Header, Message
from telemetry.sequence import ATTEMPTS, Sequence


def message(number: int, epoch: str = "e1") -> Message:
    return Message(number, b"", Header("eng", epoch, number + 1, 1, 0, ""), None)


def numbers(items):
    return [item.number for item in items if isinstance(item, Message)]


def gaps(items):
    return [(item.first, item.last) for item in items if isinstance(item, Gap)]


class Engine:
    """Numbers messages, keeps the last `ring`, and answers what it is asked when it is asked."""

    def __init__(self, epoch: str, ring: int) -> None:
        self.epoch, self.ring, self.sent = epoch, ring, 0

    def send(self) -> Message:
        self.sent += 1
        return message(self.sent - 1, self.epoch)

    def answer(self, start: int) -> list[Message]:
        first = max(start, self.sent - self.ring)
        return [message(number, self.epoch) for number in range(first, self.sent)]


def converse(sequence: Sequence, engine: Engine) -> list:
    """Let it ask until it has nothing to ask."""
    items = []
    for _ in range(100):
        if sequence.wanted is None:
            return items
        for one in engine.answer(sequence.asked()):
            items += sequence.replayed(one)
        items += sequence.answered()
    raise AssertionError("it never stops asking")


LIVES = st.lists(st.lists(st.sampled_from(["got", "lost", "ask"]), max_size=30), max_size=4)


@given(LIVES, st.integers(1, 40))
def test_every_message_comes_once_in_order_or_in_a_gap(lives, ring):
    """events-07, -10, -16, -23: whatever is lost live, in whichever life of the engine."""
    sequence, items = Sequence(), []
    for life, steps in enumerate(lives):
        engine = Engine(f"e{life}", ring)
        for step in steps:
            if step == "ask":
                items += converse(sequence, engine)
                continue
            sent = engine.send()
            if step == "got":
                items += sequence.live(sent)
        items += sequence.heartbeat(engine.sent - 1, engine.epoch.encode())
        items += converse(sequence, engine)
        seen = [item for item in items if not isinstance(item, Epoch)]
        told = [
            number
            for item in seen
            for number in (
                [item.number] if isinstance(item, Message) else range(item.first, item.last + 1)
            )
            if (item.header.epoch if isinstance(item, Message) else item.epoch) == f"e{life}"
        ]
        assert told == list(range(engine.sent))
        if ring >= len(steps):
            assert not [gap for gap in seen if isinstance(gap, Gap) and gap.epoch == f"e{life}"]


def test_live_messages_wait_until_the_hole_is_filled():
    """events-07: a late replay must not bring back what a live message already undid."""
    sequence = Sequence(("e1", 4))
    sequence.asked()
    assert sequence.answered() == []
    assert numbers(sequence.live(message(6))) == []
    assert sequence.wanted == 5
    sequence.asked()
    assert numbers(sequence.replayed(message(5))) == [5, 6]


def test_a_replay_that_overlaps_the_live_stream_changes_nothing():
    """events-16"""
    sequence = Sequence()
    for number in range(5):
        sequence.live(message(number))
    items = [item for number in range(2, 8) for item in sequence.replayed(message(number))]
    assert numbers(items) == [5, 6, 7]
    assert sequence.duplicates == 3


def test_a_restart_is_noticed_without_replay():
    """events-10, events-05: numbers from 0 under a new epoch are new, not old."""
    sequence = Sequence(("e1", 99))
    items = sequence.live(message(0, "e2"))
    assert items == [Epoch("eng", "e2"), message(0, "e2")]
    assert sequence.live(message(100, "e1")) == []


def test_an_idle_restart_is_noticed_by_its_heartbeat():
    sequence = Sequence(("e1", 99))
    sequence.asked()
    sequence.answered()
    sequence.heartbeat(1, b"life2")
    assert sequence.asked() == 0
    items = sequence.replayed(message(0, "e2")) + sequence.replayed(message(1, "e2"))
    assert numbers(items) == [0, 1]


def test_a_message_younger_than_the_question_is_asked_for_again_not_given_up():
    sequence = Sequence(("e1", 4))
    sequence.asked()
    sequence.live(message(6))  # 5 was sent after the question was answered, and lost
    assert sequence.answered() == []
    assert sequence.wanted == 5


def test_what_has_left_the_ring_is_a_gap():
    sequence = Sequence(("e1", 4))
    sequence.asked()
    items = sequence.replayed(message(8)) + sequence.answered()
    assert gaps(items) == [(5, 7)]
    assert numbers(items) == [8]
    assert sequence.wanted is None


def test_an_engine_that_dies_owing_messages_leaves_a_gap():
    sequence = Sequence(("e1", 4))
    sequence.heartbeat(4, b"life1")
    sequence.heartbeat(7, b"life1")
    items = sequence.live(message(0, "e2"))
    assert gaps(items) == [(5, 7)]
    assert numbers(items) == [0]


def test_a_replay_that_never_answers_is_given_up():
    sequence = Sequence(("e1", 4))
    sequence.asked()
    sequence.live(message(9))
    items = []
    for _ in range(ATTEMPTS):
        items += sequence.unanswered()
        if sequence.wanted is not None:
            sequence.asked()
    assert gaps(items) == [(5, 8)]
    assert numbers(items) == [9]


def test_a_bad_payload_is_one_gap_and_the_stream_goes_on():
    """events-18"""
    sequence = Sequence(("e1", 4))
    assert gaps(sequence.damaged(5, "junk")) == [(5, 5)]
    assert numbers(sequence.live(message(6))) == [6]


def test_a_bad_payload_with_a_senseless_number_opens_no_hole():
    sequence = Sequence(("e1", 4))
    assert sequence.damaged(2**60, "junk") == []
    assert numbers(sequence.live(message(5))) == [5]
    assert sequence.bad == 1

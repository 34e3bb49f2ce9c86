"""Records in, rows out, with messages of a real core."""

import pytest
from helpers.talker import Churn, new_core
from helpers.wire import notes

from kvctl.collector.fold import Fold
from kvctl.collector.segment import Position, Record
from kvctl.store.database import Database
from kvctl.store.writer import Writer

ADDRESS = "tcp://127.0.0.1:1,replay=tcp://127.0.0.1:2,control=tcp://127.0.0.1:3"


def churned(turns=20, rows=50, **core):
    """(core, its messages)."""
    made = new_core(**core)
    Churn(made).play(turns)
    messages, log = [], made.log()
    while message := log.drain(rows):
        messages.append(message.payload)
    return made, messages


def records(messages, first=0):
    return [
        (
            Position(1, first + number),
            Record(
                {"kind": "message", "address": ADDRESS, "number": first + number, "received": 0},
                payload,
            ),
        )
        for number, payload in enumerate(messages)
    ]


class Tables:
    def __init__(self):
        self.database = Database(None)
        self.writer, self.fold = Writer(self.database), Fold()

    def take(self, records):
        self.writer.write(self.fold.apply(records))

    def all(self, sql):
        return self.database.cursor().execute(sql).fetchall()


def test_folding_every_message_gives_the_engines_own_state():
    core, messages = churned()
    tables = Tables()
    tables.take(records(messages))
    ((seq, state_hash, gapless, trust),) = tables.all(
        "SELECT seq, state_hash, gapless, trust FROM engines"
    )
    assert (seq, state_hash, gapless, trust) == (core.seq(), core.state_hash(), True, "exact")
    assert tables.all("SELECT count(*), min(seq), max(seq) FROM events") == [(seq, 1, seq)]
    assert tables.all("SELECT tier, used, free FROM pool_state") == [
        (pool.tier, pool.used, pool.free) for pool in core.pools()
    ]
    where = tables.all(
        "SELECT session, pages, fastest_device, fastest_host, fastest_storage FROM session_state"
        " WHERE open ORDER BY session"
    )
    assert where == sorted((s.name, s.pages, *s.fastest) for s in core.sessions())
    assert any(page and lower for _, _, page, *lower in where)


def test_the_same_records_give_the_same_rows_however_they_are_cut_into_batches():
    _, messages = churned()
    at_once, one_by_one = Tables(), Tables()
    at_once.take(records(messages))
    for one in records(messages):
        one_by_one.take([one])
    for table in ("events", "engines", "messages", "session_state", "pool_state", "progress"):
        assert at_once.all(f"FROM {table} ORDER BY ALL") == one_by_one.all(
            f"FROM {table} ORDER BY ALL"
        )


def test_a_closed_session_stays_as_closed():
    core = new_core()
    core.open_session(1, "a")
    core.open_session(2, "b")
    tables, log = Tables(), core.log()
    tables.take(records([log.drain().payload]))
    core.close_session(3, "a")
    tables.take(records([log.drain().payload], first=1))
    assert tables.all("SELECT session, open FROM session_state ORDER BY session") == [
        ("a", False),
        ("b", True),
    ]


def test_missing_messages_are_a_gap_row_and_end_the_trust():
    _, messages = churned()
    tables = Tables()
    kept = records(messages)
    lost = {
        "kind": "gap",
        "address": ADDRESS,
        "epoch": "e1",
        "first": 2,
        "last": 3,
        "reason": "why",
    }
    tables.take([*kept[:2], (Position(1, 2), Record(lost)), *kept[4:]])
    assert tables.all("SELECT first, last, rows, detail FROM gaps") == [
        (101, 200, 100, "messages 2..3: why")
    ]
    assert tables.all("SELECT trust, min(seq), max(seq) FROM events GROUP BY 1 ORDER BY 2")[0] == (
        "exact",
        1,
        100,
    )
    ((trust, gapless, gaps, lost_rows, problem),) = tables.all(
        "SELECT trust, gapless, gaps, lost_rows, problem FROM engines"
    )
    assert (trust, gapless, gaps, lost_rows) == ("after_gap", False, 1, 100)
    assert "rows 101..200 are lost" in problem


def test_rows_that_the_engine_itself_dropped_are_a_gap():
    core = new_core(log_rows=100)
    churn, log, messages = Churn(core), core.log(), []
    churn.play(1)
    messages.append(log.drain().payload)
    churn.play(20)
    while message := log.drain():
        messages.append(message.payload)
    tables = Tables()
    tables.take(records(messages))
    ((dropped, lost_rows),) = tables.all("SELECT dropped, lost_rows FROM engines")
    assert dropped == lost_rows == log.dropped() > 0
    assert "dropped" in tables.all("SELECT detail FROM gaps")[0][0]


def test_a_collector_that_comes_too_late_has_a_gap_at_the_start():
    _, messages = churned()
    tables = Tables()
    tables.take(records(messages)[3:])
    assert tables.all("SELECT first, last FROM gaps") == [(1, 150)]


def test_a_restart_is_another_life_and_what_the_old_one_owed_is_a_gap():
    _, first = churned()
    core, second = churned(epoch="e2")
    tables = Tables()
    tables.take(records(first))
    owed = {
        "kind": "gap",
        "address": ADDRESS,
        "epoch": "e1",
        "first": 99,
        "last": 99,
        "reason": "x",
    }
    tables.take([(Position(2, 0), Record(owed))])
    assert tables.all("SELECT gapless FROM engines") == [(False,)]
    tables.take([(Position(3, p.offset), record) for p, record in records(second)])
    assert tables.all("SELECT epoch, gaps, gapless FROM engines ORDER BY epoch") == [
        ("e1", 1, False),
        ("e2", 0, True),
    ]
    assert tables.all("SELECT epoch, state_hash FROM latest") == [("e2", core.state_hash())]
    assert tables.fold.resume(ADDRESS) == ("e2", len(second) - 1)


def test_a_state_that_does_not_come_out_is_recorded_loudly():
    core, messages = churned(turns=1, rows=4096)
    lie = notes(core.seq() + 1, 3, state_hash="f" * 32)
    tables = Tables()
    tables.take(records([*messages, lie]))
    ((trust, gapless, problem),) = tables.all("SELECT trust, gapless, problem FROM engines")
    assert (trust, gapless) == ("mismatch", False)
    assert "message 1 does not fold" in problem
    assert tables.all("SELECT trust FROM messages ORDER BY number") == [("exact",), ("mismatch",)]


@pytest.mark.parametrize("twice", [[0], [3, 4, 5]])
def test_messages_that_come_twice_change_nothing(twice):
    _, messages = churned()
    tables = Tables()
    tables.take(records(messages))
    before = tables.all("FROM events ORDER BY ALL")
    tables.take([records(messages)[number] for number in twice])
    assert tables.all("FROM events ORDER BY ALL") == before

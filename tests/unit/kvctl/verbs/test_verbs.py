import pytest
from helpers.tables import store_of
from helpers.wire import SECOND

from kvctl.errors import Ambiguous, NotEstablished, ReadOnly, UsageError
from kvctl.table import records
from kvctl.verbs import ACTING, READING, answer

RUN = [
    {"seq": 1, "kind": "request", "phase": "arrival", "session": "a", "request": "r1"},
    {
        "seq": 2,
        "kind": "match",
        "phase": "acquire",
        "session": "a",
        "request": "r1",
        "tokens": 100,
        "device_tokens": 40,
        "host_tokens": 20,
        "storage_tokens": 0,
        "reason": "never_stored",
    },
    {
        "seq": 3,
        "kind": "request",
        "phase": "first_token",
        "session": "a",
        "request": "r1",
        "duration": 7,
    },
    {
        "seq": 4,
        "kind": "request",
        "phase": "finish",
        "session": "a",
        "request": "r1",
        "duration": 9,
    },
    {"seq": 5, "kind": "backup", "phase": "ask", "op": 9, "pages": 4},
    {"seq": 6, "kind": "backup", "phase": "reserve", "op": 9, "pages": 3, "tier_from": "device"},
    {"seq": 7, "kind": "backup", "phase": "reserve", "op": 9, "pages": 1, "tier_from": "device"},
    {
        "seq": 8,
        "kind": "backup",
        "phase": "done",
        "op": 9,
        "pages": 4,
        "bytes": 4000,
        "duration": SECOND // 2,
    },
    {"seq": 9, "kind": "canary", "phase": "check", "pages": 4, "reason": "backup"},
    {"seq": 10, "kind": "canary", "phase": "violation", "session": "a", "reason": "load"},
    {
        "seq": 11,
        "kind": "evict",
        "phase": "lost",
        "tier_from": "host",
        "pages": 2,
        "reason": "pressure",
    },
    {"seq": 12, "kind": "request", "phase": "abort", "session": "b", "request": "r2"},
]


START = {
    "seq": 13,
    "kind": "request",
    "phase": "start",
    "session": "a",
    "request": "r1",
    "tokens": 48,
}


@pytest.fixture
def store():
    return store_of(("eng", "e1", RUN))


def test_a_request_is_one_row_with_its_hits_and_latencies(store):
    first, second = records(answer(store, "requests", {}))
    assert first["saved_tokens"] is None
    assert (first["tokens"], first["hit_tokens"], first["host_tokens"]) == (100, 60, 20)
    assert (first["ttft_ns"], first["duration_ns"], first["state"]) == (7, 9, "finished")
    assert (second["request"], second["state"], second["tokens"]) == ("r2", "aborted", None)


def test_requests_of_one_name_in_two_sessions_are_two():
    found = {"device_tokens": 4, "host_tokens": 1, "storage_tokens": 0}
    rows = [
        {"seq": seq, "session": session, "request": "r1", "tokens": 10 * (seq % 10)} | row
        for session, tens in (("a", 10), ("b", 20))
        for seq, row in (
            (tens + 1, {"kind": "request", "phase": "arrival"}),
            (tens + 2, {"kind": "match", "phase": "acquire", **found}),
            (tens + 3, {"kind": "request", "phase": "finish"}),
        )
    ]
    store = store_of(("eng", "e1", rows))
    seen = records(answer(store, "requests", {}))
    assert [(r["session"], r["tokens"], r["hit_tokens"]) for r in seen] == [
        ("a", 20, 5),
        ("b", 20, 5),
    ]
    summary = answer(store, "summary", {})
    assert (summary["requests"], summary["finished"], summary["tokens"]) == (2, 2, 40)


def test_a_move_in_several_runs_is_one_transfer(store):
    (row,) = records(answer(store, "transfers", {}))
    assert (row["ops"], row["pages"], row["bytes"]) == (1, 4, 4000)
    assert row["bytes_per_s"] == 8000


def test_what_was_found_and_not_read_is_not_saved():
    found = {"device_tokens": 30, "host_tokens": 60, "storage_tokens": 0}
    begun = [
        {"kind": "match", "phase": "acquire", "tokens": 100, **found},
        {"kind": "request", "phase": "start", "tokens": 40},
        {"kind": "request", "phase": "start", "tokens": None},
    ]
    rows = [
        {"seq": seq, "session": "a", "request": f"r{count}"} | row
        for count in (1, 2, 3)
        for seq, row in enumerate(begun[:count], 1 + 3 * count)
    ]
    store = store_of(("eng", "e1", rows))
    assert [
        (r["hit_tokens"], r["saved_tokens"]) for r in records(answer(store, "requests", {}))
    ] == [
        (90, None),
        (90, 40),
        (90, 0),
    ]
    found = answer(store, "summary", {})
    assert (found["tokens"], found["saved_tokens"], found["computed_tokens"]) == (300, 40, 160)
    assert found["hit_rate"] == 0.2


def test_the_summary_adds_up():
    found = answer(store_of(("eng", "e1", [*RUN, START])), "summary", {})
    assert found["hit_tokens"] == {"device": 40, "host": 20, "storage": 0}
    assert (found["tokens"], found["saved_tokens"], found["computed_tokens"]) == (100, 48, 52)
    assert (found["requests"], found["finished"], found["aborted"]) == (2, 1, 1)
    assert found["hit_rate"] == 0.48
    assert found["evictions"] == {"host/pressure": 2}
    assert found["lost_pages"] == 2
    assert found["canary"] == {"checks": 4, "violations": 1, "injected": 0}
    assert found["misses"] == {"never_stored": 1}
    assert found["engines"][0]["gapless"] is True


def test_violations_name_hop_and_session(store):
    found = answer(store, "canary", {})
    (violation,) = records(found["violations_table"])
    assert (violation["hop"], violation["session"], violation["seq"]) == ("load", "a", 10)
    assert records(found["hops"]) == [
        {"hop": "backup", "checks": 4, "violations": 0},
        {"hop": "load", "checks": 0, "violations": 1},
    ]


@pytest.mark.parametrize(
    ("args", "seqs"),
    [
        ({"limit": 2}, [11, 12]),
        ({"after_seq": 3, "limit": 2}, [4, 5]),
        ({"before_seq": 3, "limit": 2}, [1, 2]),
        ({"kind": "canary"}, [9, 10]),
        ({"session": "a", "kind": "canary"}, [10]),
        ({"request": "r2"}, [12]),
        ({"epoch": "other"}, []),
        ({"kind": "gap"}, []),
    ],
)
def test_events_are_paged_and_filtered(store, args, seqs):
    assert [row["seq"] for row in records(answer(store, "events", args))] == seqs


def test_only_the_latest_epoch_counts_unless_asked():
    store = store_of(("eng", "e1", RUN), ("eng", "e2", RUN[:1]))
    assert answer(store, "summary", {})["tokens"] == 0
    assert len(answer(store, "engines", {})["rows"]) == 1
    assert len(answer(store, "engines", {"all_epochs": True})["rows"]) == 2
    assert [
        row["seq"] for row in records(answer(store, "events", {"epoch": "e1", "limit": 1}))
    ] == [12]


def test_an_ambiguous_engine_is_asked_for_by_name():
    store = store_of(("one", "e1", RUN), ("two", "e2", RUN))
    with pytest.raises(Ambiguous, match="one, two"):
        answer(store, "why", {"session": "a"})
    assert answer(store, "why", {"session": "a", "engine": "two"})["engine"] == "two"


def test_every_reading_verb_answers_over_an_empty_store():
    store = store_of()
    needed = {"sql": {"query": "SELECT 1"}}
    for verb in set(READING) - {"why"}:
        assert isinstance(answer(store, verb, needed.get(verb, {})), dict)


NOBODY = [
    *((verb, {"engine": "nobody"}) for verb in ("sessions", "pools", "transfers", "canary")),
    *(("events", {name: "nobody"}) for name in ("engine", "session", "request", "kind")),
    *(("requests", {name: "nobody"}) for name in ("engine", "session")),
    *(("why", {name: "nobody"}) for name in ("session", "request")),
    ("why", {"engine": "nobody", "session": "a"}),
    ("sessions", {"session": "nobody"}),
]


@pytest.mark.parametrize(("verb", "args"), NOBODY)
def test_a_name_that_nothing_bears_is_a_wrong_argument(store, verb, args):
    with pytest.raises(UsageError, match="nobody"):
        answer(store, verb, args)


@pytest.mark.parametrize("verb", ["sessions", "events", "requests", "why"])
def test_a_name_that_may_be_among_lost_rows_could_not_be_established(verb):
    gap = {"seq": 13, "score": 13, "kind": "gap", "detail": "lost"}
    store = store_of(("eng", "e1", [*RUN, gap]))
    with pytest.raises(NotEstablished, match="'nobody' is known; it may be among the lost rows"):
        answer(store, verb, {"session": "nobody"})


@pytest.mark.parametrize(
    ("verb", "args"),
    [("pools", {"engine": "e"}), ("why", {"session": "s"}), ("why", {"request": "r"})],
)
def test_before_any_engine_has_spoken_nothing_is_known_of_names(verb, args):
    with pytest.raises(NotEstablished, match="no engine has been heard yet"):
        answer(store_of(), verb, args)


@pytest.mark.parametrize("verb", [*ACTING, "attach", "shutdown"])
def test_a_record_cannot_be_acted_on(store, verb):
    with pytest.raises(ReadOnly, match="needs a running server"):
        answer(store, verb, {})


@pytest.mark.parametrize(
    ("verb", "args"),
    [
        ("nonsense", {}),
        ("events", {"nonsense": 1}),
        ("events", {"limit": 0}),
        ("events", {"limit": "many"}),
        ("events", {"after_seq": "x"}),
        ("sql", {}),
        ("sql", {"query": 7}),
        ("sql", {"query": "SELECT 1", "timeout_s": -1}),
        ("sql", {"query": "SELECT 1", "timeout_s": 1e9}),
        ("sessions", {"engine": {"a": 1}}),
    ],
)
def test_bad_questions_are_usage_errors(store, verb, args):
    with pytest.raises(UsageError):
        answer(store, verb, args)

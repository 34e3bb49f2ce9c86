import pytest
from helpers.tables import store_of
from helpers.wire import SECOND

from kvctl.errors import NotEstablished, UsageError
from kvctl.verbs import answer


def rows(*given):
    return [{"seq": seq} | row for seq, row in enumerate(given, 1)]


def match(session, request, reason="", **more):
    return {
        "kind": "match",
        "phase": "acquire",
        "session": session,
        "request": request,
        "tokens": 100,
        "device_tokens": 30,
        "host_tokens": 10,
        "storage_tokens": 0,
        "reason": reason or None,
    } | more


def evict(tier, phase, cause, **more):
    return {
        "kind": "evict",
        "phase": phase,
        "tier_from": tier,
        "cause": cause,
        "slot_from": 4,
        "pages": 4,
        "session": "s1",
        "reason": "pressure",
        "policy": "lru",
        "score": 1 * SECOND,
    } | more


INSERT = {"kind": "insert", "phase": "new", "slot_from": 0, "pages": 8, "session": "s1"}
ASK = {"kind": "alloc", "phase": "ask", "session": "s2", "request": "r2"}
STORY = rows(
    evict("device", "kept", 0, session="older life of the slot"),
    INSERT,
    ASK,
    evict("device", "kept", 3, skipped=2),
    evict("host", "lost", 3),
    match("s1", "r3", "evicted", cause=5),
    match("s1", "r4", "never_stored"),
    match("s2", "r5"),
)


def why(story, **args):
    return answer(store_of(("eng", "e1", story)), "why", args)


def test_an_evicted_miss_names_what_took_it_tier_by_tier_and_for_whom():
    found = why(STORY, session="s1")
    assert found["request"] == "r3"
    assert (found["found"], found["certain"]) == (True, True)
    assert found["miss"]["missed_tokens"] == 60
    assert [(row["seq"], row["tier"], row["kept"]) for row in found["took"]] == [
        (5, "host", False),
        (4, "device", True),
    ]
    assert found["took"][0]["before_ns"] == 1 * SECOND
    assert found["took"][0]["idle_ns"] == 4 * SECOND
    assert (found["for"]["session"], found["for"]["request"]) == ("s2", "r2")
    assert found["sentences"] == [
        "Request r3 of session s1 missed 60 of 100 tokens: the pages had been evicted.",
        "4 pages left host 1.0 s before (the last copy): pressure, chosen by lru,"
        " last used by session s1 4.0 s earlier (row 5).",
        "4 pages left device 2.0 s before (still kept below): pressure, chosen by lru,"
        " last used by session s1 3.0 s earlier; 2 other candidates were pinned or in use (row 4).",
        "It was for request r2 of session s2 (alloc, row 3).",
    ]


def test_it_was_for_whoever_took_the_last_copy():
    other = ASK | {"session": "s9", "request": "r9"}
    story = rows(
        INSERT, ASK, evict("device", "kept", 2), other, evict("host", "lost", 4, pages=1),
        match("s1", "r3", "evicted", cause=5),
    )  # fmt: skip
    found = why(story, session="s1")
    assert [row["cause"] for row in found["took"]] == [4, 2]
    assert (found["for"]["request"], found["for"]["session"]) == ("r9", "s9")
    assert "It was for request r9 of session s9 (alloc, row 4)." in found["sentences"]
    assert found["sentences"][1].startswith("1 page left host ")


def test_a_request_is_answered_for_itself():
    found = why(STORY, request="r4")
    assert found["miss"]["reason"] == "never_stored"
    assert found["took"] == []
    assert found["certain"]


def test_a_request_that_missed_nothing_is_said_so():
    found = why(STORY, request="r5")
    assert (found["found"], found["miss"]) == (False, None)
    assert found["sentences"] == ["Request r5 of session s2 missed nothing."]


def test_divergence_says_where():
    found = why(rows(match("s1", "r1", "diverged", score=42)), session="s1")
    assert found["miss"]["offset"] == 42
    assert "at token 42" in found["sentences"][0]


def test_what_is_unknown_is_called_unknown():
    found = why(rows(match("s1", "r1", "unknown")), session="s1")
    assert not found["certain"]
    assert "why is unknown" in found["sentences"][0]


def test_a_lost_row_in_the_chain_is_named():
    gap = {"kind": "gap", "score": 2, "detail": "lost", "seq": 5}
    story = [{"seq": 1} | INSERT, gap, {"seq": 6} | match("s1", "r3", "evicted", cause=4)]
    found = why(story, session="s1")
    assert not found["certain"]
    assert found["gaps"] == [{"first": 2, "last": 5}]
    assert found["sentences"][1:] == [
        "Which row took them is unknown.",
        "Rows 2..5 of the log are lost; they could change this answer.",
    ]


def test_who_needed_the_room_may_be_unknown():
    story = [
        {"seq": 5} | evict("host", "lost", 3),
        {"seq": 6} | match("s1", "r", "evicted", cause=5),
    ]
    found = why(story, session="s1")
    assert not found["certain"]
    assert "Who needed the room is unknown." in found["sentences"]


def test_a_session_nobody_saw_is_an_error_not_an_answer():
    with pytest.raises(UsageError, match="no session 'x'"):
        why(STORY, session="x")


def test_a_session_that_asked_for_nothing_yet_has_no_reason():
    opened = rows({"kind": "session", "phase": "open", "session": "x"})
    with pytest.raises(NotEstablished, match="session 'x'"):
        why(opened, session="x")


@pytest.mark.parametrize("args", [{}, {"session": "a", "request": "b"}, {"session": "s1", "x": 1}])
def test_bad_arguments_are_refused(args):
    with pytest.raises(UsageError):
        why(STORY, **args)

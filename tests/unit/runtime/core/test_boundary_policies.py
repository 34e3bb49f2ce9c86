"""A user's own eviction policy decides, or is refused, or falls silent; a request never fails."""

import threading
from array import array

import pyarrow as pa
import pyarrow.ipc
import pytest
from driver import Driver
from user_policies import Caller

from runtime._core import BadArgument, Core, Replica

FULL = [[1], [2], [3], [4]]


def driver(name: str, **options: object) -> Driver:
    policies = {"device": f"user_policies:{name}"}
    return Driver("s", device=4, policies=policies, **options)


def left(d: Driver) -> list[list[int]]:
    """Which of the prompts of one token are still on the device."""
    return [prompt for prompt in [*FULL, [5], [6]] if d.look("s", prompt).device_pages]


def test_a_policy_evicts_in_its_own_order():
    d = driver("Youngest")
    for prompt in [*FULL, [5], [6]]:
        d.serve("s", prompt)
    assert left(d) == [[1], [2], [3], [6]]
    by_last_use = Driver("s", device=4)
    for prompt in [*FULL, [5], [6]]:
        by_last_use.serve("s", prompt)
    assert left(by_last_use) == [[3], [4], [5], [6]]


def test_the_log_names_the_policy_that_chose():
    d = driver("Youngest")
    for prompt in [*FULL, [5]]:
        d.serve("s", prompt)
    assert b"user_policies:Youngest" in d.core.log().drain(10**6).payload


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("user_policies:Oldest", "cannot be imported"),
        ("no_such_module:Oldest", "cannot be imported"),
        ("no.such.module:Oldest", "cannot be imported"),
        (":", "it must be a known name"),
        (":Youngest", "it must be a known name"),
        ("user_policies:", "it must be a known name"),
        ("user_policies:Facts.now", "cannot be"),
        ("user_policies:NeedsMore", "cannot be made"),
        ("user_policies:NoHit", "no method on_hit"),
        ("user_policies:Fraction", "on trial, on_insert answered 0.0"),
        ("\0:\0", "cannot be imported"),
        ("os:getpid", "no method on_insert"),
    ],
)
def test_what_cannot_decide_is_refused_when_the_core_is_made(name, why):
    with pytest.raises(BadArgument) as refusal:
        Driver("s", device=4, policies={"device": name})
    assert why in str(refusal.value), refusal.value


@pytest.mark.parametrize("name", ["Tired", "Late"])
def test_a_policy_that_fails_later_is_not_asked_again_and_the_request_succeeds(name):
    d = driver(name)
    for prompt in [*FULL, *FULL, [5], [6]]:
        d.serve("s", prompt)
        d.core.check()
    assert d.look("s", [6]).pages == 1
    assert len(left(d)) == 4
    for prompt in FULL:  # from here on, by last use
        d.serve("s", prompt)
    assert left(d) == FULL


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Tired", "on_insert raised RuntimeError: no more"),
        ("Late", "on_victim answered 0.5; it must be an int of 64 bits"),
    ],
)
def test_a_policy_that_fails_is_named_once_in_the_log_and_to_whoever_asks(name, why):
    d = driver(name, journal=True)
    assert d.core.policy_faults() == []
    for prompt in [*FULL, [5], [6], *FULL]:
        d.serve("s", prompt)
    path = f"user_policies:{name}"
    assert d.core.policy_faults() == [("full", "device", path, why)]
    message = d.core.log().drain(10**6)
    assert message
    rows = pa.ipc.open_stream(message.payload).read_all().to_pylist()
    told = [row for row in rows if (row["kind"], row["phase"]) == ("config", "fail")]
    (row,) = told
    said = [row[column] for column in ("component", "tier_to", "policy", "reason", "detail")]
    assert said == ["full", "device", path, "raised", why]
    replica = Replica()
    assert replica.fold(message.payload) == d.core.state_hash()
    with pytest.raises(BadArgument, match="pass policies=True"):
        Core.replay(d.core.journal())
    again = Core.replay(d.core.journal(), policies=True)
    assert (again.state_hash(), again.seq()) == (d.core.state_hash(), d.core.seq())
    assert again.policy_faults() == d.core.policy_faults()


def test_two_threads_on_one_core_with_a_policy_of_python_finish():
    d = driver("Youngest")
    faults: list[BaseException] = []

    def serve(session: str) -> None:
        try:
            for turn in range(300):
                tokens = array("I", [turn % 7, len(session)])
                found = d.core.acquire(turn, session, "r", tokens)
                got = d.core.reserve(turn, found.receipt, 2 - found.pages)
                d.core.commit(turn, got.op, tokens, found.pages, got.pages)
                d.core.release(turn, found.receipt)
        except BaseException as fault:
            faults.append(fault)

    sessions = ["a", "bb"]
    for session in sessions:
        d.core.open_session(1, session)
    threads = [threading.Thread(target=serve, args=(s,), daemon=True) for s in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    assert faults == []
    d.core.check()


def test_a_policy_that_calls_the_core_is_refused_there_and_does_not_wait_for_itself():
    d = driver("Caller")
    Caller.core, Caller.refusals = d.core, []
    try:
        for prompt in [*FULL, [5]]:
            d.serve("s", prompt)
    finally:
        Caller.core = None
    assert len(Caller.refusals) >= 4 * 5
    assert {"a policy may not call" in refusal for refusal in Caller.refusals} == {True}
    assert left(d) == [[1], [2], [3], [5]]
    d.core.check()

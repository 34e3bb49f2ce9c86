"""The operator's part of the demo: ask why a session missed, pin it, see it hit the next time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kvctl.demo.engine import Engine
from kvctl.errors import TimedOut
from kvctl.source import Source
from kvctl.table import records

PIN_TTL_S = 600
CATCH_UP_S = 30.0
PLAY_S = 900.0


@dataclass(frozen=True)
class Story:
    session: str
    why: dict[str, Any]
    """The answer of `kvctl why` at the barrier."""
    pin: dict[str, Any]
    """The engine's answer to the pin."""
    miss: dict[str, Any]
    """The session's request before the pin, as the engine reported it."""
    hit: dict[str, Any]
    """Its request after the same flood, pinned."""


def play(engine: Engine, source: Source) -> Story:
    """Wait for the barrier, act, let the engine go on, and wait until it has played everything."""
    session = engine.wait("barrier", PLAY_S)["session"]
    before = engine.requests(session)
    why = until(
        lambda: _why_of(source, session, before[-1]["request"]),
        CATCH_UP_S,
        f"`why` says nothing of request {before[-1]['request']} of session {session!r}",
    )
    pin = source.ask("pin", session=session, tier="host", ttl_s=PIN_TTL_S)
    engine.tell("go")
    engine.wait("played", PLAY_S)
    return Story(session, why, pin, before[-1], engine.requests(session)[len(before)])


def finish(engine: Engine, source: Source) -> dict[str, Any]:
    """Stop the engine and wait until every row of its log is in the store; its result."""
    engine.tell("stop")
    result = engine.wait("result", PLAY_S)
    until(
        lambda: folded(source)["seq"] >= result["seq"],
        CATCH_UP_S,
        f"the collector has not reached row {result['seq']} of the engine's log",
    )
    return result


def folded(source: Source) -> dict[str, Any]:
    """What the collector has rebuilt of the demo's engine, of which there is one."""
    return records(source.ask("engines"))[0]


def until(attempt: Callable[[], Any], timeout_s: float, otherwise: str) -> Any:
    """The first true answer of `attempt`; TimedOut says `otherwise`."""
    deadline = time.monotonic() + timeout_s
    while not (answer := attempt()):
        if time.monotonic() > deadline:
            raise TimedOut(f"{otherwise} ({timeout_s:.0f} s)")
        time.sleep(0.1)
    return answer


def _why_of(source: Source, session: str, request: str) -> dict[str, Any] | None:
    """The answer once it is about that request; None while the collector is behind."""
    answer = source.ask("why", session=session)
    return answer if answer["request"] == request else None

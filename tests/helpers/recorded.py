"""A source of recorded answers: what screens are shown in tests of screens alone.

Shapes are those of kvctl.verbs; tests/integration/kvctl runs the same screens over a real server.
"""

from __future__ import annotations

import copy
from typing import Any

from kvctl.errors import KvctlError, Unreachable

T0 = 1_700_000_000_000_000_000
SECOND = 1_000_000_000
SESSION = [
    "engine",
    "epoch",
    "session",
    "parent",
    "open",
    "pages",
    "device_pages",
    "host_pages",
    "storage_pages",
    "fastest_device",
    "fastest_host",
    "fastest_storage",
    "shared_pages",
    "requests",
    "tokens",
    "hit_tokens",
    "saved_tokens",
    "hit_rate",
    "last_reason",
    "leases",
    "last_use",
    "seq",
]
EVENT = [
    "engine",
    "epoch",
    "seq",
    "ts",
    "kind",
    "phase",
    "cause",
    "session",
    "request",
    "pages",
    "tier_from",
    "tier_to",
    "tokens",
    "bytes",
    "duration",
    "reason",
    "policy",
    "score",
    "skipped",
    "device_tokens",
    "host_tokens",
    "storage_tokens",
    "detail",
    "trust",
]
POOL = [
    "engine",
    "epoch",
    "tier",
    "capacity",
    "used",
    "fenced",
    "free",
    "leased",
    "seq",
]
REQUEST = [
    "engine",
    "epoch",
    "request",
    "session",
    "arrival_ts",
    "tokens",
    "hit_tokens",
    "device_tokens",
    "host_tokens",
    "storage_tokens",
    "saved_tokens",
    "reason",
    "ttft_ns",
    "duration_ns",
    "state",
    "seq",
]
ENGINE = {
    "engine": "e0",
    "epoch": "3f2a91c0",
    "address": "tcp://127.0.0.1:5557",
    "state": "live",
    "seq": 1234,
    "number": 40,
    "rows": 1234,
    "messages": 40,
    "lag_ms": 12.0,
    "dropped": 0,
    "gaps": 0,
    "lost_rows": 0,
    "trust": "exact",
    "state_hash": "0f" * 16,
    "gapless": True,
    "first_ts": T0,
    "last_ts": T0 + 60 * SECOND,
    "problem": "",
}


def session(name: str, **changes: Any) -> list[Any]:
    values = {
        "engine": "e0",
        "epoch": "3f2a91c0",
        "session": name,
        "parent": "",
        "open": True,
        "pages": 40,
        "device_pages": 10,
        "host_pages": 20,
        "storage_pages": 30,
        "fastest_device": 10,
        "fastest_host": 10,
        "fastest_storage": 10,
        "shared_pages": 4,
        "requests": 3,
        "tokens": 1920,
        "hit_tokens": 1280,
        "saved_tokens": 1280,
        "hit_rate": 0.67,
        "last_reason": "evicted",
        "leases": [],
        "last_use": T0,
        "seq": 1234,
    }
    return [(values | changes)[column] for column in SESSION]


def event(seq: int, kind: str, phase: str = "", **changes: Any) -> list[Any]:
    values = dict.fromkeys(EVENT) | {
        "engine": "e0",
        "epoch": "3f2a91c0",
        "seq": seq,
        "ts": T0 + seq * SECOND,
        "kind": kind,
        "phase": phase,
        "session": "planner",
        "trust": "exact",
    }
    return [(values | changes)[column] for column in EVENT]


class RecordedSource:
    """Acting verbs are noted in `done`, every question in `asked`. `dead`: nobody answers."""

    def __init__(self, *, live: bool = True) -> None:
        self.name = "demo"
        self.live = live
        self.dead = False
        self.done: list[tuple[str, dict[str, Any]]] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.sessions = [session("planner"), session("coder", parent="planner", hit_rate=0.2)]
        self.events = [event(n, "insert", "new", pages=n) for n in range(1, 6)]
        self.refuses: KvctlError | None = None

    def ask(self, verb: str, **args: Any) -> dict[str, Any]:
        if self.dead:
            raise Unreachable("no server answers at ipc:///tmp/kvctl; start one with: kvctl serve")
        self.asked.append((verb, args))
        answer = getattr(self, f"_{verb}", self._act)
        return copy.deepcopy(answer(verb, **args))

    def close(self) -> None: ...

    def _status(self, verb: str) -> dict[str, Any]:
        return {
            "mode": "live" if self.live else "file",
            "source": self.name,
            "pid": 1,
            "started": T0,
            "version": "0.1.0",
            "rows": 1234,
            "messages": 40,
            "gaps": 0,
            "lost_rows": 0,
            "dropped": 0,
            "violations": 0,
            "lag_ms": 12.0,
            "problem": "",
            "engines": [ENGINE],
        }

    def _sessions(self, verb: str, session: str | None = None, **args: Any) -> dict[str, Any]:
        rows = [row for row in self.sessions if session in (None, row[2])]
        return {"columns": SESSION, "rows": rows}

    def _pools(self, verb: str) -> dict[str, Any]:
        figures = [("device", 96, 64, 2, 30, 0), ("host", 128, 40, 0, 88, 12)]
        rows = [["e0", "3f2a91c0", *pool, 1234] for pool in figures]
        return {"columns": POOL, "rows": rows}

    def _events(self, verb: str, kind: str | None = None, **args: Any) -> dict[str, Any]:
        return {"columns": EVENT, "rows": [r for r in self.events if kind in (None, r[4])]}

    def _requests(self, verb: str, session: str, **args: Any) -> dict[str, Any]:
        row = ["e0", "3f2a91c0", f"{session}-r1", session, T0, 640, 384, 128, 256, 0, 320]
        return {
            "columns": REQUEST,
            "rows": [[*row, "evicted", 900_000_000, 2_000_000_000, "finished", 1200]],
        }

    def _why(self, verb: str, engine: str, session: str) -> dict[str, Any]:
        return {
            "engine": engine,
            "epoch": "3f2a91c0",
            "session": session,
            "request": f"{session}-r1",
            "found": True,
            "certain": True,
            "miss": None,
            "took": [],
            "for": None,
            "gaps": [],
            "sentences": [
                f"{session} recomputed 256 of 640 tokens: its pages had been evicted.",
                "They left the host 4.1 s earlier to make room for request tester-r3.",
            ],
        }

    def _act(self, verb: str, **args: Any) -> dict[str, Any]:
        self.done.append((verb, args))
        if self.refuses is not None:
            raise self.refuses
        if verb == "pin":
            lease = {"lease": 7, "tier": args["tier"], "owner": "op", "pages": 40}
            lease["expires"] = T0 + args["ttl_s"] * SECOND
            self.sessions = [session(args["session"], leases=[lease]), *self.sessions[1:]]
        return {
            "engine": "e0",
            "epoch": "3f2a91c0",
            "action": "a1",
            "outcome": "accepted",
            "reason": "",
            "pages": 40,
            "asked": 40,
            "pending": 0,
            "lease": 7 if verb == "pin" else 0,
            "hint": 1,
            "seq": 1300,
        }

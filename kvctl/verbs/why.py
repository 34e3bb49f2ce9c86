"""The chain of causes behind a miss: which row took the pages, and who needed the room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvctl.errors import NotEstablished, UsageError
from kvctl.verbs import check
from kvctl.verbs.sentences import explain

if TYPE_CHECKING:
    from kvctl.store.store import Store

ORDINARY = ("never_stored", "below_page")
"""A growing conversation always ends in these; any other reason is the better answer."""
TAKEN = ("evicted", "load_failed")

MISSES = """
SELECT seq, ts, clock, session, request, tokens, coalesce(device_tokens, 0) AS device_tokens,
    coalesce(host_tokens, 0) AS host_tokens, coalesce(storage_tokens, 0) AS storage_tokens,
    coalesce(reason, '') AS reason, score, cause
FROM events
WHERE engine = $engine AND epoch = $epoch AND kind = 'match' AND phase = 'acquire'
    AND ($session IS NULL OR session = $session) AND ($request IS NULL OR request = $request)
ORDER BY coalesce(reason, '') <> '' DESC, coalesce(reason, '') NOT IN $ordinary DESC, seq DESC
LIMIT 1
"""

TOOK = """
WITH taker AS (
    SELECT * FROM events
    WHERE engine = $engine AND epoch = $epoch AND seq = $cause AND kind <> 'gap'
), born AS (
    SELECT coalesce(max(e.seq), 0) AS seq FROM events e, taker t
    WHERE e.engine = $engine AND e.epoch = $epoch AND e.kind = 'insert' AND e.seq < t.seq
        AND e.slot_from <= t.slot_from AND t.slot_from < e.slot_from + e.pages
)
SELECT e.seq, e.ts, e.kind, e.tier_from AS tier, e.phase = 'kept' AS kept, e.reason, e.policy,
    e.pages, e.clock, e.score, e.session AS last_user, e.skipped, e.cause, e.detail
FROM events e, taker t, born b
WHERE e.engine = $engine AND e.epoch = $epoch AND e.seq > b.seq AND e.seq <= t.seq
    AND (e.seq = t.seq OR (e.kind = 'evict' AND e.slot_from <= t.slot_from
                           AND t.slot_from < e.slot_from + e.pages))
ORDER BY e.seq DESC LIMIT 8
"""

FOR = """
SELECT seq, ts, kind, phase, session, request FROM events
WHERE engine = $engine AND epoch = $epoch AND seq = $seq AND kind <> 'gap'
"""

GAPS = """
SELECT first, last FROM gaps WHERE engine = $engine AND epoch = $epoch AND first <= $seq
ORDER BY first
"""


def why(
    store: Store,
    *,
    session: str | None = None,
    request: str | None = None,
    engine: str | None = None,
) -> dict[str, Any]:
    if (session is None) == (request is None):
        raise UsageError("why needs a session or a request, one of them")
    name, epoch = check.epoch_of(store, engine, session)
    where = {"engine": name, "epoch": epoch}
    asked = where | {"session": session, "request": request, "ordinary": list(ORDINARY)}
    found = store.dicts(MISSES, asked)
    if not found:
        check.known(store, session=session, request=request)
        what = f"session {session!r}" if session else f"request {request!r}"
        raise NotEstablished(f"engine {name!r} has not looked anything up for {what}")
    match = found[0]
    answer: dict[str, Any] = where | {"session": match["session"], "request": match["request"]}
    answer |= {"found": bool(match["reason"]), "certain": True, "miss": None, "took": []}
    answer |= {"for": None, "gaps": []}
    if answer["found"]:
        _trace(store, where, match, answer)
    answer["sentences"] = explain(answer)
    return answer


def _trace(
    store: Store, where: dict[str, Any], match: dict[str, Any], answer: dict[str, Any]
) -> None:
    hit = match["device_tokens"] + match["host_tokens"] + match["storage_tokens"]
    reason = match["reason"]
    answer["miss"] = {
        "seq": match["seq"],
        "ts": match["ts"],
        "tokens": match["tokens"],
        "hit_tokens": hit,
        "missed_tokens": match["tokens"] - hit,
        "device_tokens": match["device_tokens"],
        "host_tokens": match["host_tokens"],
        "storage_tokens": match["storage_tokens"],
        "reason": reason,
        "offset": match["score"] if reason == "diverged" else None,
    }
    answer["gaps"] = store.dicts(GAPS, where | {"seq": match["seq"]})
    answer["certain"] = reason != "unknown"
    if reason not in TAKEN:
        return
    took = store.dicts(TOOK, where | {"cause": match["cause"] or 0})
    for row in took:
        row["before_ns"] = match["clock"] - row["clock"]
        evicted = row.pop("kind") == "evict" and row["score"] is not None
        row["idle_ns"] = row["clock"] - row["score"] if evicted else None
        del row["clock"], row["score"]
    answer["took"] = took
    if took and took[0]["cause"]:
        needed = store.dicts(FOR, where | {"seq": took[0]["cause"]})
        answer["for"] = needed[0] if needed else None
        answer["certain"] = bool(needed)
    answer["certain"] = answer["certain"] and bool(took)

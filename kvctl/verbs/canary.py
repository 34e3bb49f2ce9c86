"""What the canary checked and found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvctl.verbs import check

if TYPE_CHECKING:
    from kvctl.store.store import Store


def canary(store: Store, *, engine: str | None = None, limit: int = 100) -> dict[str, Any]:
    params = {"engine": engine}
    here = "canary JOIN latest USING (engine, epoch) WHERE ($engine IS NULL OR engine = $engine)"
    counts = store.one(
        "SELECT coalesce(sum(pages) FILTER (phase = 'check'), 0)::BIGINT AS checks,"
        " count(*) FILTER (phase = 'violation') AS violations,"
        f" count(*) FILTER (phase = 'inject') AS injected FROM {here}",
        params,
    )
    hops = store.table(
        "SELECT hop, coalesce(sum(pages) FILTER (phase = 'check'), 0)::BIGINT AS checks,"
        " count(*) FILTER (phase = 'violation') AS violations"
        f" FROM {here} AND phase IN ('check', 'violation') GROUP BY hop ORDER BY hop",
        params,
    )
    found = store.table(
        "SELECT engine, canary.seq, ts, hop, session, request, node, slot_from, pages, detail"
        f" FROM {here} AND phase = 'violation' ORDER BY ts DESC LIMIT $limit",
        params | {"limit": check.limit(limit)},
    )
    return counts | {"hops": hops, "violations_table": found}

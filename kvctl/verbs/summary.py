"""The whole run on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvctl.verbs.canary import canary
from kvctl.verbs.transfers import transfers

if TYPE_CHECKING:
    from kvctl.store.store import Store

REQUESTS = """
SELECT count(*) AS requests, count(*) FILTER (state = 'finished') AS finished,
    count(*) FILTER (state = 'aborted') AS aborted,
    coalesce(sum(tokens), 0)::BIGINT AS tokens,
    coalesce(sum(tokens - saved_tokens), 0)::BIGINT AS computed_tokens,
    coalesce(sum(saved_tokens), 0)::BIGINT AS saved_tokens,
    sum(saved_tokens) / nullif(sum(tokens) FILTER (saved_tokens IS NOT NULL), 0) AS hit_rate,
    coalesce(sum(device_tokens), 0)::BIGINT AS device,
    coalesce(sum(host_tokens), 0)::BIGINT AS host,
    coalesce(sum(storage_tokens), 0)::BIGINT AS storage,
    quantile_disc(ttft_ns, 0.5) AS p50, quantile_disc(ttft_ns, 0.95) AS p95
FROM requests JOIN latest USING (engine, epoch)
"""


def summary(store: Store) -> dict[str, Any]:
    found = store.one(REQUESTS)
    result = {key: found[key] for key in list(found)[:7]}
    result["hit_tokens"] = {tier: found[tier] for tier in ("device", "host", "storage")}
    result["ttft_ns"] = {"p50": found["p50"], "p95": found["p95"]}
    result["misses"] = _pairs(
        store,
        "SELECT reason, count(*) FROM requests JOIN latest USING (engine, epoch)"
        " WHERE reason <> '' GROUP BY reason ORDER BY 2 DESC, 1",
    )
    result["evictions"] = _pairs(
        store,
        "SELECT tier || '/' || coalesce(reason, 'unknown'), sum(pages)::BIGINT FROM evictions"
        " JOIN latest USING (engine, epoch) GROUP BY 1 ORDER BY 2 DESC, 1",
    )
    counts = store.one(
        "SELECT (SELECT coalesce(sum(pages), 0)::BIGINT FROM evictions JOIN latest"
        " USING (engine, epoch) WHERE NOT kept) AS lost_pages,"
        " (SELECT count(*) FROM actions) AS actions,"
        " (SELECT coalesce(sum(gaps), 0)::BIGINT FROM latest) AS gaps,"
        " (SELECT coalesce(sum(lost_rows), 0)::BIGINT FROM latest) AS lost_rows"
    )
    checked = canary(store)
    return (
        result
        | counts
        | {
            "transfers": transfers(store),
            "canary": {key: checked[key] for key in ("checks", "violations", "injected")},
            "engines": store.dicts(
                "SELECT engine, epoch, seq, state_hash, gapless, trust FROM latest ORDER BY engine"
            ),
        }
    )


def _pairs(store: Store, sql: str) -> dict[str, int]:
    return dict(store.table(sql)["rows"])

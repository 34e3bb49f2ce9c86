"""Moves between tiers, added up."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvctl.store.store import Store
    from kvctl.table import Table


def transfers(store: Store, *, engine: str | None = None) -> Table:
    return store.table(
        "SELECT kind, tier_from, tier_to, count(*) AS ops,"
        " count(*) FILTER (failed) AS failed, sum(pages)::BIGINT AS pages,"
        " sum(bytes)::BIGINT AS bytes, sum(duration_ns)::BIGINT AS duration_ns,"
        " sum(bytes) * 1e9 / nullif(sum(duration_ns), 0) AS bytes_per_s"
        " FROM transfers JOIN latest USING (engine, epoch)"
        " WHERE $engine IS NULL OR engine = $engine"
        " GROUP BY kind, tier_from, tier_to"
        " ORDER BY list_position(['backup', 'load', 'offload', 'prefetch'], kind)",
        {"engine": engine},
    )

"""Pools: the pages of each tier."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvctl.store.store import Store
    from kvctl.table import Table


def pools(store: Store, *, engine: str | None = None) -> Table:
    return store.table(
        "SELECT p.engine, p.epoch, tier, capacity, used, fenced, free, leased, p.seq"
        " FROM pool_state p JOIN latest USING (engine, epoch)"
        " WHERE $engine IS NULL OR p.engine = $engine"
        " ORDER BY p.engine, list_position(['device', 'host', 'storage'], tier)",
        {"engine": engine},
    )

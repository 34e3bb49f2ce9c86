"""What was lost, of every epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvctl.store.store import Store
    from kvctl.table import Table


def gaps(store: Store) -> Table:
    return store.table("SELECT * FROM gaps ORDER BY ts, first")

"""Requests: what each found, missed and took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvctl.verbs import check

if TYPE_CHECKING:
    from kvctl.store.store import Store
    from kvctl.table import Table


def requests(
    store: Store, *, session: str | None = None, engine: str | None = None, limit: int = 200
) -> Table:
    table = store.table(
        "SELECT * FROM (SELECT requests.* FROM requests JOIN latest USING (engine, epoch)"
        " WHERE ($session IS NULL OR session = $session) AND ($engine IS NULL OR engine = $engine)"
        " ORDER BY arrival_ts DESC LIMIT $limit) ORDER BY arrival_ts",
        {"session": session, "engine": engine, "limit": check.limit(limit)},
    )
    if not table["rows"]:
        check.known(store, session=session)
    return table

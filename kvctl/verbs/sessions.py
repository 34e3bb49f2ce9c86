"""Sessions: where their pages are, and how well the cache serves them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from kvctl.verbs import check

if TYPE_CHECKING:
    from kvctl.store.store import Store
    from kvctl.table import Table

SQL = """
SELECT s.engine, s.epoch, s.session, s.parent, s.open, s.pages, s.device_pages, s.host_pages,
    s.storage_pages, s.fastest_device, s.fastest_host, s.fastest_storage, s.shared_pages,
    coalesce(r.requests, 0) AS requests, r.tokens, r.hit_tokens, r.saved_tokens, r.hit_rate,
    r.last_reason, s.leases, s.last_use, s.seq
FROM session_state s JOIN latest USING (engine, epoch)
LEFT JOIN (
    SELECT engine, epoch, session, count(*) AS requests, sum(tokens)::BIGINT AS tokens,
        sum(hit_tokens)::BIGINT AS hit_tokens, sum(saved_tokens)::BIGINT AS saved_tokens,
        sum(saved_tokens) / nullif(sum(tokens) FILTER (saved_tokens IS NOT NULL), 0) AS hit_rate,
        arg_max(reason, seq) AS last_reason
    FROM requests GROUP BY ALL
) r USING (engine, epoch, session)
WHERE ($engine IS NULL OR s.engine = $engine) AND ($session IS NULL OR s.session = $session)
ORDER BY s.last_use DESC, s.session LIMIT $limit
"""


def sessions(
    store: Store, *, engine: str | None = None, session: str | None = None, limit: int = 500
) -> Table:
    params = {"engine": engine, "session": session, "limit": check.limit(limit)}
    table = store.table(SQL, params)
    if not table["rows"]:
        check.known(store, session=session)
    at = table["columns"].index("leases")
    for row in table["rows"]:
        row[at] = json.loads(row[at])
    return table

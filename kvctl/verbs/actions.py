"""What operators did."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from kvctl.verbs import check

if TYPE_CHECKING:
    from kvctl.store.store import Store
    from kvctl.table import Table


def actions(store: Store, *, limit: int = 100) -> Table:
    table = store.table(
        "SELECT * FROM (SELECT * FROM actions ORDER BY ts DESC LIMIT $limit) ORDER BY ts",
        {"limit": check.limit(limit)},
    )
    at = table["columns"].index("args")
    for row in table["rows"]:
        row[at] = json.loads(row[at])
    return table

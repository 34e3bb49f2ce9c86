"""SQL over everything that was collected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvctl.errors import UsageError
from kvctl.verbs import check

if TYPE_CHECKING:
    from kvctl.store.store import Store

TIMEOUT_S_MAX = 60.0


def sql(store: Store, *, query: str, limit: int = 1000, timeout_s: float = 10) -> dict[str, Any]:
    from kvctl.store.query import run

    if not isinstance(query, str):
        raise UsageError(f"query {query!r}: SQL text")
    with store.cursor() as con:
        return run(
            con, query, check.limit(limit), check.seconds("timeout_s", timeout_s, TIMEOUT_S_MAX)
        )

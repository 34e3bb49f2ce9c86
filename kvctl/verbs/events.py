"""The log's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvctl.errors import UsageError
from kvctl.verbs import check
from telemetry import schema

if TYPE_CHECKING:
    from kvctl.store.store import Store
    from kvctl.table import Table


def events(
    store: Store,
    *,
    after_seq: int | None = None,
    before_seq: int | None = None,
    limit: int = 200,
    kind: str | None = None,
    session: str | None = None,
    request: str | None = None,
    engine: str | None = None,
    epoch: str | None = None,
) -> Table:
    wanted = {"kind": kind, "session": session, "request": request, "engine": engine}
    params: dict[str, object] = {key: value for key, value in wanted.items() if value is not None}
    where = [f"{key} = ${key}" for key in params]
    if epoch is None:
        where.append("(engine, epoch) IN (SELECT (engine, epoch) FROM latest)")
    else:
        where.append("epoch = $epoch")
        params["epoch"] = epoch
    for sign, name, bound in ((">", "after_seq", after_seq), ("<", "before_seq", before_seq)):
        if bound is None:
            continue
        if not isinstance(bound, int):
            raise UsageError(f"{name} {bound!r}: the number of a row")
        where.append(f"seq {sign} ${name}")
        params[name] = bound
    params["limit"] = check.limit(limit)
    order = "ASC" if after_seq is not None else "DESC"
    table = store.table(
        "SELECT * FROM (SELECT * FROM events"
        f" WHERE {' AND '.join(where)} ORDER BY ts {order}, seq {order} LIMIT $limit)"
        " ORDER BY ts, seq",
        params,
    )
    if not table["rows"]:
        check.known(store, session=session, request=request)
        if kind is not None and kind not in schema.kinds():
            raise UsageError(f"no kind {kind!r}; there are {', '.join(schema.kinds())}")
    return table

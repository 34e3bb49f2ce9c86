"""Engines, and how well they are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvctl import __version__

if TYPE_CHECKING:
    from kvctl.store.store import Store
    from kvctl.table import Table

Engines = list[dict[str, Any]]

ENGINE = (
    "engine",
    "epoch",
    "address",
    "state",
    "seq",
    "number",
    "rows",
    "messages",
    "lag_ms",
    "dropped",
    "gaps",
    "lost_rows",
    "trust",
    "state_hash",
    "gapless",
    "first_ts",
    "last_ts",
    "problem",
)


def engines(store: Store, *, all_epochs: bool = False) -> Table:
    known, others = _engines(store, all_epochs)
    rows = [[engine.get(name) for name in ENGINE] for engine in known + others]
    return {"columns": list(ENGINE), "rows": rows}


def status(store: Store) -> dict[str, Any]:
    known, others = _engines(store, all_epochs=False)
    listed = known + others
    counts = store.one(
        "SELECT coalesce(sum(rows), 0)::BIGINT AS rows,"
        " coalesce(sum(messages), 0)::BIGINT AS messages,"
        " coalesce(sum(gaps), 0)::BIGINT AS gaps, coalesce(sum(lost_rows), 0)::BIGINT AS lost_rows,"
        " coalesce(sum(dropped), 0)::BIGINT AS dropped,"
        " (SELECT count(*) FROM canary WHERE phase = 'violation') AS violations FROM engines"
    )
    lags = [engine["lag_ms"] for engine in listed if engine["lag_ms"] is not None]
    about = {"pid": None, "started": None, "version": __version__, "problem": ""} | store.about()
    about["problem"] = "; ".join(filter(None, [about["problem"], *(e["problem"] for e in others)]))
    return about | counts | {"lag_ms": max(lags, default=None), "engines": listed}


def _engines(store: Store, all_epochs: bool) -> tuple[Engines, Engines]:
    """Those of the tables, and what else is followed (see `_other`)."""
    known = store.dicts(
        f"SELECT * EXCLUDE (life) FROM {'engines' if all_epochs else 'latest'}"
        " ORDER BY engine, life"
    )
    live = store.live()
    heard = set()
    for engine in known:
        engine |= {"state": "recorded", "lag_ms": None}
        now = live.get(engine["address"])
        if now is not None and now["epoch"] == engine["epoch"]:
            engine |= {"state": now["state"], "lag_ms": now["lag_ms"]}
            heard.add(engine["address"])
    return known, [_other(store, at, now) for at, now in live.items() if at not in heard]


def _other(store: Store, address: str, now: dict[str, Any]) -> dict[str, Any]:
    """An address that is followed and is not the latest of any name: it has said nothing yet, or
    what it says is hidden by another engine of its name."""
    said = store.dicts(
        "SELECT * EXCLUDE (life) FROM engines WHERE address = $address AND epoch = $epoch",
        {"address": address, "epoch": now["epoch"]},
    )
    if not said:
        blank = dict.fromkeys(ENGINE) | {"engine": "", "epoch": "", "problem": ""}
        return blank | {"address": address, "state": "waiting"}
    engine = said[0] | {"state": now["state"], "lag_ms": now["lag_ms"]}
    if now["state"] == "live":  # Else it is the address that a restarted engine had before.
        engine["problem"] = (
            f"two engines are named {engine['engine']!r}: the one at {address} is hidden by the"
            " other; give each a name of its own"
        )
    return engine

"""Engines, and how well they are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvctl import __version__

if TYPE_CHECKING:
    from kvctl.store.store import Store, Table

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
    return {
        "columns": list(ENGINE),
        "rows": [[engine.get(name) for name in ENGINE] for engine in _engines(store, all_epochs)],
    }


def status(store: Store) -> dict[str, Any]:
    listed = _engines(store, all_epochs=False)
    counts = store.one(
        "SELECT coalesce(sum(rows), 0)::BIGINT AS rows,"
        " coalesce(sum(messages), 0)::BIGINT AS messages,"
        " coalesce(sum(gaps), 0)::BIGINT AS gaps, coalesce(sum(lost_rows), 0)::BIGINT AS lost_rows,"
        " coalesce(sum(dropped), 0)::BIGINT AS dropped,"
        " (SELECT count(*) FROM canary WHERE phase = 'violation') AS violations FROM engines"
    )
    lags = [engine["lag_ms"] for engine in listed if engine["lag_ms"] is not None]
    about = {"pid": None, "started": None, "version": __version__, "problem": ""} | store.about()
    return about | counts | {"lag_ms": max(lags, default=None), "engines": listed}


def _engines(store: Store, all_epochs: bool) -> list[dict[str, Any]]:
    known = store.dicts(
        f"SELECT * EXCLUDE (life) FROM {'engines' if all_epochs else 'latest'}"
        " ORDER BY engine, life"
    )
    live = store.live()
    for engine in known:
        now = live.get(engine["address"])
        current = now is not None and now["epoch"] == engine["epoch"]
        engine["state"] = now["state"] if now is not None and current else "recorded"
        engine["lag_ms"] = now["lag_ms"] if now is not None and current else None
    heard = {engine["address"] for engine in known if engine["state"] != "recorded"}
    blank = dict.fromkeys(ENGINE) | {"engine": "", "epoch": "", "state": "waiting", "problem": ""}
    waiting = [blank | {"address": address} for address in live if address not in heard]
    return known + waiting

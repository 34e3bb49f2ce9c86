"""A store filled with rows made by hand: what verbs are asked about."""

from __future__ import annotations

from typing import Any

from helpers.wire import payload

from kvctl.store.database import Database
from kvctl.store.store import Store
from kvctl.store.writer import Owner, Rows, Writer
from telemetry.message import Message


def store_of(*lives: tuple[str, str, list[dict[str, Any]]]) -> Store:
    """lives: (engine, epoch, rows of the log), in the order they were met."""
    database = Database(None)
    writer = Writer(database)
    for number, (engine, epoch, rows) in enumerate(lives):
        message = Message.decode(0, payload(rows, engine=engine, epoch=epoch))
        ts = message.batch["ts"]
        life = {
            "engine": engine,
            "epoch": epoch,
            "life": number,
            "address": f"tcp://127.0.0.1:{number + 1}",
            "seq": rows[-1]["seq"],
            "number": 0,
            "rows": len(rows),
            "messages": 1,
            "dropped": 0,
            "gaps": 0,
            "lost_rows": 0,
            "trust": "exact",
            "state_hash": "0" * 32,
            "gapless": True,
            "first_ts": ts[0].as_py(),
            "last_ts": ts[-1].as_py(),
            "problem": "",
        }
        events = [(Owner(engine, epoch, "exact"), [message.batch])]
        writer.write(Rows(events=events, engines=[life]))
    return Store(database.cursor, lambda: {"mode": "file", "source": "by hand"})

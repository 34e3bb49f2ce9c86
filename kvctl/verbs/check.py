"""Arguments as they come from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvctl.errors import Ambiguous, NotEstablished, UsageError

if TYPE_CHECKING:
    from kvctl.store.store import Store

LIMIT_MAX = 100_000


NAMES = ("engine", "epoch", "session", "request", "kind", "operator", "tier", "hop")


def names(args: dict[str, Any]) -> None:
    """Arguments that name something are text, whatever verb takes them."""
    for name in NAMES:
        if not isinstance(args.get(name, ""), str):
            raise UsageError(f"{name} {args[name]!r}: text")


def limit(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LIMIT_MAX:
        raise UsageError(f"limit {value!r}: a number from 1 to {LIMIT_MAX}")
    return value


def seconds(name: str, value: Any, most: float) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= most:
        raise UsageError(f"{name} {value!r}: seconds, more than 0, at most {most:g}")
    return float(value)


def engine(store: Store, name: str) -> str:
    """Its latest epoch; UsageError when others were heard, but none of that name."""
    latest = _latest(store)
    if name not in latest:
        raise UsageError(f"no engine {name!r}; known: {_names(latest)}")
    return latest[name]


def known(store: Store, **names: str | None) -> None:
    """For an empty answer: UsageError when no row of the log bears one of the names (columns of
    `events`), NotEstablished when the row could be among those that are lost."""
    for column, name in names.items():
        if name is None:
            continue
        found = store.table(f"SELECT 1 FROM events WHERE {column} = $name LIMIT 1", {"name": name})
        if found["rows"]:
            continue
        if store.table("SELECT 1 FROM gaps LIMIT 1")["rows"]:
            raise NotEstablished(f"no {column} {name!r} is known; it may be among the lost rows")
        raise UsageError(f"no {column} {name!r} is known")


def epoch_of(store: Store, name: str | None, session: str | None = None) -> tuple[str, str]:
    """(engine, latest epoch) that is meant; the session helps when the engine is not named."""
    if name is not None:
        return name, engine(store, name)
    latest = _latest(store)
    if len(latest) > 1 and session is not None:
        known(store, session=session)
        has = store.table(
            "SELECT DISTINCT engine FROM events JOIN latest USING (engine, epoch)"
            " WHERE session = $session",
            {"session": session},
        )
        latest = {name: latest[name] for (name,) in has["rows"]} or latest
    if len(latest) != 1:
        what = f"session {session!r}" if session else "this"
        raise Ambiguous(f"{what} could mean several engines, name one: {_names(latest)}")
    return next(iter(latest.items()))


def _latest(store: Store) -> dict[str, str]:
    latest = dict(store.table("SELECT engine, epoch FROM latest")["rows"])
    if not latest:
        raise NotEstablished("no engine has been heard yet")
    return latest


def _names(latest: dict[str, str]) -> str:
    return ", ".join(sorted(latest))

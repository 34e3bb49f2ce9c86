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


def epoch_of(store: Store, engine: str | None, session: str | None = None) -> tuple[str, str]:
    """(engine, latest epoch) that is meant; the session helps when the engine is not named."""
    latest = dict(store.table("SELECT engine, epoch FROM latest")["rows"])
    if engine is not None:
        if engine not in latest:
            raise UsageError(f"no engine {engine!r}; known: {_names(latest)}")
        return engine, latest[engine]
    if len(latest) > 1 and session is not None:
        known = store.table(
            "SELECT engine FROM session_state JOIN latest USING (engine, epoch) WHERE session = $s",
            {"s": session},
        )
        latest = {name: latest[name] for (name,) in known["rows"]} or latest
    if len(latest) != 1:
        what = f"session {session!r}" if session else "this"
        if not latest:
            raise NotEstablished("no engine has been heard yet")
        raise Ambiguous(f"{what} could mean several engines, name one: {_names(latest)}")
    return next(iter(latest.items()))


def _names(latest: dict[str, str]) -> str:
    return ", ".join(sorted(latest)) or "none"

"""Values as people read them, one line each; the same words in tables and on screens.

Names, reasons and details come from requests and engines and are untrusted: `plain` leaves nothing
in them that a terminal would obey.
"""

import datetime
from typing import Any

UNKNOWN = "-"
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")


def plain(value: Any) -> str:
    """One line without control characters, bidirectional overrides or lone surrogates."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def size(count: float) -> str:
    """Bytes, in powers of 1024."""
    for unit in _SIZES:
        if abs(count) < 1024 or unit == _SIZES[-1]:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("unreachable: the last unit always returns")


def span(ns: float) -> str:
    """A duration given in nanoseconds, with two units at most."""
    if ns < 0:
        return "-" + span(-ns)
    if ns < 1e6:
        return f"{ns / 1e3:.0f} µs"
    if ns < 1e9:
        return f"{ns / 1e6:.1f} ms"
    seconds = ns / 1e9
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours < 48 else f"{hours // 24}d"


def rate(fraction: float) -> str:
    return f"{fraction:.0%}"


def clock(ns: int) -> str:
    """Wall-clock nanoseconds as local time of day."""
    when = datetime.datetime.fromtimestamp(ns / 1e9)
    return f"{when:%H:%M:%S}.{when.microsecond // 1000:03}"


def leases(held: list[dict[str, Any]], now_ns: int) -> str:
    """What is pinned where, and for how much longer."""
    return ", ".join(
        f"{plain(each['tier'])} {span(max(0, each['expires'] - now_ns))}" for each in held
    )


def words(name: str) -> str:
    """A reason or outcome from the log (`never_stored`) as words."""
    return plain(name).replace("_", " ")


def human(column: str, value: Any, now_ns: int) -> str:
    """A cell of a table for people. The column's name tells the unit (see kvctl.verbs)."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column == "leases":
        return leases(value, now_ns)
    if column in ("ts", "started", "last_use", "expires") or column.endswith("_ts"):
        return clock(value) if value else UNKNOWN
    if column == "duration" or column.endswith("_ns"):
        return span(value)
    if column.endswith("_ms"):
        return span(value * 1e6)
    if column == "bytes":
        return size(value)
    if column == "bytes_per_s":
        return size(value) + "/s"
    if column == "hit_rate":
        return rate(value)
    if column in ("epoch", "state_hash"):
        return plain(value)[:8]
    if column in ("reason", "last_reason"):
        return words(value)
    return plain(value)

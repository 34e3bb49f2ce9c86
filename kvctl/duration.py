"""Durations as people type them: 90, 90s, 10m, 2h."""

import re

from kvctl.errors import UsageError

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text: str) -> int:
    """Whole seconds, above zero; UsageError otherwise."""
    match = re.fullmatch(r"([0-9]{1,9})([smhd]?)", text.strip())
    if match is None or int(match[1]) == 0:
        raise UsageError(f"{text!r} is not a duration: write for example 90s, 10m or 2h")
    return int(match[1]) * _SECONDS[match[2]]

"""DuckDB values as JSON has them."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any


def plain(value: Any) -> Any:
    """Bytes as hex, decimals as numbers, times as ISO text, what JSON cannot say as null or
    text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case list() | tuple() | set():
            return [plain(item) for item in value]
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case _:
            return str(value)

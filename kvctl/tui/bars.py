"""Bars of blocks: which part of something is where.

The faster the tier, the higher the block: colour is not needed to tell them apart.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from textual.content import Content

TIERS = ("device", "host", "storage", "missing")
GLYPHS = {"device": "▇", "host": "▅", "storage": "▃", "missing": "·"}
STYLES = {"device": "$success", "host": "$primary", "storage": "$warning", "missing": "$error"}


def bar(parts: Sequence[tuple[str, int]], total: int, width: int) -> Content:
    """`parts` as (tier, amount), drawn to scale; what is there at all gets at least one cell."""
    if total <= 0:
        return Content(" " * width)
    cells = _share([amount for _, amount in parts], total, width)
    drawn = [
        (GLYPHS[tier] * count, STYLES[tier])
        for (tier, _), count in zip(parts, cells, strict=True)
        if count
    ]
    drawn.append(("·" * (width - sum(cells)), "dim"))
    return Content.assemble(*drawn)


def residency(session: Mapping[str, Any]) -> list[tuple[str, int]]:
    """A session's pages by the fastest tier that has a copy."""
    parts = [(tier, session[f"fastest_{tier}"]) for tier in ("device", "host", "storage")]
    return [*parts, ("missing", session["pages"] - sum(count for _, count in parts))]


def legend() -> Content:
    return Content("  ").join(
        Content.assemble((GLYPHS[tier], STYLES[tier]), f" {tier}") for tier in TIERS
    )


def _share(amounts: Sequence[int], total: int, width: int) -> list[int]:
    """Whole cells for each amount: largest remainder, one at least for what is not zero."""
    exact = [amount * width / total for amount in amounts]
    cells = [max(1, int(share)) if share else 0 for share in exact]
    target = min(width, round(sum(exact)))
    while sum(cells) > target and max(cells) > 1:
        cells[cells.index(max(cells))] -= 1
    for index in sorted(range(len(cells)), key=lambda i: int(exact[i]) - exact[i]):
        if sum(cells) >= target:
            break
        if cells[index]:
            cells[index] += 1
    return cells

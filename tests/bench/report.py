"""What every bench shares: us and a limit measured in turns in one run, medians, spread, JSON rows.

Machines are shared and their clocks drift, so a ratio is taken in each repetition, between two
measurements that stand next to each other; the row's ratio is the median of those.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Literal

Measure = Callable[[], float]
"""Does it once and says what it cost, or what it reached, in the row's unit."""


@dataclass(frozen=True)
class Goal:
    """At most, or at least, this ratio."""

    sense: Literal["<=", ">="]
    ratio: float

    def met_by(self, ratio: float) -> bool:
        return ratio <= self.ratio if self.sense == "<=" else ratio >= self.ratio

    def __str__(self) -> str:
        return f"{self.sense} {self.ratio:g}"


@dataclass(frozen=True)
class Row:
    """ours and other: medians in `unit`. ratio: ours / other, or other / ours in rows that say
    how many times faster. spread: lower and upper quartile of the ratio (of ours, where there is
    nothing to compare with)."""

    row: str
    ours: float
    other: float | None
    unit: str
    ratio: float | None
    spread: tuple[float, float]
    goal: str | None
    met: bool | None

    def __str__(self) -> str:
        other = "" if self.other is None else f"{self.other:.4g}"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        spread = f"{self.spread[0]:.3g}..{self.spread[1]:.3g}"
        verdict = "" if self.met is None else "met" if self.met else "MISSED"
        return (
            f"{self.row:<62} {self.ours:>10.4g} {other:>10} {self.unit:<9} {ratio:>7} "
            f"{spread:>15}  {self.goal or '':<7} {verdict}"
        )


HEAD = f"{'row':<62} {'ours':>10} {'other':>10} {'unit':<9} {'ratio':>7} {'quartiles':>15}  goal"


def compare(
    row: str,
    unit: str,
    ours: Measure,
    other: Measure,
    *,
    repeat: int,
    goal: Goal | None = None,
    speedup: bool = False,
) -> Row:
    """Measure both in turns, each first every other time. speedup: the ratio is other / ours."""
    pairs = []
    for turn in range(repeat):
        if turn % 2:
            theirs = other()
            pairs.append((ours(), theirs))
        else:
            pairs.append((ours(), other()))
    return rated(row, unit, pairs, goal=goal, speedup=speedup)


def rated(
    row: str,
    unit: str,
    pairs: Sequence[tuple[float, float]],
    *,
    goal: Goal | None = None,
    speedup: bool = False,
) -> Row:
    """A row from (ours, other) of each repetition."""
    ratios = [theirs / ours if speedup else ours / theirs for ours, theirs in pairs]
    ratio = median(ratios)
    return Row(
        row,
        median(ours for ours, _ in pairs),
        median(theirs for _, theirs in pairs),
        unit,
        ratio,
        _quartiles(ratios),
        str(goal) if goal else None,
        goal.met_by(ratio) if goal else None,
    )


def alone(row: str, unit: str, ours: Measure, *, repeat: int) -> Row:
    """A figure without a limit to hold it against."""
    values = [ours() for _ in range(repeat)]
    return Row(row, median(values), None, unit, None, _quartiles(values), None, None)


def per_call(call: Callable[[], object], loops: int) -> float:
    """Seconds that one call takes."""
    started = time.perf_counter()
    for _ in range(loops):
        call()
    return (time.perf_counter() - started) / loops


def timed(call: Callable[[], object]) -> tuple[float, object]:
    """Microseconds of one call, without garbage collection, and what it returned."""
    gc.disable()
    started = time.perf_counter()
    result = call()
    took = time.perf_counter() - started
    gc.enable()
    return 1e6 * took, result


def report(name: str, groups: Sequence[Callable[[], Iterator[Row]]]) -> list[Row]:
    """Run the groups, print each row as it comes, keep them in build/bench/NAME.json."""
    rows, started = [], time.perf_counter()
    print(HEAD, flush=True)
    for group in groups:
        for row in group():
            rows.append(row)
            print(row, flush=True)
    path = Path("build/bench") / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    print(f"{time.perf_counter() - started:.0f} s, kept in {path}")
    return rows


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    if len(values) < 2:
        return (values[0], values[0])
    low, _, high = quantiles(values, n=4, method="inclusive")
    return (low, high)

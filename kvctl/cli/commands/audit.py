"""Have engines check every copy they hold. Fails when one is damaged or nothing was checked."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kvctl.cli.commands.demo import add_workload
from kvctl.cli.opening import opened
from kvctl.cli.settings import Settings
from kvctl.errors import NotEstablished, Refused
from kvctl.exits import Exit
from kvctl.output import narrate, print_json, print_table, records
from kvctl.source import Source
from kvctl.text import plain

TIERS = ("device", "host", "storage")
POLL_PERIOD_S = 0.1
OWN_START_S = 120.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", metavar="NAME", help="only this one")
    parser.add_argument(
        "--inject", choices=TIERS, help="damage one byte there first, to see that it is found"
    )
    parser.add_argument(
        "--run", action="store_true", help="audit an engine of its own with a tiny model"
    )
    add_workload(parser)
    parser.add_argument(
        "--fail-on",
        choices=("violations", "gaps"),
        default="violations",
        help="gaps: also when rows of the log were lost; default: violations",
    )


def run(args: argparse.Namespace, settings: Settings) -> int:
    with _own_run(args.workload) if args.run else opened(settings) as source:
        engines = _engines(source, args.engine)
        if args.inject:
            _inject(source, engines, args.inject)
        answers = {engine: _swept(source, engine, settings.timeout_s) for engine in engines}
        gaps = source.ask("status")["gaps"]
    _print(answers, gaps, settings.output)
    violations = sum(answer["violations"] for answer in answers.values())
    if violations or (args.fail_on == "gaps" and gaps):
        return Exit.FINDINGS
    return Exit.OK


def _engines(source: Source, wanted: str | None) -> list[str]:
    """Engines that answer; NotEstablished when there is none, for then nothing is proven."""
    known = source.ask("status")["engines"]
    live = [e["engine"] for e in known if e["engine"] and e["state"] in ("live", "silent")]
    found = [engine for engine in live if wanted in (None, engine)]
    if not found:
        who = "no engine" if wanted is None else f"no engine {wanted!r}"
        raise NotEstablished(f"{who} is live here, so nothing can be checked")
    return found


def _swept(source: Source, engine: str, timeout_s: float) -> dict[str, Any]:
    """The engine's `canary` answer once its log shows the sweep; the log is the evidence."""
    before = source.ask("canary", engine=engine)["checks"]
    swept = sum(tier["checked"] for tier in source.ask("sweep", engine=engine)["tiers"].values())
    if not swept:
        raise NotEstablished(f"engine {engine!r} holds no copy, so nothing was checked")
    deadline = time.monotonic() + timeout_s
    while (answer := source.ask("canary", engine=engine))["checks"] < before + swept:
        if time.monotonic() > deadline:
            raise NotEstablished(
                f"engine {engine!r} says it checked {swept} copies, but its log does not show it"
            )
        time.sleep(POLL_PERIOD_S)
    return answer


def _print(answers: dict[str, dict[str, Any]], gaps: int, output: str) -> None:
    hops = {
        "columns": ["engine", "hop", "checks", "violations"],
        "rows": [
            [engine, *row] for engine, answer in answers.items() for row in answer["hops"]["rows"]
        ],
    }
    found = [row for answer in answers.values() for row in records(answer["violations_table"])]
    checks, violations, injected = (
        sum(answer[name] for answer in answers.values())
        for name in ("checks", "violations", "injected")
    )
    if output == "json":
        totals = {"checks": checks, "violations": violations, "injected": injected, "gaps": gaps}
        print_json({**totals, "hops": records(hops), "found": found})
    else:
        print_table(hops, output)
    for row in found:
        whose = f"session {row['session']}" if row["session"] else "no session named"
        narrate(
            f"kvctl: damaged at {row['hop']}: {plain(whose)}, {plain(row['detail'])} "
            f"(row {row['seq']} of {plain(row['engine'])})"
        )
    narrate(f"kvctl: {checks} checks, {violations} violations, {injected} injected, {gaps} gaps")


def _inject(source: Source, engines: list[str], tier: str) -> None:
    """Damage a copy of the first session that has one there."""
    for engine in engines:
        for session in records(source.ask("sessions", engine=engine)):
            if session[f"{tier}_pages"]:
                try:
                    source.ask("inject", engine=engine, session=session["session"], hop=tier)
                except Refused:
                    continue  # its pages have moved on meanwhile
                narrate(f"kvctl: damaged one byte of {session['session']!r} in {tier}")
                return
    raise NotEstablished(f"no session has a page in {tier}, so nothing could be damaged there")


@contextmanager
def _own_run(workload: Path) -> Iterator[Source]:
    """A small engine that has served the workload and still answers."""
    import tempfile

    from kvctl.demo.engine import Engine
    from kvctl.demo.server import served
    from kvctl.demo.story import play

    narrate("kvctl: serving a tiny model first")
    with (
        tempfile.TemporaryDirectory(prefix="kvctl-audit-") as home,
        Engine("tiny", workload, lambda event: None) as engine,
        served(engine.wait("hello", OWN_START_S)["address"], Path(home)) as source,
    ):
        play(engine, source)
        yield source

"""Have engines check every copy they hold. Fails when one is damaged or nothing was checked."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from canary import Verdict, judge
from kvctl.cli.commands.demo import add_workload
from kvctl.cli.opening import opened
from kvctl.cli.settings import Settings
from kvctl.errors import NotEstablished, Refused, UsageError
from kvctl.exits import Exit
from kvctl.output import narrate, print_json, print_table
from kvctl.phrase import copy
from kvctl.source import Source
from kvctl.table import records
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
        help="gaps: lost rows of the log are a finding (exit 1) by themselves; otherwise they leave"
        " an audit that found nothing without proof (exit 5); default: violations",
    )


@dataclass(frozen=True)
class Audited:
    """One engine's life so far, after a sweep of every copy it holds."""

    engine: str
    canary: dict[str, Any]
    """The verb's answer (kvctl.verbs)."""
    gaps: int
    verdict: Verdict


def run(args: argparse.Namespace, settings: Settings) -> int:
    with _own_run(args.workload) if args.run else opened(settings) as source:
        if not source.live:
            raise UsageError(f"an audit asks engines, and {source.name} is a recording")
        engines = _engines(source, args.engine)
        if args.inject:
            _inject(source, engines, args.inject)
        audited = [_audit(source, engine, settings.timeout_s) for engine in engines]
    _print(audited, settings.output)
    codes = {each.verdict.exit_code for each in audited}
    if args.fail_on == "gaps" and any(each.gaps for each in audited):
        codes.add(Exit.FINDINGS)
    # What was found counts, whatever else could not be established.
    return next(code for code in (Exit.FINDINGS, Exit.NOT_ESTABLISHED, Exit.OK) if code in codes)


def _engines(source: Source, wanted: str | None) -> list[str]:
    """Engines that answer; NotEstablished when there is none, for then nothing is proven."""
    if wanted is not None:
        return [wanted]
    known = source.ask("status")["engines"]
    live = [e["engine"] for e in known if e["engine"] and e["state"] in ("live", "silent")]
    if not live:
        raise NotEstablished("no engine is live here, so nothing can be checked")
    return list(dict.fromkeys(live))


def _audit(source: Source, engine: str, timeout_s: float) -> Audited:
    """Judged once the engine's log shows the sweep, for the log is the evidence."""
    before = _swept(source.ask("canary", engine=engine))
    said = sum(tier["checked"] for tier in source.ask("sweep", engine=engine)["tiers"].values())
    deadline = time.monotonic() + timeout_s
    while (seen := _swept(answer := source.ask("canary", engine=engine)) - before) < said:
        if time.monotonic() > deadline:
            narrate(f"kvctl: {plain(engine)} says it checked {said} copies; its log shows {seen}")
            break
        time.sleep(POLL_PERIOD_S)
    log = next(e for e in source.ask("status")["engines"] if e["engine"] == engine)
    verdict = judge(
        checked_pages=seen if seen >= said else 0,
        violations=answer["violations"],
        lost_rows=log["lost_rows"],
    )
    return Audited(engine, answer, log["gaps"], verdict)


def _swept(canary: dict[str, Any]) -> int:
    return sum(hop["checks"] for hop in records(canary["hops"]) if hop["hop"] == "sweep")


def _print(audited: list[Audited], output: str) -> None:
    hops = {
        "columns": ["engine", "hop", "checks", "violations"],
        "rows": [[each.engine, *row] for each in audited for row in each.canary["hops"]["rows"]],
    }
    found = [row for each in audited for row in records(each.canary["violations_table"])]
    if output == "json":
        totals = {
            name: sum(each.canary[name] for each in audited)
            for name in ("checks", "violations", "injected")
        }
        totals["gaps"] = sum(each.gaps for each in audited)
        verdicts = [{"engine": each.engine, **asdict(each.verdict)} for each in audited]
        print_json({**totals, "verdicts": verdicts, "hops": records(hops), "found": found})
    else:
        print_table(hops, output)
    for row in found:
        whose = f"session {row['session']!r}" if row["session"] else "no session known"
        narrate(
            f"kvctl: damaged, found by {row['hop']}: {copy(row['detail'])}; {plain(whose)}"
            f" (row {row['seq']} of {plain(row['engine'])})"
        )
    for each in audited:
        narrate(f"kvctl: {plain(each.engine)}: {each.verdict.message}")


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

    from kvctl.demo.child import end_in_order
    from kvctl.demo.engine import Engine
    from kvctl.demo.server import served
    from kvctl.demo.story import play

    narrate("kvctl: serving a tiny model first")
    end_in_order()
    with (
        tempfile.TemporaryDirectory(prefix="kvctl-audit-") as home,
        Engine("tiny", workload, lambda event: None) as engine,
        served(engine.wait("hello", OWN_START_S)["address"], Path(home)) as source,
    ):
        play(engine, source)
        yield source

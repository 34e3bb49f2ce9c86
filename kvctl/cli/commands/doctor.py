"""Is this installation in order, and the server, and what it knows of the engines?"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import platform
from collections.abc import Iterator
from typing import NamedTuple

from kvctl import __kvctl__
from kvctl.cli.opening import opened
from kvctl.cli.settings import Settings
from kvctl.errors import KvctlError
from kvctl.exits import Exit
from kvctl.output import print_table
from kvctl.source import Source
from kvctl.text import span

PACKAGES = ("kvctl", "runtime", "canary", "telemetry")
LIBRARIES = ("pyzmq", "duckdb", "pyarrow", "textual", "rich")
LAG_LIMIT_MS = 1000
STATES = {
    "silent": "silent: not even a heartbeat; it is gone, stuck, or now elsewhere",
    "waiting": "waiting: nothing has been heard from this address yet",
}


class Finding(NamedTuple):
    check: str
    ok: bool
    detail: str


def configure(parser: argparse.ArgumentParser) -> None:
    """Takes no arguments of its own."""


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Exit 1 when something is wrong; 3 when all that is wrong is that no server answers."""
    findings = [*_installation()]
    code = Exit.OK if all(finding.ok for finding in findings) else Exit.FINDINGS
    try:
        with opened(settings) as source:
            known = list(_known(source))
        findings.append(Finding("server", True, source.name))
        findings += known
        if not all(finding.ok for finding in known):
            code = Exit.FINDINGS
    except KvctlError as error:
        findings.append(Finding("server", False, str(error)))
        code = code or error.exit
    rows = [list(finding) for finding in findings]
    print_table({"columns": list(Finding._fields), "rows": rows}, settings.output)
    return code


def _installation() -> Iterator[Finding]:
    yield Finding("python", True, platform.python_version())
    for package in PACKAGES:
        yield mark(package)
    for library in LIBRARIES:
        try:
            yield Finding(library, True, importlib.metadata.version(library))
        except importlib.metadata.PackageNotFoundError:
            yield Finding(library, False, "not installed: pip install kvctl")
    try:
        core = importlib.import_module("runtime._core")
        yield Finding("core", True, core.__version__)
    except ImportError as error:
        yield Finding("core", False, f"the compiled core cannot be loaded: {error}")


def mark(package: str) -> Finding:
    """Whether the package that Python finds under this generic name is ours."""
    try:
        module = importlib.import_module(package)
    except ImportError as error:
        return Finding(package, False, f"cannot be imported: {error}")
    where = module.__file__ or str(list(module.__path__))
    found = getattr(module, "__kvctl__", None)
    if found is None:
        return Finding(
            package,
            False,
            f"{where} is another package of that name and hides ours; move it or use python -P",
        )
    if found != __kvctl__:
        return Finding(package, False, f"{where} is version {found}, kvctl is {__kvctl__}")
    return Finding(package, True, f"{found} {where}")


def _known(source: Source) -> Iterator[Finding]:
    status = source.ask("status")
    if status["version"] != __kvctl__:
        yield Finding(
            "server version", False, f"{status['version']}, this is {__kvctl__}; restart it"
        )
    if status["problem"]:
        yield Finding("server problem", False, status["problem"])
    if not status["engines"]:
        yield Finding("engines", False, "none; kvctl serve --engine ADDRESS")
    for engine in status["engines"]:
        name = engine["engine"] or engine["address"]
        well = engine["state"] not in ("silent", "waiting") and not engine["problem"]
        state = STATES.get(engine["state"], engine["state"])
        yield Finding(f"{name}", well, engine["problem"] or state)
        if not engine["engine"]:
            continue
        lag = engine["lag_ms"]
        if lag is not None:
            yield Finding(f"{name} lag", lag <= LAG_LIMIT_MS, span(lag * 1e6))
        yield Finding(f"{name} drops", not engine["dropped"], f"{engine['dropped']} rows")
        yield Finding(
            f"{name} gaps", not engine["gaps"], f"{engine['gaps']} gaps, {engine['lost_rows']} rows"
        )
        yield Finding(f"{name} state_hash", engine["trust"] == "exact", _agreement(engine))


def _agreement(engine: dict[str, object]) -> str:
    said = {
        "exact": "folding the log gives the engine's own state",
        "after_gap": "rows are missing, the state cannot be proven",
        "mismatch": "folding the log does not give the engine's state; report this",
    }
    return said.get(str(engine["trust"]), str(engine["trust"]))

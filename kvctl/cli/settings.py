"""The options that every verb has. A flag beats an environment variable beats the default."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvctl.context import Context
from kvctl.errors import UsageError
from kvctl.output import FORMATS

PREFIX = "KVCTL_"


@dataclass(frozen=True)
class Settings:
    context: str
    """Names the server to talk to: a plain name, or a directory."""
    file: Path | None
    """A recording to read instead: a closed database, a context's directory, or segments."""
    output: str
    read_only: bool
    timeout_s: float
    """For one answer."""

    def home(self) -> Context:
        """Where the context's server is found."""
        if not self.context:
            return Context.find()
        if os.sep in self.context:
            return Context.find(home=self.context)
        return Context.find(name=self.context)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Before or after the verb; what is not given stays unset, for `resolve` to look elsewhere."""
    group = parser.add_argument_group("everywhere", argument_default=argparse.SUPPRESS)
    group.add_argument(
        "--context", metavar="NAME", help="the server to talk to: a name or a directory"
    )
    group.add_argument("--file", metavar="PATH", help="read a recording instead of asking a server")
    group.add_argument("-o", "--output", choices=FORMATS, help="default: table")
    group.add_argument("--read-only", action="store_true", help="refuse whatever changes a cluster")
    group.add_argument(
        "--timeout", metavar="SECONDS", help="how long an answer may take (default: 10)"
    )


def resolve(given: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> Settings:
    """UsageError names the option and the variable that hold a wrong value."""

    def value(name: str, default: Any, read: Callable[[str], Any]) -> Any:
        if hasattr(given, name):
            source, text = f"--{name.replace('_', '-')}", getattr(given, name)
        elif text := environment.get(PREFIX + name.upper(), ""):
            source = PREFIX + name.upper()
        else:
            return default
        try:
            return text if isinstance(text, bool) else read(text)
        except ValueError as error:
            raise UsageError(f"{source} is {text!r}: {error}") from None

    return Settings(
        context=value("context", "", str),
        file=value("file", None, Path),
        output=value("output", "table", _format),
        read_only=value("read_only", False, _yes),
        timeout_s=value("timeout", 10.0, _seconds),
    )


def _format(text: str) -> str:
    if text not in FORMATS:
        raise ValueError(f"choose one of {', '.join(FORMATS)}")
    return text


def _yes(text: str) -> bool:
    try:
        return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[
            text.lower()
        ]
    except KeyError:
        raise ValueError("write 1 or 0") from None


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise ValueError("give a number of seconds above zero")
    return seconds

"""What one poll brought: the only thing that crosses from the polling thread to the screens."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvctl.errors import KvctlError, TimedOut, Unreachable
from kvctl.source import Source
from kvctl.table import records

Question = tuple[str, Mapping[str, Any]]
"""A verb and its arguments (kvctl.verbs)."""
Answer = Mapping[str, Any]
STATUS = "status"


@dataclass(frozen=True)
class Snapshot:
    now_ns: int
    """Wall clock when the answers came; ages and remaining times count from it."""
    answers: Mapping[str, Answer]
    errors: Mapping[str, KvctlError]
    """By question: what could not be answered. A name is in `answers` or here."""

    @property
    def status(self) -> Answer | None:
        return self.answers.get(STATUS)

    @property
    def problem(self) -> str:
        """Why the source did not answer at all, or ""."""
        for error in self.errors.values():
            if isinstance(error, Unreachable | TimedOut):
                return str(error)
        return ""

    def records(self, name: str) -> list[dict[str, Any]]:
        """A table's rows by column name; none when it was not answered."""
        return records(self.answers[name]) if name in self.answers else []


def take(source: Source, questions: Mapping[str, Question]) -> Snapshot:
    """Ask everything, the status first. Blocks; raises nothing that a source may raise."""
    answers: dict[str, Answer] = {}
    errors: dict[str, KvctlError] = {}
    for name, (verb, args) in {STATUS: (STATUS, {}), **questions}.items():
        try:
            answers[name] = source.ask(verb, **args)
        except KvctlError as error:
            errors[name] = error
            if isinstance(error, Unreachable | TimedOut):
                break
    return Snapshot(time.time_ns(), answers, errors)

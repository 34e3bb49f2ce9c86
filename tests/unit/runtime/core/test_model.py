"""The model keeps its own invariants in every configuration, also where no core can be compared."""

from types import SimpleNamespace
from typing import Any

import pytest
from complete_machine import CompleteMachine
from configurations import observed, owned
from hypothesis import HealthCheck, settings
from hypothesis.stateful import initialize, run_state_machine_as_test
from model import Config
from model.check import check
from model.records import Found, Lock, Outcome, Refused, Reserved


class Alone(CompleteMachine):
    """The model answers for the core as well."""

    def start(self, config: Config, batch: int) -> None:
        super().start(config, batch)
        self.given = 0

    def launch(self, config: Config) -> Any:
        return SimpleNamespace(
            resident=lambda tier, **_: [], state_hash=lambda: "", log=lambda: None
        )

    def both(self, verb: str, *args: Any, model: Any, **options: Any) -> tuple[Any, Any]:
        self.agreed = False
        self.now += 1
        self.model.now = self.now
        self.model.wanted, self.model.evicted, self.model.completed = [], [], []
        try:
            expected = model()
        except Refused:
            return None, None
        finally:
            check(self.model)
        for move in self.model.wanted:
            self.given += 1
            self.ops[self.given] = move
        return self.answer(verb, expected), expected

    def answer(self, verb: str, expected: Any) -> Any:
        self.given += 1
        if isinstance(expected, Reserved):
            runs = [(0, 0, expected.pages)]
            return SimpleNamespace(op=self.given, pages=expected.pages, runs=runs)
        if isinstance(expected, Outcome):
            if expected.lease:
                self.leases[expected.lease] = expected.lease
            return SimpleNamespace(lease=expected.lease or 0)
        if verb == "acquire":
            return SimpleNamespace(receipt=self.given)
        if verb == "restore":
            ready, pending, moves = expected
            return SimpleNamespace(ready=ready, pending=pending, ops=[0] * moves)
        return SimpleNamespace(receipt=0) if isinstance(expected, Found) else expected

    def compare_lock(self, receipt: int, lock: Lock) -> None: ...
    def compare_match(self, answer: Any, found: Found) -> None: ...
    def compare_commit(self, answer: Any, done: dict) -> None: ...
    def compare_reserved(self, answer: Any, reserved: Reserved) -> None: ...
    def compare_outcome(self, answer: Any, expected: Any) -> None: ...
    def fold(self, batch: int) -> None: ...


class Owned(Alone):
    @initialize(config=owned())
    def begin(self, config) -> None:
        self.start(config, 1)
        self.open_sessions()


class Observed(Alone):
    @initialize(config=observed())
    def begin(self, config) -> None:
        self.start(config, 1)
        self.open_sessions()


@pytest.mark.parametrize("machine", [Owned, Observed])
def test_the_model_is_sound(machine) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=60,
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

"""Random commands to a complete core, whatever its configuration, and to the model of it."""

import os
from random import Random

import pytest
from complete_machine import CompleteMachine
from configurations import drawn, observed, owned
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, run_state_machine_as_test
from walks import Walk

SOAK = bool(os.environ.get("KVCTL_SOAK"))
SETTINGS = settings(
    max_examples=500 if SOAK else 80,
    stateful_step_count=120 if SOAK else 60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


class Owned(CompleteMachine):
    @initialize(config=owned(), batch=st.integers(1, 20))
    def begin(self, config, batch) -> None:
        self.start(config, batch)
        self.open_sessions()


class Observed(CompleteMachine):
    @initialize(config=observed(), batch=st.integers(1, 20))
    def begin(self, config, batch) -> None:
        self.start(config, batch)
        self.open_sessions()


@pytest.mark.parametrize("seed", range(3000 if SOAK else 60))
def test_core_and_model_agree_on_a_long_walk(seed) -> None:
    draw = Random(seed)
    walk = Walk(drawn(draw))
    if steps := walk.wander(draw, 300 if SOAK else 120):
        steps = walk.shortest(steps)
        print(walk.config, *steps, sep="\n")
        raise walk.again(steps) or AssertionError("it failed once, and not again")


@pytest.mark.parametrize("machine", [Owned, Observed])
def test_core_and_model_agree(machine) -> None:
    run_state_machine_as_test(machine, settings=SETTINGS)

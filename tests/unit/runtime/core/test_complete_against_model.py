"""Random commands to a complete core, whatever its configuration, and to the model of it."""

import os

import pytest
from comparison import COMPLETE
from complete_machine import CompleteMachine
from configurations import observed, owned
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, run_state_machine_as_test

SOAK = bool(os.environ.get("KVCTL_SOAK"))
SETTINGS = settings(
    max_examples=1200 if SOAK else 300,
    stateful_step_count=120 if SOAK else 80,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

pytestmark = pytest.mark.skipif(not COMPLETE, reason="this core has no components")


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


@pytest.mark.parametrize("machine", [Owned, Observed])
def test_core_and_model_agree(machine) -> None:
    run_state_machine_as_test(machine, settings=SETTINGS)

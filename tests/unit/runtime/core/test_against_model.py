"""Random commands to a core of `full` alone and to a model of it: answers, copies and evictions
agree."""

import os

from agreement import PAGE
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize
from machine import Machine
from model import Config

SOAK = bool(os.environ.get("KVCTL_SOAK"))


class CoreAgainstModel(Machine):
    @initialize(
        device=st.integers(1, 8),
        host=st.integers(0, 8),
        storage=st.integers(0, 12),
        write_through=st.booleans(),
        budget=st.sampled_from([0.25, 0.5, 1.0]),
        batch=st.integers(1, 20),
    )
    def begin(self, device, host, storage, write_through, budget, batch) -> None:
        config = Config(
            PAGE,
            device,
            host,
            storage if host else 0,
            write_through=write_through,
            pin_share=budget,
        )
        self.start(config, batch)
        self.open_sessions()


TestCoreAgainstModel = CoreAgainstModel.TestCase
TestCoreAgainstModel.settings = settings(
    max_examples=500 if SOAK else 60,
    stateful_step_count=120 if SOAK else 60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

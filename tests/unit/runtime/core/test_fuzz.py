"""A few seconds of tests/fuzz in every run of the suite; `make soak` takes ten minutes of it."""

import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
SECONDS = 8


def test_random_calls_over_the_boundary_end_in_answers_or_typed_errors():
    """In a process of its own: it measures memory, and a crash must not take the suite along."""
    seed = random.SystemRandom().randrange(2**31)
    command = ["-m", "tests.fuzz.boundary", "--seconds", str(SECONDS), "--seed", str(seed)]
    fuzzed = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert fuzzed.returncode == 0, f"seed {seed}\n{fuzzed.stdout}\n{fuzzed.stderr[-4000:]}"
    assert f"seed {seed}\n" in fuzzed.stdout

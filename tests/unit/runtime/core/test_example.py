"""The hybrid model's example does what its comments say."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[4] / "examples" / "hybrid.py"


def test_a_fork_resumes_at_a_checkpoint_and_the_next_one_where_the_first_left():
    command = [sys.executable, str(EXAMPLE)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    resumed = [line for line in run.stdout.splitlines() if "resumes" in line]
    assert [line.split(";")[0] for line in resumed] == [
        "planner: resumes at page 0",
        "reviewer: resumes at page 8",
        "planner: resumes at page 13",
    ]

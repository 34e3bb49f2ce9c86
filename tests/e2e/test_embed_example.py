import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "embed.py"


def test_the_example_is_short_and_reuses_what_it_computed():
    assert len(EXAMPLE.read_text().splitlines()) <= 40
    run = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True)
    assert "160 of 224 tokens from the cache" in run.stdout
    assert "'damaged pages': 0" in run.stdout
    assert run.stderr == ""

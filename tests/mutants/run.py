"""Every mutant must turn the random commands red: a test of those tests.

    python -m tests.mutants.run [NAME ...]

Builds each in a scratch copy of the crate under build/mutants, at a low optimisation, and prints a
line for each. Ends with 1 when one survived or does not build, or when the tests are red without
any.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.mutants.mutant import CORE, Mutant, all_mutants

BUILD = CORE.parents[1] / "build" / "mutants"
SCRATCH = BUILD / "core"
TEST = ["cargo", "test", "--quiet", "--release", "--test", "random_commands"]
CASES = 512
"""Of each property; the mutants that are there now need a few dozen."""
SETTINGS = {
    "CARGO_TARGET_DIR": str(BUILD / "target"),
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
    "CARGO_PROFILE_RELEASE_DEBUG": "0",
    "PROPTEST_CASES": str(CASES),
    "PROPTEST_MAX_SHRINK_ITERS": "0",
    "PROPTEST_FAILURE_PERSISTENCE": "off",
}


def cargo(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TEST, *options],
        cwd=SCRATCH,
        env={**os.environ, **SETTINGS},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def verdict() -> tuple[str, str]:
    """green, red or broken (it does not build), and the first thing that was said."""
    built = cargo("--no-run")
    if built.returncode:
        return "broken", built.stdout.strip().splitlines()[0]
    ran = cargo()
    if not ran.returncode:
        return "green", ""
    said = re.search(r"panicked at [^\n]*\n([^\n]*)", ran.stdout)
    return "red", said.group(1) if said else ran.stdout.strip().splitlines()[-1]


def copy_core() -> None:
    shutil.rmtree(SCRATCH, ignore_errors=True)
    shutil.copytree(CORE, SCRATCH, ignore=shutil.ignore_patterns("target"))
    # Times of last change are kept, and what the last run left mutated was built later.
    for source in SCRATCH.rglob("*.rs"):
        source.touch()


def tried(mutant: Mutant) -> tuple[str, str]:
    changed = mutant.sources(SCRATCH)
    before = {file: (SCRATCH / file).read_text() for file in changed}
    write(SCRATCH, changed)
    try:
        return verdict()
    finally:
        write(SCRATCH, before)


def write(core: Path, sources: dict[str, str]) -> None:
    for file, text in sources.items():
        (core / file).write_text(text)


def main(names: list[str]) -> int:
    mutants = [m for m in all_mutants() if not names or m.name in names]
    copy_core()
    colour, said = verdict()
    print(f"{'unchanged':28}    {colour:6} {said}", flush=True)
    survived = int(colour != "green")
    for mutant in mutants:
        started = time.monotonic()
        colour, said = tried(mutant)
        survived += colour != "red"
        took = time.monotonic() - started
        line = f"{mutant.name:28} {mutant.invariant:2} {colour:6} {took:4.0f} s  {said[:110]}"
        print(line, flush=True)
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

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
BUILT = ["cargo", "test", "--release", "--test", "random_commands", "--no-run"]
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


def built() -> str:
    """The program of the tests; "" when it does not build."""
    options = {"cwd": SCRATCH, "env": {**os.environ, **SETTINGS}, "capture_output": True}
    cargo = subprocess.run([*BUILT, "--quiet", "--message-format=json"], text=True, **options)
    found = re.findall(r'"executable":"([^"]*random_commands[^"]*)"', cargo.stdout)
    return found[-1] if found and not cargo.returncode else ""


def verdict() -> tuple[str, str]:
    """green, red or broken (it does not build), and what the first property that fell said."""
    program = built()
    if not program:
        return "broken", "it does not build"
    listed = subprocess.run([program, "--list"], text=True, capture_output=True, check=True).stdout
    names = re.findall(r"^(\w+): test$", listed, re.M)
    running = {name: start(program, name) for name in names}
    try:
        while running:
            ended = [name for name, test in running.items() if test.poll() is not None]
            for name in ended:
                if running.pop(name).returncode:
                    said = re.search(r"panicked at [^\n]*\n([^\n]*)", output_of(name).read_text())
                    return "red", said.group(1) if said else "it crashed"
            time.sleep(0.1)
        return "green", ""
    finally:
        for test in running.values():
            test.kill()
            test.wait()


def start(program: str, name: str) -> subprocess.Popen[bytes]:
    with output_of(name).open("w") as output:
        command = [program, "--exact", name]
        environment = {**os.environ, **SETTINGS}
        return subprocess.Popen(command, env=environment, stdout=output, stderr=output)


def output_of(name: str) -> Path:
    return BUILD / f"{name}.log"


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

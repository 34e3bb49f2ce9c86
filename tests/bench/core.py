"""`make bench-core`: our core beside SGLang's Rust and Python tree cores, in one process.

python -m tests.bench.core [NAME …]      one or more of NAMES

Runs itself again with the Python of the environment that has SGLang (`make peers`); our core is the
extension that stands in this tree.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

from tests.bench.report import report

PEER = Path("build/peers/sglang").absolute()
NAMES = ("footprint", "large", "memory", "hashing", "events", "contexts", "short", "trees")


def main() -> int:
    if Path(sys.prefix) != PEER:
        python = str(PEER / "bin" / "python")
        os.execve(python, [python, "-m", "tests.bench.core", *sys.argv[1:]], _environment())
    names = tuple(sys.argv[1:]) or NAMES
    groups = [importlib.import_module(f"tests.bench.rows.{name}").rows for name in names]
    rows = report("core" if names == NAMES else "core-part", groups)
    return 0 if all(row.met is not False for row in rows) else 1


def _environment() -> dict[str, str]:
    """SGLang's Python core hashes with an extension that is compiled when first used: ninja is the
    environment's, and the result stays there. One thread for torch, as in its scheduler's process
    on such a machine; without warnings about devices that are not here."""
    return os.environ | {
        "PATH": f"{PEER / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "TORCH_EXTENSIONS_DIR": str(PEER / "extensions"),
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "ignore",
    }


if __name__ == "__main__":
    sys.exit(main())

"""`make bench-spine`: four figures against limits measured in the same run.

python -m tests.bench.spine [NAME …]      match, first_token, copy, ingest, core
"""

from __future__ import annotations

import importlib
import os
import sys

from tests.bench.report import report

NAMES = ("match", "first_token", "copy", "ingest", "core")


def main() -> int:
    # As in the demo's engine: torch's threads that wait for work by spinning would take a core from
    # whatever is measured after them.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    names = sys.argv[1:] or NAMES
    groups = [importlib.import_module(f"tests.bench.rows.{name}").rows for name in names]
    rows = report("spine" if names == NAMES else "spine-part", groups)
    return 0 if all(row.met is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

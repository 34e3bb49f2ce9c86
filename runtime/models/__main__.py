"""`python -m runtime.models prepare NAME…`: make models ready before they are needed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from runtime.errors import ModelError
from runtime.models import NAMES, prepare


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m runtime.models")
    parser.add_argument("verb", choices=["prepare"])
    parser.add_argument("name", choices=NAMES, nargs="+")
    parser.add_argument("--texts", type=Path, default=Path("examples/agents"))
    parser.add_argument("--folder", type=Path, help="default: $KVCTL_MODELS, else the user's cache")
    given = parser.parse_args()
    try:
        for name in given.name:
            print(prepare(name, given.texts, given.folder))
    except ModelError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

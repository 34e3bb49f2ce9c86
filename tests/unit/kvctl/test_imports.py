"""Who imports whom, and what a first import costs: from the source, and from fresh processes."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("kvctl", "runtime", "canary", "telemetry")
MAY_IMPORT = {
    "kvctl": {"canary", "telemetry", "runtime._core"},
    "runtime": {"canary", "telemetry", "runtime._core"},
    "canary": {"runtime._core"},
    "telemetry": {"runtime._core"},
}
HEAVY = {"torch", "transformers", "numpy", "textual", "rich", "duckdb", "pyarrow"}


def loaded_by(code: str) -> set[str]:
    """The modules in a fresh interpreter after running `code`."""
    report = "\nimport sys, json; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code + report], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def imports_of(path: Path) -> set[str]:
    """Every module that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_go_down_only(package):
    files = [*(ROOT / package).rglob("*.py")]
    assert files
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in imports_of(path)
        if name.split(".")[0] in set(PACKAGES) - {package}
        and not any(f"{name}.".startswith(f"{may}.") for may in MAY_IMPORT[package])
        # `from runtime import _core` is the same module under another spelling.
        and not name.startswith("runtime._core")
    }
    assert not wrong


@pytest.mark.parametrize("module", [*PACKAGES, "kvctl.cli", "kvctl.tui", "kvctl.demo"])
def test_a_first_import_loads_nothing_heavy(module):
    assert not loaded_by(f"import {module}") & HEAVY


def test_importing_all_of_kvctl_loads_no_torch_and_no_engine_side_module():
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "kvctl").rglob("*.py")
        if path.name not in ("__main__.py", "__init__.py")
    ]
    loaded = loaded_by("\n".join(f"import {module}" for module in modules))
    assert "kvctl.tui.app" in loaded
    engine_side = {name for name in loaded if name.startswith("runtime.")} - {"runtime._core"}
    assert not engine_side
    assert not loaded & {"torch", "transformers"}


@pytest.mark.parametrize("arguments", [["--help"], ["sessions", "--help"], ["tui", "--help"]])
def test_help_needs_no_library(arguments):
    loaded = loaded_by(f"from kvctl.cli import main; assert main({arguments}) == 0")
    assert not loaded & (HEAVY | {"zmq"})


def test_a_verb_loads_no_other_verb():
    loaded = loaded_by("from kvctl.cli import main; main(['version'])")
    commands = {name for name in loaded if name.startswith("kvctl.cli.commands.")}
    assert commands == {"kvctl.cli.commands.version"}


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_bears_the_mark(package):
    code = f"import {package}, kvctl; assert {package}.__kvctl__ == kvctl.__kvctl__"
    assert package in loaded_by(code)

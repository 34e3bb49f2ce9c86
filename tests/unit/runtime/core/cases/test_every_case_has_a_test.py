"""The core's cases are all here, and of the others it is said where they are."""

import ast
import json
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SHARED = [HERE.parents[depth] / "shared" / "cases" for depth in (4, 5)]
"""Within the repository, or beside it."""
OWN = ["tree", "pools", "hybrid", "session"]
PART = ["transfer", "storage", "events", "security"]


def named() -> dict[str, list[str]]:
    """Cases that the tests of this folder name at the start of their docstrings."""
    found: dict[str, list[str]] = {}
    for file in sorted(HERE.glob("test_*.py")):
        for item in ast.walk(ast.parse(file.read_text())):
            if isinstance(item, ast.FunctionDef) and item.name.startswith("test_"):
                case = re.match(r"([a-z]+-\d\d): ", ast.get_docstring(item) or "")
                if case:
                    found.setdefault(case[1], []).append(item.name)
                elif file != Path(__file__):
                    found.setdefault("", []).append(item.name)
    return found


def elsewhere() -> set[str]:
    """Cases of the table in this folder's docstring: "storage-01, -04" are two."""
    doc = ast.get_docstring(ast.parse((HERE / "__init__.py").read_text())) or ""
    found = set()
    for line in doc.splitlines():
        file = ""
        for name, number in re.findall(r"([a-z]*)-(\d\d)\b", line.removeprefix("|").split("|")[0]):
            file = name or file
            found.add(f"{file}-{number}")
    return found


def cases(file: str) -> list[str]:
    folder = next((path for path in SHARED if path.is_dir()), None)
    if folder is None:
        pytest.skip("no shared/cases in the repository or beside it: nothing to compare with")
    lines = (folder / f"{file}.jsonl").read_text().splitlines()
    return [json.loads(line)["case"] for line in lines if line.strip()]


def test_every_test_names_its_case():
    assert named().get("") is None


@pytest.mark.parametrize("file", OWN)
def test_every_case_has_a_test(file):
    assert set(cases(file)) - set(named()) == set()


@pytest.mark.parametrize("file", PART)
def test_every_case_has_a_test_or_a_place(file):
    assert set(cases(file)) - set(named()) - elsewhere() == set()


def test_what_is_elsewhere_is_a_case():
    known = {case for file in OWN + PART for case in cases(file)}
    assert elsewhere() <= known
    assert set(named()) - {""} <= known

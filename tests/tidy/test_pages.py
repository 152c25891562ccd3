"""The pages that say what is defended and what is always true name tests that exist."""

import ast
import re
from functools import cache

import pytest

from ledger.transition import TRANSITIONS
from tests.tidy.rules import ROOT

TABLES = [
    ("security.md", "## Threats"),
    ("invariants.md", "## The rules"),
    ("invariants.md", "## The guards of each step"),
]


@cache
def functions_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(each.name for each in ast.walk(tree) if isinstance(each, functions))


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def rows(name: str, heading: str) -> list[str]:
    """Return the rows of the table under a heading."""
    table = page(name).partition(f"{heading}\n")[2].partition("\n## ")[0]
    return [line for line in table.splitlines() if line.startswith("| ")][2:]


def first_cells(name: str, heading: str) -> list[str]:
    return [row.split(" | ")[0].removeprefix("| ") for row in rows(name, heading)]


@pytest.mark.parametrize(("name", "heading"), TABLES)
def test_every_row_names_a_test(name: str, heading: str):
    assert len(rows(name, heading)) > 20
    assert [row for row in rows(name, heading) if "`tests/" not in row] == []


@pytest.mark.parametrize("name", sorted({name for name, _ in TABLES}))
def test_every_named_test_is_there(name: str):
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", page(name))
    missing = [f"{file}::{test}" for file, test in named if test not in functions_in(file)]
    assert missing == []


def test_every_rule_and_every_step_has_a_row():
    assert first_cells("invariants.md", "## The rules") == [str(n) for n in range(1, 37)]
    steps = first_cells("invariants.md", "## The guards of each step")
    assert list(dict.fromkeys(steps)) == list(dict.fromkeys(one.id for one in TRANSITIONS))

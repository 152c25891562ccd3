"""The threat model names tests that exist."""

import ast
import re

from tests.tidy.rules import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE)


def functions_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {each.name for each in ast.walk(tree) if isinstance(each, functions)}


def test_every_threat_names_a_test():
    table = PAGE.partition("## Threats")[2].partition("## ")[0]
    threats = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(threats) > 20
    assert [threat for threat in threats if "`tests/" not in threat] == []


def test_every_named_test_is_there():
    missing = [f"{file}::{test}" for file, test in NAMED if test not in functions_in(file)]
    assert missing == []

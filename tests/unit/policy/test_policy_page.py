"""The page about policies: its examples run, and it leaves nothing out."""

import re
from pathlib import Path
from typing import Any

import pytest

from tallystick.policy import Policy
from tallystick.policy.lint import LintCode, lint
from tallystick.policy.operators import Operator
from tallystick.policy.terms import RuleType
from tallystick.policy.transformations import TRANSFORMATIONS

PAGE = (Path(__file__).parents[3] / "docs" / "policy.md").read_text(encoding="utf-8")
YAML = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
FIRST, *PARTS = YAML
HEAD = """\
version: "0.2"
id: part
tools: {lookup_order: {risk: read}, issue_refund: {risk: high_risk}}
"""


def test_the_first_example_is_a_policy_with_nothing_to_mend():
    assert lint(Policy.parse(FIRST)) == ()


@pytest.mark.parametrize("part", [part for part in PARTS if not part.startswith(("version", "- "))])
def test_every_part_of_a_policy_is_one(part: str):
    assert lint(Policy.parse(HEAD + part)) == ()


def test_the_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "refund.yaml").write_text(FIRST, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in PYTHON:
        exec(block, names)


@pytest.mark.parametrize("name", [*Operator, *LintCode, *RuleType, *TRANSFORMATIONS], ids=str)
def test_every_word_of_the_language_is_on_the_page(name: str):
    assert f"`{name}`" in PAGE

"""What the library's README shows is what happens."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[3] / "sdk" / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("code", EXAMPLES)
def test_an_example_runs(code: str):
    exec(compile(code, str(README), "exec"), {})

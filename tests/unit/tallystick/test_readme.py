"""What the library's pages show is what happens."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = ("sdk/README.md", "docs/gates.md", "docs/lockfile.md")
EXAMPLES = [
    (page, code)
    for page in PAGES
    for code in re.findall(
        r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL
    )
]


def test_there_are_examples():
    assert {page for page, _ in EXAMPLES} == {*PAGES}


@pytest.mark.parametrize(("page", "code"), EXAMPLES)
def test_an_example_runs(page: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TALLYSTICK_LOCKFILE", str(tmp_path / "tallystick.lock"))
    monkeypatch.setenv("TALLYSTICK_FROZEN", "0")
    exec(compile(code, page, "exec"), {"__name__": "example"})

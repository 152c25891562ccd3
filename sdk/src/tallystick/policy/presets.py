"""Policies to start from: for refunds, mails, payments and the deletion of files.

Each comes with a table of cases that shows what it lets through and what not. They are text, to be
copied and changed: nothing refers to them by name.
"""

from collections.abc import Iterator
from functools import cache
from importlib.resources import files

_CASES = ".cases.yaml"
_POLICY = ".yaml"


@cache
def names() -> tuple[str, ...]:
    """Return the names of all presets, in order."""
    return tuple(sorted(_names()))


def text(name: str) -> str:
    """Return the policy of a preset, as YAML with comments.

    Raises:
        KeyError: There is no preset of that name.
    """
    return _read(name, _POLICY)


def cases(name: str) -> str:
    """Return the table of cases of a preset's policy, as `tallystick.policy.table` reads it.

    Raises:
        KeyError: There is no preset of that name.
    """
    return _read(name, _CASES)


def _names() -> Iterator[str]:
    for file in files("tallystick.policy").joinpath("presets").iterdir():
        if file.name.endswith(_CASES):
            yield file.name.removesuffix(_CASES)


def _read(name: str, suffix: str) -> str:
    if name not in names():
        raise KeyError(name)
    return files("tallystick.policy").joinpath("presets", name + suffix).read_text(encoding="utf-8")

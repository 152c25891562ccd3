"""Paths into JSON values: what a policy reads of arguments and of results.

    total            a member
    order.total      a member of a member
    items[0].price   an item
    items[*].price   of each item: a list
    "a b".c          a name with other characters, as a JSON string
    /items/0/price   the same as a JSON Pointer (RFC 6901), of which the empty one is the whole

A policy takes null for "not there", wherever it stands.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from tallystick.canonical import Json, pointer_split

PATH_CHARS_MAX: Final = 500
STEPS_MAX: Final = 32
FOUND_MAX: Final = 10_000

_STEP: Final = re.compile(
    r"""(?:^|(?!^)\.)(?:(?P<name>[^\s.\[\]"/]++)|(?P<quoted>"(?:[^"\\]|\\.)*+"))"""
    r"""|\[(?:(?P<index>0|[1-9][0-9]{0,8})|\*)\]"""
)
_INDEX: Final = re.compile("0|[1-9][0-9]{0,8}")
_EACH: Final = -1


@dataclass(frozen=True, slots=True)
class Path:
    """A path, read once.

    Args:
        text: As it was written.
        steps: Names, and indexes, which in an object are names too.
    """

    text: str
    steps: tuple[str | int, ...]

    @classmethod
    def parse(cls, text: str) -> "Path":
        """Read a path.

        Raises:
            ValueError: It has another form, or is too long; the message says which.
        """
        if len(text) > PATH_CHARS_MAX:
            raise ValueError(f"a path has at most {PATH_CHARS_MAX} characters")
        steps = _steps(text) if text and not text.startswith("/") else _pointer_steps(text)
        if len(steps) > STEPS_MAX:
            raise ValueError(f"a path has at most {STEPS_MAX} steps")
        return cls(text, steps)

    @property
    def is_dotted(self) -> bool:
        """Whether it is names with dots between them, and nothing else."""
        return ".".join(str(step) for step in self.steps) == self.text != ""

    @property
    def is_name(self) -> bool:
        """Whether it is one name, and nothing else."""
        return self.steps == (self.text,)

    @property
    def has_each(self) -> bool:
        """Whether it asks for a list, of each item of one."""
        return _EACH in self.steps

    def find(self, value: Json) -> Json:
        """Return what is there; null if nothing is.

        A path with `[*]` finds a list, and only if each item has what is asked for: an item without
        a price must not pass unseen below a limit of prices. It finds `FOUND_MAX` values at most.
        """
        for place, step in enumerate(self.steps):
            if step == _EACH:
                found: list[Json] = []
                return found if _find_each(value, self.steps[place:], found) else None
            value = _after(value, step)
        return value


def _after(value: Json, step: str | int) -> Json:
    if isinstance(value, dict):
        return value.get(step if isinstance(step, str) else str(step))
    if isinstance(value, list) and isinstance(step, int):
        return value[step] if step < len(value) else None
    return None


def _find_each(value: Json, steps: tuple[str | int, ...], found: list[Json]) -> bool:
    """Add to a list what the steps find; return whether all of it is there."""
    for place, step in enumerate(steps):
        if step == _EACH:
            rest = steps[place + 1 :]
            return isinstance(value, list) and all(_find_each(item, rest, found) for item in value)
        value = _after(value, step)
    found.append(value)
    return value is not None and len(found) <= FOUND_MAX


def _steps(text: str) -> tuple[str | int, ...]:
    steps: list[str | int] = []
    end = 0
    while end < len(text):
        found = _STEP.match(text, end)
        if found is None:
            raise ValueError(f"not a path, from its character {end + 1} on")
        end = found.end()
        steps.append(_step(found))
    return tuple(steps)


def _step(found: re.Match[str]) -> str | int:
    if found["name"] is not None:
        return found["name"]
    if found["quoted"] is not None:
        # A fault of it is a ValueError, too.
        return str(json.loads(found["quoted"]))
    return _EACH if found["index"] is None else int(found["index"])


def _pointer_steps(text: str) -> tuple[str | int, ...]:
    return tuple(int(token) if _INDEX.fullmatch(token) else token for token in pointer_split(text))

"""Texts that a pattern probably matches: good enough to attack with, since a validator decides."""

import random
import re
from functools import lru_cache
from typing import Any

_REPEATS_MAX = 4
_PLAIN = "aZ0_- é"
_CLASSES = {
    "CATEGORY_DIGIT": "059",
    "CATEGORY_NOT_DIGIT": "aZ-",
    "CATEGORY_WORD": "aZ_9",
    "CATEGORY_NOT_WORD": "- /",
    "CATEGORY_SPACE": " \t",
    "CATEGORY_NOT_SPACE": "aZ0",
}


def sample(pattern: str, chance: random.Random) -> str:
    """Return a text that the pattern matches, where Python reads the pattern and it is simple."""
    parsed = _parsed(pattern)
    text = "a" if parsed is None else "".join(_text(op, chance) for op in parsed)
    around = chance.random()
    return text if around < 0.8 else f"x{text}" if around < 0.9 else f"{text}x"


@lru_cache(maxsize=4096)
def _parsed(pattern: str) -> list[Any] | None:
    try:
        return [*re._parser.parse(pattern)]  # pyright: ignore[reportAttributeAccessIssue]
    except (re.error, OverflowError, RecursionError):
        return None


def _text(op: tuple[Any, Any], chance: random.Random) -> str:
    match str(op[0]), op[1]:
        case "LITERAL", code:
            return chr(code)
        case "NOT_LITERAL", code:
            return chance.choice([char for char in _PLAIN if ord(char) != code])
        case "ANY", _:
            return chance.choice(_PLAIN)
        case "IN", members:
            return _one_of(members, chance)
        case "BRANCH", (_, branches):
            return "".join(_text(each, chance) for each in chance.choice(branches))
        case "SUBPATTERN", (*_, inner):
            return "".join(_text(each, chance) for each in inner)
        case (("MAX_REPEAT" | "MIN_REPEAT"), (least, most, inner)):
            times = chance.randint(least, min(int(most), least + _REPEATS_MAX)) if least < 60 else 0
            return "".join(_text(each, chance) for _ in range(times) for each in inner)
        case _:
            return ""


def _one_of(members: list[Any], chance: random.Random) -> str:
    if str(members[0][0]) == "NEGATE":
        barred = {char for op in members[1:] for char in _range(op)}
        return chance.choice([char for char in _PLAIN + "b1.:/" if char not in barred] or ["~"])
    return chance.choice(_range(chance.choice(members)) or "a")


def _range(op: tuple[Any, Any]) -> str:
    match str(op[0]), op[1]:
        case "RANGE", (low, high):
            middle = (low + high) // 2
            return "".join(
                map(chr, range(low, high + 1) if high - low < 64 else (low, middle, high))
            )
        case "LITERAL", code:
            return chr(code)
        case "CATEGORY", category:
            return _CLASSES.get(str(category), "a")
        case _:
            return ""

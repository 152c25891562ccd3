"""The words in which changes are told: what a place is called, and what a value looks like."""

import json
from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import Final, TypeVar

from tallystick.canonical import INTEGER_MAX, Json, pointer_split
from tallystick.subschema import KEYWORDS, Form

T = TypeVar("T")

_SHOWN_MAX: Final = 5
_VALUE_CHARS_MAX: Final = 60
_ARTICLE: Final = {
    "boolean": "a boolean",
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_ORDER: Final = tuple(_ARTICLE)


def named(pointer: str) -> str:
    """Return what a reader calls the value that the schema at a pointer describes."""
    owner, inner = "the value", ""
    tokens = iter(pointer_split(pointer))
    for keyword in tokens:
        form = KEYWORDS[keyword][0] if keyword in KEYWORDS else None
        name = next(tokens, "") if form in (Form.MAP, Form.LIST) else ""
        match keyword:
            case "properties" | "$defs" | "definitions":
                owner, inner = f"`{name}`", ""
            case "items" | "unevaluatedItems" | "contains":
                owner, inner = f"an item of {owner}", ""
            case "prefixItems":
                owner, inner = f"item {name} of {owner}", ""
            case "additionalProperties" | "unevaluatedProperties":
                owner, inner = f"a further property of {owner}", ""
            case "patternProperties":
                owner, inner = f"a property of {owner} that matches `{name}`", ""
            case "propertyNames":
                owner, inner = f"a property name of {owner}", ""
            case "anyOf" | "oneOf":
                inner = f" (alternative {name})"
            case _:
                pass
    return owner + inner


def quoted(value: Json) -> str:
    """Return a value as JSON, shortened."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= INTEGER_MAX:
        value = int(value)
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):  # deeper, or a longer number, than Python writes
        return "a value too large to show"
    return text if len(text) <= _VALUE_CHARS_MAX else text[: _VALUE_CHARS_MAX - 1] + "…"


def listed(values: Collection[Json], word: str = "or") -> str:
    """Return values as a reader enumerates them, the first few of many."""
    return enumerated(values, quoted, word)


def enumerated(things: Collection[T], name: Callable[[T], str], word: str = "or") -> str:
    """Return things as a reader enumerates them, the first few of many."""
    shown = things if len(things) <= _SHOWN_MAX else list(islice(things, _SHOWN_MAX - 1))
    phrases = [name(each) for each in shown]
    if len(things) > len(phrases):
        phrases.append(f"one of {len(things) - len(phrases)} more")
    *first, last = phrases or ["nothing"]
    return f"{', '.join(first)} {word} {last}" if first else last


def of_types(types: Iterable[str]) -> str:
    """Return types as a reader enumerates them: `a string or null`."""
    ordered = sorted(types, key=_ORDER.index)
    return enumerated(ordered, _ARTICLE.__getitem__)

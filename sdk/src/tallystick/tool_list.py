"""The tools as a model is shown them, in the form of the Chat Completions API.

https://platform.openai.com/docs/guides/function-calling: a name has letters, digits, `_` and `-`,
64 at most. Strict mode takes a part of JSON Schema only, and is asked for only where a schema keeps
to it; what a model sends is held to the whole contract in any case. Pure.
"""

import re
from collections.abc import Iterable
from typing import Final

from tallystick.canonical import Json
from tallystick.subschema import Position, Subschemas

NAME_CHARS_MAX: Final = 64

_ALLOWED: Final = frozenset(
    {
        "$defs",
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "description",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "items",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "multipleOf",
        "pattern",
        "properties",
        "required",
        "title",
        "type",
    }
)
_FORMATS: Final = frozenset(
    {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"}
)


def shown_names(names: Iterable[str]) -> dict[str, str]:
    """Return the name that a model is shown for each tool: without dots, short, and of one tool."""
    shown: dict[str, str] = {}
    for name in sorted(names):
        plain = re.sub("[^A-Za-z0-9_-]", "_", name)[:NAME_CHARS_MAX]
        number, free = 1, plain
        while free in shown.values():
            number += 1
            free = f"{plain[: NAME_CHARS_MAX - len(str(number)) - 1]}_{number}"
        shown[name] = free
    return shown


def function_tool(name: str, description: str, parameters: Json) -> dict[str, Json]:
    """Return one tool of the list.

    Args:
        name: The name that the model is shown.
        description: What it reads of the tool.
        parameters: The schema of the arguments.
    """
    function: dict[str, Json] = {
        "name": name,
        "description": description,
        "parameters": parameters,
    }
    if is_strict(parameters):
        function["strict"] = True
    return {"type": "function", "function": function}


def is_strict(schema: Json) -> bool:
    """Tell whether strict mode takes a schema: each object closed, and all its members required."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or "anyOf" in schema:
        return False
    return all(map(_is_strict, Subschemas(schema)))


def _is_strict(position: Position) -> bool:
    keywords = position.keywords
    if not isinstance(position.schema, dict):
        return position.schema is False and position.pointer.endswith("/additionalProperties")
    if not keywords.keys() <= _ALLOWED or keywords.get("format", "date") not in _FORMATS:
        return False
    types = keywords.get("type")
    if "object" not in (types if isinstance(types, list) else [types]):
        return "properties" not in keywords
    properties, required = keywords.get("properties", {}), keywords.get("required", [])
    return (
        isinstance(properties, dict)
        and isinstance(required, list)
        and keywords.get("additionalProperties") is False
        and set(map(str, required)) == properties.keys()
    )

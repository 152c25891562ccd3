"""The list that a model is shown: names that its provider takes, and strict where it can be."""

from typing import Any

import pytest

from tallystick.tool_list import NAME_CHARS_MAX, function_tool, is_strict, shown_names

TEXT = {"type": "string"}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def test_names_lose_their_dots_and_stay_apart():
    shown = shown_names(["b.get", "b_get", "b-get", "a" * 200, "a" * 199])
    assert (shown["b.get"], shown["b_get"], shown["b-get"]) == ("b_get", "b_get_2", "b-get")
    assert len(set(shown.values())) == 5
    assert all(len(each) <= NAME_CHARS_MAX for each in shown.values())
    assert shown == shown_names(reversed([*shown]))


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (closed(), True),
        (closed(q=TEXT), True),
        (closed(q={"type": ["string", "null"], "pattern": "^a$", "description": "Words."}), True),
        (closed(at={**TEXT, "format": "date-time"}), True),
        (closed(line=closed(sku=TEXT), lines={"type": "array", "items": closed(n=TEXT)}), True),
        (closed(q={"anyOf": [TEXT, {"type": "null"}]}), True),
        ({**closed(q={"$ref": "#/$defs/q"}), "$defs": {"q": closed(x=TEXT)}}, True),
        # what strict mode refuses
        ({**closed(q=TEXT), "required": []}, False),
        ({**closed(q=TEXT), "additionalProperties": True}, False),
        (closed(q={**TEXT, "minLength": 3}), False),
        (closed(q={**TEXT, "default": "x"}), False),
        (closed(q={**TEXT, "x-sensitive": True}), False),
        (closed(q={**TEXT, "format": "uri"}), False),
        (closed(map={"type": "object", "additionalProperties": TEXT}), False),
        (closed(line={"type": "object", "properties": {"sku": TEXT}}), False),
        (closed(line={"properties": {"sku": TEXT}}), False),
        ({"anyOf": [closed(q=TEXT)], "type": "object"}, False),
        (closed(q=True), False),
        (True, False),
    ],
)
def test_strict_mode_is_asked_for_where_a_schema_keeps_to_it(schema: Any, strict: bool):
    assert is_strict(schema) is strict
    tool: Any = function_tool("search", "Search.", schema)
    assert tool["type"] == "function"
    assert tool["function"].get("strict", False) is strict
    assert (tool["function"]["name"], tool["function"]["parameters"]) == ("search", schema)

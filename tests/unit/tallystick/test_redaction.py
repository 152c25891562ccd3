"""Sensitive values are replaced wherever any schema that applies to them says so."""

from typing import Any

import pytest

from tallystick.schema import DRAFT_07, has_sensitive, redact

SECRET: Any = {"x-sensitive": True}
GONE: Any = {"x-redacted": True}
TEXT: Any = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "value", "redacted"),
    [
        (SECRET, "s", GONE),
        (SECRET, {"a": ["s"]}, GONE),
        ({"properties": {"a": SECRET}}, {"a": "s", "b": 1}, {"a": GONE, "b": 1}),
        ({"properties": {"a": SECRET}}, {"a": None}, {"a": GONE}),
        ({"properties": {"a/b~": SECRET}}, {"a/b~": "s"}, {"a/b~": GONE}),
        ({"properties": {"a": {"properties": {"b": SECRET}}}}, {"a": {"b": 1}}, {"a": {"b": GONE}}),
        ({"patternProperties": {"^a": SECRET}}, {"ab": "s", "b": 1}, {"ab": GONE, "b": 1}),
        (
            {"properties": {"a": {}}, "additionalProperties": SECRET},
            {"a": 1, "b": "s"},
            {"a": 1, "b": GONE},
        ),
        (
            {"patternProperties": {"^a": {}}, "additionalProperties": SECRET},
            {"a": 1, "b": "s"},
            {"a": 1, "b": GONE},
        ),
        (
            {"properties": {"b": {}}, "unevaluatedProperties": SECRET},
            {"a": "s", "b": 1},
            {"a": GONE, "b": 1},
        ),
        ({"prefixItems": [{}], "unevaluatedItems": SECRET}, [1, "s"], [1, GONE]),
        ({"items": SECRET}, ["s", "t"], [GONE, GONE]),
        ({"prefixItems": [{}, SECRET]}, [1, "s", 2], [1, GONE, 2]),
        ({"prefixItems": [{}], "items": SECRET}, [1, "s", "t"], [1, GONE, GONE]),
        ({"contains": SECRET}, ["s"], [GONE]),
        # draft-07
        ({"items": [{}, SECRET], "additionalItems": TEXT}, [1, "s", 2], [1, GONE, 2]),
        ({"items": [{}], "additionalItems": SECRET}, [1, "s"], [1, GONE]),
        ({"dependencies": {"a": {"properties": {"b": SECRET}}}}, {"b": "s"}, {"b": GONE}),
        ({"definitions": {"a": {"$id": "#k"} | SECRET}, "items": {"$ref": "#k"}}, ["s"], [GONE]),
        # One of several schemas for the same value is enough.
        *[
            ({keyword: [TEXT, {"properties": {"a": SECRET}}]}, {"a": "s"}, {"a": GONE})
            for keyword in ("allOf", "anyOf", "oneOf")
        ],
        *[
            ({keyword: {"properties": {"a": SECRET}}}, {"a": "s"}, {"a": GONE})
            for keyword in ("if", "then", "else", "not")
        ],
        ({"dependentSchemas": {"a": {"properties": {"b": SECRET}}}}, {"b": "s"}, {"b": GONE}),
        ({"properties": {"a": {}}, "patternProperties": {"a": SECRET}}, {"a": "s"}, {"a": GONE}),
        # Behind a reference, and beside one.
        ({"$defs": {"k/~%": SECRET}, "items": {"$ref": "#/$defs/k~1~0%25"}}, ["s"], [GONE]),
        ({"$defs": {"k": {"$anchor": "n"} | SECRET}, "items": {"$ref": "#n"}}, ["s"], [GONE]),
        (
            {"$defs": {"k": {"$dynamicAnchor": "n"} | SECRET}, "items": {"$dynamicRef": "#n"}},
            ["s"],
            [GONE],
        ),
        ({"$defs": {"k": TEXT}, "items": {"$ref": "#/$defs/k"} | SECRET}, ["s"], [GONE]),
        (
            {
                "items": {"$id": "k", "$defs": {"a": SECRET}, "$ref": "#/$defs/a"},
                "$defs": {"a": {}},
            },
            ["s"],
            [GONE],
        ),
        # In a schema that refers to itself, at any depth; and in one that does so for ever.
        (
            {"properties": {"a": SECRET, "next": {"$ref": "#"}}},
            {"next": {"next": {"a": "s"}}},
            {"next": {"next": {"a": GONE}}},
        ),
        ({"$ref": "#", "properties": {"a": SECRET}}, {"a": "s"}, {"a": GONE}),
        # A text that holds something sensitive.
        ({"contentSchema": {"properties": {"a": SECRET}}}, '{"a": "s"}', GONE),
        # What only looks like a mark.
        ({"properties": {"x-sensitive": {"const": True}}}, {"x-sensitive": True}, "same"),
        ({"properties": {"a": {"x-sensitive": False}}}, {"a": 1}, "same"),
        ({"properties": {"a": {"const": SECRET}}}, {"a": SECRET}, "same"),
        ({"properties": {"a": {"default": SECRET}}}, {"a": 1}, "same"),
        ({"$defs": {"a": SECRET}}, {"a": 1}, "same"),
        ({"properties": {"a": SECRET}}, {"b": {"a": 1}}, "same"),
        ({"properties": {"a": SECRET}}, ["a"], "same"),
        (True, {"a": 1}, "same"),
    ],
)
def test_redaction(schema, value, redacted):
    assert redact(value, schema) == (value if redacted == "same" else redacted)


def test_redaction_leaves_the_value_alone():
    value: Any = {"a": ["s"]}
    redact(value, {"properties": {"a": {"items": SECRET}}})

    assert value == {"a": ["s"]}


@pytest.mark.parametrize(
    ("schema", "marked"),
    [
        (SECRET, True),
        ({"$schema": DRAFT_07, "items": [{"dependencies": {"a": SECRET}}]}, True),
        ({"$defs": {"a": SECRET}}, True),
        ({"enum": [SECRET]}, False),
        ({"properties": {"x-sensitive": TEXT}}, False),
        (False, False),
    ],
)
def test_schema_is_known_to_mark_something(schema, marked):
    assert has_sensitive(schema) is marked


def test_pattern_that_cannot_run_hides_rather_than_shows():
    assert redact({"b": "s"}, {"patternProperties": {"(?=a)": SECRET}}) == {"b": GONE}


def test_deep_values_and_many_alternatives_take_reasonable_time():
    schema: Any = {
        "anyOf": [{"additionalProperties": {"$ref": "#"}}] * 50,
        "properties": {"a": SECRET},
    }
    value: Any = {"a": "s"}
    for _ in range(100):
        value = {"b": value}

    shown: Any = redact(value, schema)
    for _ in range(100):
        shown = shown["b"]
    assert shown == {"a": GONE}


def test_schemas_of_texts_in_texts_are_read_once_each():
    schema: Any = {}
    for _ in range(60):
        schema = {"contentSchema": schema}
    assert not has_sensitive(schema)

    schema = SECRET
    for _ in range(60):
        schema = {"contentSchema": schema}
    assert redact({"a": "s", "b": 1}, {"properties": {"a": schema}}) == {"a": GONE, "b": 1}


def test_what_costs_too_much_to_look_through_is_hidden_rather_than_shown():
    alternatives = [{"minimum": number} for number in range(9_000)]
    schema: Any = {"properties": {"list": {"items": {"anyOf": alternatives}}, "key": SECRET}}
    value: Any = {"key": "s", "list": [1] * 100_000}
    redacted = redact(value, schema)

    assert isinstance(redacted, dict)
    assert isinstance(redacted["list"], list)
    assert redacted["key"] == GONE
    assert (redacted["list"][0], redacted["list"][-1]) == (1, GONE)

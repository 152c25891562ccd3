"""What `unevaluatedProperties` and `unevaluatedItems` leave to be said, as the validator has it."""

from itertools import product
from typing import Any

import pytest

from tallystick.canonical import Json
from tallystick.schema import Validator
from tests.unit.tallystick.compatibility.asked import holds, obstacle, rules, witness

A = {"properties": {"a": True}}
B = {"properties": {"b": {"const": 0}}}
OBJECTS: list[Json] = [
    {name: value for name, value in zip("abcx", values, strict=True) if value is not ...}
    for values in product((..., 0, "x"), repeat=4)
]
ARRAYS: list[Json] = [list(items) for n in range(4) for items in product((0, "x"), repeat=n)]
CLOSED = {"unevaluatedProperties": False}
ENDED = {"unevaluatedItems": False}


@pytest.mark.parametrize(
    "schema",
    [
        A,
        {"allOf": [A, B]},
        {"anyOf": [A, B]},
        {"oneOf": [A, {**B, "required": ["b"]}]},
        {"not": A},
        {"not": {"not": A}},
        {"if": {"required": ["b"]}, "then": B, "else": A},
        {"if": {**B, "required": ["b"]}, "then": A},
        {"if": A},
        {"then": A},
        {"dependentSchemas": {"a": {"properties": {"a": True, "c": True}}}},
        {"patternProperties": {"^[ab]$": True}},
        {"anyOf": [{"patternProperties": {"^[ab]$": {"const": 0}}}, A]},
        {
            "anyOf": [
                {"patternProperties": {"a": True}, "required": ["c"]},
                {"patternProperties": {"c": True}},
            ]
        },
        {"additionalProperties": {"const": 0}},
        {"anyOf": [{"additionalProperties": {"const": 0}}, A]},
        {"allOf": [{"unevaluatedProperties": {"const": 0}}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {**A, "allOf": [{"$ref": "#/$defs/b"}]}, "b": B}},
        {"items": {**A, "additionalProperties": False}},
    ],
)
@pytest.mark.parametrize("left", [CLOSED, {"unevaluatedProperties": {"type": "string"}}])
def test_properties_that_nothing_beside_has_evaluated(schema: Any, left: Any):
    agrees({**schema, **left}, OBJECTS)


@pytest.mark.parametrize(
    "schema",
    [
        {"prefixItems": [True]},
        {"prefixItems": [True], "allOf": [{"prefixItems": [True, {"const": 0}]}]},
        {"items": {"const": 0}},
        {"contains": {"const": 0}},
        {"contains": {"const": 0}, "minContains": 0},
        {"anyOf": [{"contains": {"const": 0}}, {"prefixItems": [{"const": "x"}]}]},
        {"anyOf": [{"items": {"const": 0}}, {"maxItems": 2}]},
        {"if": {"prefixItems": [{"const": 0}]}, "then": {"prefixItems": [True, True]}},
        {"allOf": [{"unevaluatedItems": {"const": 0}}]},
        {"not": {"contains": {"const": 1}}},
        {"dependentSchemas": {"a": {"items": True}}},
    ],
)
@pytest.mark.parametrize("left", [ENDED, {"unevaluatedItems": {"type": "string"}}])
def test_items_that_nothing_beside_has_evaluated(schema: Any, left: Any):
    agrees({**schema, **left}, ARRAYS)


def agrees(schema: Json, values: list[Json]) -> None:
    valid = Validator.of(schema)
    for value in values:
        assert holds(schema, value) is valid.is_valid(value), value


def test_what_is_unevaluated_is_reasoned_about():
    base = {"type": "object", "anyOf": [A, B]}

    assert rules({**base, **CLOSED}, {"propertyNames": {"enum": ["a", "b"]}})
    assert witness(base, {**base, **CLOSED}) == {"b": {}}
    assert rules({"type": "array", "contains": {"const": 0}, **ENDED}, {"items": {"const": 0}})


def test_too_many_conditional_patterns_are_not_understood():
    branches = [{"patternProperties": {f"^{name}": True}, "required": [name]} for name in "abcdefg"]
    old = {"type": "object", "anyOf": branches}

    stopped = obstacle({**old, **CLOSED, "minProperties": 8}, {"maxProperties": 9})

    assert stopped.keyword == "unevaluatedProperties"
    assert stopped.reason == "it depends on too many branches"

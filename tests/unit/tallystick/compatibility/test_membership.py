"""Whether a value is in a node: as the validator has it, or not known."""

from typing import Any

import pytest

from tallystick.canonical import Json
from tallystick.compatibility.algebra.membership import (
    Known,
    any_known,
    every,
    exactly_one,
    opposite,
)
from tallystick.compatibility.budget import BudgetSpent
from tallystick.schema import Validator
from tests.unit.tallystick.compatibility.asked import holds

OPAQUE = {"$dynamicRef": "#nowhere"}


VALUES: list[Json] = [
    *(None, True, False, 0, 1, 2.5, -3, 1e-9, "", "a", "ab", "é", "\U0001f600"),
    *([], [1], [1, 1.0], [1, True], ["a", None], [[], []], [0, 1, 2, 3]),
    *({}, {"a": 1}, {"a": "x"}, {"b": None}, {"a": 1, "ab": 2}, {"a": 1, "b": 2, "c": 3}),
]


@pytest.mark.parametrize(
    "schema",
    [
        *(True, False, {}, {"type": "integer"}, {"type": ["null", "number"]}),
        *({"enum": [1, "a", [1]]}, {"const": {"a": 1.0}}, {"const": False}),
        *({"minimum": 1}, {"exclusiveMinimum": 1}, {"maximum": 1}, {"exclusiveMaximum": 1}),
        *({"multipleOf": 0.5}, {"multipleOf": 1e-9}, {"not": {"multipleOf": 1}}),
        *({"minLength": 1}, {"maxLength": 1}, {"pattern": "^a"}, {"pattern": "b?$"}),
        *({"minItems": 2}, {"maxItems": 1}, {"uniqueItems": True}, {"uniqueItems": False}),
        *({"prefixItems": [{"const": 1}, False]}, {"items": {"type": "integer"}}),
        {"prefixItems": [True], "items": {"type": "null"}},
        *({"contains": {"const": 1}}, {"contains": {"const": 1}, "maxContains": 1}),
        *({"contains": {}, "minContains": 2}, {"contains": {"const": 1}, "minContains": 0}),
        *({"minContains": 9}, {"minProperties": 2}, {"maxProperties": 1}, {"required": ["a"]}),
        *({"properties": {"a": {"const": 1}}}, {"patternProperties": {"^a": {"minimum": 2}}}),
        {"properties": {"a": True}, "patternProperties": {"b": {}}, "additionalProperties": False},
        *({"propertyNames": {"maxLength": 1}}, {"propertyNames": {"pattern": "a"}}),
        *({"dependentRequired": {"a": ["b"]}}, {"dependentSchemas": {"a": {"minProperties": 2}}}),
        *({"anyOf": [{"type": "null"}, {"minimum": 1}]}, {"oneOf": [{}, {"type": "string"}]}),
        {"oneOf": [{"minimum": 1}, {"minimum": 1}]},
        *(
            {"if": {"type": "array"}, "then": {"minItems": 1}},
            {"if": {"minimum": 1}, "else": False},
        ),
        *({"then": False}, {"else": False}, {"if": False}),
    ],
)
def test_a_value_is_in_a_node_where_the_validator_takes_it(schema: Json):
    valid = Validator.of(schema)

    for value in VALUES:
        assert holds(schema, value) is valid.is_valid(value), value


@pytest.mark.parametrize(
    ("schema", "value", "known"),
    [
        (OPAQUE, 1, None),
        ({"not": OPAQUE}, 1, None),
        ({"allOf": [OPAQUE, {"type": "string"}]}, 1, False),
        ({"allOf": [OPAQUE, {"type": "integer"}]}, 1, None),
        ({"anyOf": [OPAQUE, {"type": "integer"}]}, 1, True),
        ({"anyOf": [OPAQUE, {"type": "string"}]}, 1, None),
        ({"oneOf": [OPAQUE, True, True]}, 1, False),
        ({"oneOf": [OPAQUE, True]}, 1, None),
        ({"items": OPAQUE}, [], True),
        ({"items": OPAQUE}, [1], None),
        ({"contains": OPAQUE, "minContains": 2}, [1], False),
        ({"contains": OPAQUE, "minContains": 0, "maxContains": 1}, [1], True),
        ({"properties": {"a": OPAQUE}}, {"b": 1}, True),
    ],
)
def test_what_is_not_understood_is_not_known_where_it_matters(
    schema: Json, value: Json, known: Known
):
    assert holds(schema, value) is known


def test_three_valued_answers():
    assert [opposite(each) for each in (True, False, None)] == [False, True, None]
    assert every([]) is True
    assert every([True, None, False]) is False
    assert every([True, None]) is None
    assert any_known([]) is False
    assert any_known([False, None, True]) is True
    assert any_known([False, None]) is None
    assert exactly_one([True, True, None]) is False
    assert exactly_one([True, None]) is None
    assert exactly_one([True, False]) is True


def test_a_value_nested_too_deeply_is_not_known():
    schema = {"$ref": "#/$defs/list", "$defs": {"list": {"items": {"$ref": "#/$defs/list"}}}}
    value: Any = 0
    for _ in range(300):
        value = [value]

    assert holds(schema, value) is None


def test_each_node_and_value_is_paid_for():
    with pytest.raises(BudgetSpent):
        holds({"items": {"type": "integer"}}, [*range(1_000)], steps=500)

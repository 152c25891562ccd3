"""Objects: required and forbidden properties, rules by name, and debts among them."""

from typing import Any

import pytest

from tests.unit.tallystick.compatibility.asked import obstacle, rules, witness

OBJECT: dict[str, Any] = {"type": "object"}
TEXT = {"type": "string"}
INTEGER = {"type": "integer"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OBJECT | {"required": ["a"]}, {"minProperties": 1}),
        (OBJECT | {"required": ["a"], "maxProperties": 0}, False),
        (OBJECT | {"minProperties": 2, "maxProperties": 1}, False),
    ],
)
def test_more_properties_are_required_than_there_may_be(old: Any, new: Any):
    assert rules(old, new) == {"maxProperties"}


def test_a_property_that_is_required_and_forbidden():
    old = {**OBJECT, "allOf": [{"not": {"required": ["a"]}}, {"not": {"properties": {"a": TEXT}}}]}

    assert rules(old, False) == {"required"}


def test_a_required_property_whose_name_is_not_allowed():
    assert rules(OBJECT | {"required": ["abc"], "propertyNames": {"maxLength": 2}}, False) == {
        "propertyNames"
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OBJECT | {"properties": {"a": INTEGER}}, {"properties": {"a": {"type": "number"}}}),
        (OBJECT | {"required": ["a", "b"]}, {"required": ["a"]}),
        (OBJECT | {"properties": {"a": False}}, {"not": {"required": ["a"]}}),
        (OBJECT | {"patternProperties": {"^a": INTEGER}}, {"properties": {"ab": INTEGER}}),
        (OBJECT | {"patternProperties": {"": INTEGER}}, {"additionalProperties": INTEGER}),
        (OBJECT | {"additionalProperties": INTEGER}, {"additionalProperties": {"type": "number"}}),
        (
            OBJECT | {"patternProperties": {"^a": INTEGER}, "additionalProperties": False},
            {"propertyNames": {"pattern": "^a"}},
        ),
        (OBJECT | {"propertyNames": {"enum": ["a", "b"]}}, {"maxProperties": 2}),
        (OBJECT | {"propertyNames": False}, {"maxProperties": 0}),
        (OBJECT | {"propertyNames": {"maxLength": 2}}, {"propertyNames": {"maxLength": 3}}),
        (OBJECT | {"dependentRequired": {"a": ["b"]}, "required": ["a"]}, {"required": ["b"]}),
        (
            OBJECT | {"dependentSchemas": {"a": {"properties": {"b": INTEGER}}}, "required": ["a"]},
            {"properties": {"b": INTEGER}},
        ),
        (
            OBJECT | {"properties": {"a": True}, "additionalProperties": False, "minProperties": 1},
            {"required": ["a"]},
        ),
        (
            OBJECT | {"maxProperties": 1, "required": ["a"]},
            {"properties": {"a": True}, "additionalProperties": False},
        ),
    ],
)
def test_no_object_is_left(old: Any, new: Any):
    assert rules(old, new)


def test_no_property_can_have_a_value_as_asked():
    assert "properties" in rules(
        OBJECT | {"additionalProperties": INTEGER}, {"additionalProperties": {"type": "number"}}
    )


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        (OBJECT, {"required": ["a"]}, {}),
        (
            OBJECT | {"required": ["a"], "maxProperties": 1},
            {"additionalProperties": TEXT},
            {"a": {}},
        ),
        (OBJECT | {"properties": {"a": TEXT}}, {"properties": {"a": {"minLength": 1}}}, {"a": ""}),
        (OBJECT | {"additionalProperties": TEXT}, {"maxProperties": 0}, {"a": ""}),
        (
            OBJECT | {"patternProperties": {"^x": TEXT}},
            {"patternProperties": {"^x": {"minLength": 1}}},
            {"x": ""},
        ),
        (
            OBJECT | {"propertyNames": {"const": "b"}, "minProperties": 1},
            {"properties": {"b": False}},
            {"b": {}},
        ),
        (
            OBJECT | {"additionalProperties": {"const": 0}, "maxProperties": 1},
            {"properties": {"a": True}, "additionalProperties": False},
            {"b": 0},
        ),
        (
            OBJECT | {"properties": {"a": {"const": 0}}},
            {"dependentRequired": {"a": ["b"]}},
            {"a": 0},
        ),
        (
            OBJECT | {"additionalProperties": {"const": 0}},
            {"maxProperties": 2},
            {"a": 0, "b": 0, "c": 0},
        ),
    ],
)
def test_an_object_is_found(old: Any, new: Any, value: dict[str, Any]):
    assert witness(old, new) == value


SHORT = {"propertyNames": {"maxLength": 3}}
WITH_B = {"propertyNames": {"pattern": "^b"}}
NUMBERED = {"additionalProperties": INTEGER}


@pytest.mark.parametrize(
    "broken", [[SHORT, WITH_B], [WITH_B, SHORT], [SHORT, NUMBERED], [NUMBERED, SHORT]]
)
def test_one_property_pays_several_debts(broken: list[Any]):
    value = witness(OBJECT | {"maxProperties": 1}, {"anyOf": broken})

    assert isinstance(value, dict)
    assert [len(name) > 3 for name in value] == [True]


def test_an_object_with_so_many_properties_is_not_made():
    stopped = obstacle(OBJECT | {"minProperties": 5_000}, {"minProperties": 5_001})

    assert (stopped.keyword, stopped.reason) == ("minProperties", "so many properties are not made")

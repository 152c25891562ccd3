"""What a producer writes that sends only what a schema declares."""

from typing import Any

import pytest

from tallystick.compatibility.forms.producer import close
from tallystick.schema import Validator


def an_object(**properties: Any) -> Any:
    return {"type": "object", "properties": properties}


def tagged(kind: str, **properties: Any) -> Any:
    return {**an_object(kind={"const": kind}, **properties), "required": ["kind"]}


A, B = an_object(a={}), an_object(b={})


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (A, {**A, "additionalProperties": False}),
        # also if what it declares is that there are none
        ({"properties": {}}, {"properties": {}, "additionalProperties": False}),
        ({"items": A}, {"items": {**A, "additionalProperties": False}}),
        ({"prefixItems": [A]}, {"prefixItems": [{**A, "additionalProperties": False}]}),
        # once around a group, not on its branches
        (
            {"anyOf": [A, {"type": "null"}]},
            {"anyOf": [A, {"type": "null"}], "unevaluatedProperties": False},
        ),
        ({"oneOf": [A, B]}, {"oneOf": [A, B], "unevaluatedProperties": False}),
        (
            {**A, "anyOf": [{"required": ["a"]}, {"minProperties": 2}]},
            {
                **A,
                "anyOf": [{"required": ["a"]}, {"minProperties": 2}],
                "additionalProperties": False,
            },
        ),
        # a map is left alone, and so are its values; what is declared beside it is not
        (
            {"properties": {"a": B}, "additionalProperties": A},
            {
                "properties": {"a": {**B, "additionalProperties": False}},
                "additionalProperties": A,
            },
        ),
        # a definition that is a group here and part of one there
        (
            {
                "properties": {
                    "alone": {"$ref": "#/$defs/d"},
                    "part": {"allOf": [{"$ref": "#/$defs/d"}, B]},
                },
                "$defs": {"d": an_object(more={"$ref": "#/$defs/d"})},
            },
            {
                "properties": {
                    "alone": {"$ref": "#/$defs/d"},
                    "part": {
                        "allOf": [{"$ref": "#/$defs/d-2"}, B],
                        "unevaluatedProperties": False,
                    },
                },
                "additionalProperties": False,
                "$defs": {
                    "d": {
                        **an_object(more={"$ref": "#/$defs/d"}),
                        "additionalProperties": False,
                    },
                    "d-2": an_object(more={"$ref": "#/$defs/d"}),
                },
            },
        ),
        # the schema itself, which `not` means open and a property closed
        (
            an_object(a={"$ref": "#"}, b={"not": {"$ref": "#/properties/c"}}, c=A),
            {
                **an_object(
                    a={"$ref": "#"},
                    b={"not": {"$ref": "#/$defs/c"}},
                    c={**A, "additionalProperties": False},
                ),
                "additionalProperties": False,
                "$defs": {"c": A},
            },
        ),
    ],
)
def test_each_group_is_closed_once(schema, expected):
    closed = close(schema)
    assert closed == expected
    assert close(closed) is closed


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"type": "object"},
        {**A, "additionalProperties": True},
        {**A, "unevaluatedProperties": {"type": "string"}},
        {"allOf": [A, {"additionalProperties": {"type": "string"}}]},
        {**A, "patternProperties": {"^x-": {}}},
        {"additionalProperties": A},
        {"not": A},
        {"contains": A},
        {"$id": "https://example.com/", "anyOf": [{"$id": "a", **A}]},
        {"properties": {"a": {"$dynamicRef": "#a"}}, "$defs": {"a": {"$dynamicAnchor": "a"}}},
        {"const": {"properties": {}}},
    ],
)
def test_what_says_so_itself_or_says_nothing_stays_the_same_object(schema):
    assert close(schema) is schema


TAGGED = [tagged("a", p=an_object(a={})), tagged("b", p=an_object(b={}))]
BOTH = [an_object(p=A, q={}), an_object(p=B)]


@pytest.mark.parametrize(
    ("schema", "accepted", "refused"),
    [
        # the branch that applies decides what is declared
        (
            {"anyOf": [tagged("a", x={}), tagged("b", y={})]},
            {"kind": "a", "x": 1},
            {"kind": "a", "y": 1},
        ),
        ({"if": tagged("a", x={}), "else": B}, {"b": 1}, {"b": 1, "x": 1}),
        ({"dependentSchemas": {"a": B}, **A}, {"a": 1, "b": 1}, {"b": 1}),
        (
            {"anyOf": [{**A, "additionalProperties": {"type": "null"}}, B]},
            {"a": 1, "x": None},
            {"b": 1, "x": 1},
        ),
        # two branches at once: each says something of the property
        ({"allOf": BOTH}, {"p": {"a": 1, "b": 1}}, {"p": {"c": 1}}),
        ({"anyOf": BOTH}, {"p": {"a": 1, "b": 1}}, {"p": {"a": 1, "c": 1}}),
        (
            {"allOf": [an_object(p=an_object(q=A)), an_object(p=an_object(q=B))]},
            {"p": {"q": {"a": 1, "b": 1}}},
            {"p": {"q": {"a": 1, "b": 1, "c": 1}}},
        ),
        ({"items": A, "contains": B}, [{"a": 1, "b": 1}], [{"a": 1, "c": 1}]),
        ({"allOf": [{"items": A}, {"prefixItems": [B]}]}, [{"a": 1, "b": 1}], [{"a": 1, "c": 1}]),
        # one branch at a time
        ({"anyOf": TAGGED}, {"kind": "a", "p": {"a": 1}}, {"kind": "a", "p": {"b": 1}}),
        ({"oneOf": TAGGED}, {"kind": "b", "p": {"b": 1}}, {"kind": "b", "p": {"a": 1}}),
        # what satisfies both branches of a `oneOf` does not satisfy just one of them, closed
        (
            {"oneOf": [{**an_object(p=A), "required": ["p"]}, an_object(p=B, q={"type": "null"})]},
            {"q": None},
            {"p": {"a": 1}},
        ),
    ],
)
def test_what_is_declared_is_what_applies(schema, accepted, refused):
    validator = Validator.of(close(schema))
    assert Validator.of(schema).is_valid(accepted)
    assert validator.is_valid(accepted)
    assert not validator.is_valid(refused)


def test_a_property_that_too_many_schemas_describe_stays_open():
    branches = [an_object(p=an_object(**{f"n{number}": {}})) for number in range(40)]
    validator = Validator.of(close({"anyOf": branches}))
    assert validator.is_valid({"p": {"n1": 1, "n30": 1, "other": 1}})
    assert not validator.is_valid({"other": 1})


def test_a_large_recursive_schema_does_not_grow_much():
    names = [f"d{number}" for number in range(60)]
    definitions = {
        name: {
            "anyOf": [
                an_object(p={"$ref": f"#/$defs/{other}"}, **{other: {"$ref": f"#/$defs/{name}"}})
                for other in names[number : number + 3]
            ]
        }
        for number, name in enumerate(names)
    }
    schema: Any = {"$ref": "#/$defs/d0", "$defs": definitions}
    assert len(str(close(schema))) < 20 * len(str(schema))


def test_a_deep_schema_is_closed_to_the_bottom():
    schema: Any = A
    for _ in range(20):
        schema = an_object(inner={"anyOf": [schema, {"type": "null"}]})
    assert str(close(schema)).count("False") == 21

"""Schemas are read into one algebra: what says the same is the same node."""

from typing import Any

import pytest

from tallystick.canonical import Json
from tallystick.compatibility.algebra.node import Algebra, Node, Opaque
from tallystick.compatibility.algebra.reading import Reading
from tallystick.compatibility.budget import Budget, BudgetSpent
from tests.unit.tallystick.compatibility.asked import holds

TEXT = {"type": "string"}
DEEP = 100


def read(*schemas: Json, steps: int = 10_000) -> list[Node]:
    algebra, budget = Algebra(), Budget(steps)
    return [
        Reading(schema, algebra, budget, document=document, format_dialect=None).root()
        for document, schema in enumerate(schemas)
    ]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({}, True),
        ({"not": {}}, False),
        ({"enum": []}, False),
        ({"title": "a", "description": "b", "default": 1, "x-own": 2}, {}),
        ({"type": ["string"]}, TEXT),
        ({"type": ["integer", "number"]}, {"type": "number"}),
        ({"minimum": 1.0}, {"minimum": 1}),
        ({"enum": [1, 2]}, {"enum": [2.0, 1]}),
        ({"enum": [1]}, {"const": 1}),
        ({"anyOf": [{"const": 1}, {"const": 2}]}, {"enum": [1, 2]}),
        ({"not": {"not": TEXT}}, TEXT),
        ({"allOf": [TEXT, {"minLength": 1}]}, TEXT | {"minLength": 1}),
        ({"$ref": "#/$defs/t", "minLength": 1, "$defs": {"t": TEXT}}, TEXT | {"minLength": 1}),
        ({"minLength": 0, "minItems": 0, "minProperties": 0}, {}),
        ({"uniqueItems": False}, {}),
        ({"items": True, "properties": {"a": {}}, "additionalProperties": True}, {}),
        ({"contains": TEXT, "minContains": 0}, {}),
        ({"minContains": 2, "maxContains": 1}, {}),
        ({"then": False, "else": False}, {}),
        ({"if": TEXT}, {}),
        ({"if": True, "then": TEXT}, TEXT),
        ({"required": ["a", "b"]}, {"required": ["b", "a"]}),
        ({"format": "date"}, {}),
        ({"oneOf": [TEXT]}, TEXT),
        (
            {"unevaluatedProperties": False, "additionalProperties": TEXT},
            {"additionalProperties": TEXT},
        ),
    ],
)
def test_schemas_that_say_the_same_are_one_node(left: Json, right: Json):
    one, other = read(left, right)

    assert one is other


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"const": 1}, {"const": True}),
        ({"oneOf": [TEXT, TEXT]}, TEXT),
        ({"type": "integer"}, {"type": "number"}),
        ({"minimum": 1}, {"exclusiveMinimum": 1}),
        ({"prefixItems": [TEXT]}, {"items": TEXT}),
    ],
)
def test_schemas_that_differ_are_two_nodes(left: Json, right: Json):
    one, other = read(left, right)

    assert one is not other


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"$dynamicRef": "#meta"}, "$dynamicRef"),
        ({"$ref": "https://example.org/elsewhere"}, "$ref"),
        ({"minimum": 1e400}, "minimum"),
        ({"enum": [1e400]}, "enum"),
    ],
)
def test_what_is_not_understood_is_opaque(schema: Json, keyword: str):
    (node,) = read(schema)

    assert isinstance(node, Opaque)
    assert node.keyword == keyword


def test_two_keywords_that_are_not_understood_are_not_the_same():
    schema: Any = {"$dynamicRef": "#meta"}
    one, other = read(schema, schema)

    assert one is not other


def test_a_schema_that_refers_to_itself_is_read_once():
    schema: Json = {"type": "array", "items": {"$ref": "#"}}
    algebra = Algebra()
    reading = Reading(schema, algebra, Budget(100), document=0, format_dialect=None)

    assert reading.root() is reading.root()
    assert holds(schema, [[], [[]]]) is True
    assert holds(schema, [[1]]) is False


def test_a_deep_schema_is_read_piece_by_piece():
    schema: Any = TEXT
    value: Any = "x"
    for _ in range(DEEP // 2):
        schema, value = {"properties": {"a": schema}}, {"a": value}

    assert holds(schema, value) is True


def test_each_keyword_is_paid_for():
    with pytest.raises(BudgetSpent):
        read({"allOf": [{"minimum": each} for each in range(1_000)]}, steps=1_000)


def test_a_format_counts_in_the_dialects_that_assert_it():
    draft_04 = "http://json-schema.org/draft-04/schema#"
    draft_2020_12 = "https://json-schema.org/draft/2020-12/schema"

    assert holds({"format": "uuid"}, "x") is True
    assert holds({"format": "uuid"}, "x", dialect=draft_04) is True
    assert holds({"format": "uuid"}, "x", dialect=draft_2020_12) is False

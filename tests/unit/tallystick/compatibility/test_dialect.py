"""The older dialects in 2020-12, and schemas of many resources in one."""

from typing import Any

import pytest

from tallystick.compatibility.forms.dialect import localised, modern
from tallystick.errors import TooLarge
from tallystick.schema import DRAFT_04, DRAFT_06, DRAFT_07, DRAFT_2020_12, Validator

TEXT = {"type": "string"}


def test_a_schema_of_2020_12_comes_back_as_it_is():
    schema = {"$id": "https://example.com/a", "items": {"$ref": "#"}}
    assert modern(schema, DRAFT_2020_12) is schema


@pytest.mark.parametrize(
    ("dialect", "schema", "expected"),
    [
        # bounds
        (DRAFT_04, {"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        (DRAFT_04, {"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        (DRAFT_06, {"minimum": 1, "exclusiveMinimum": 0}, {"minimum": 1, "exclusiveMinimum": 0}),
        # items
        (DRAFT_07, {"items": [TEXT]}, {"prefixItems": [TEXT]}),
        (
            DRAFT_04,
            {"items": [TEXT], "additionalItems": False},
            {"prefixItems": [TEXT], "items": False},
        ),
        (DRAFT_07, {"items": TEXT, "additionalItems": False}, {"items": TEXT}),
        # dependencies
        (DRAFT_07, {"dependencies": {"a": ["b"]}}, {"dependentRequired": {"a": ["b"]}}),
        (
            DRAFT_07,
            {"dependencies": {"a": ["b"], "c": TEXT}},
            {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": TEXT}},
        ),
        (DRAFT_07, {"dependencies": {}}, {}),
        # siblings of a reference
        (
            DRAFT_07,
            {"$ref": "#/definitions/a", "minLength": 1, "definitions": {"a": TEXT}},
            {"$ref": "#/definitions/a", "definitions": {"a": TEXT}},
        ),
        # what the dialect does not know
        (DRAFT_04, {"const": 1, "contains": TEXT, "propertyNames": TEXT, "if": False}, {}),
        (DRAFT_06, {"if": TEXT, "then": False, "const": 1}, {"const": 1}),
        (DRAFT_07, {"prefixItems": [TEXT], "unevaluatedItems": False, "minContains": 2}, {}),
        (DRAFT_07, {"format": "uuid"}, {}),
        (DRAFT_07, {"format": "iri"}, {"format": "iri"}),
        (DRAFT_06, {"format": "iri"}, {}),
        # names
        (DRAFT_07, {"$schema": DRAFT_07, "title": "a", "x-unit": 1}, {"title": "a", "x-unit": 1}),
        (
            DRAFT_04,
            {"id": "http://example.com/", "properties": {"id": {}}},
            {"properties": {"id": {}}},
        ),
        (DRAFT_07, True, True),
        # what only looks like a schema
        (DRAFT_07, {"const": {"items": [1], "$id": "a"}}, {"const": {"items": [1], "$id": "a"}}),
    ],
)
def test_each_keyword_has_its_form_in_2020_12(dialect, schema, expected):
    assert modern(schema, dialect) == expected


@pytest.mark.parametrize(
    ("dialect", "schema", "reference"),
    [
        (DRAFT_07, {"items": [TEXT], "not": {"$ref": "#/items/0"}}, "#/prefixItems/0"),
        (
            DRAFT_07,
            {"items": [{}], "additionalItems": TEXT, "not": {"$ref": "#/additionalItems"}},
            "#/items",
        ),
        (
            DRAFT_07,
            {"dependencies": {"a/b": TEXT}, "not": {"$ref": "#/dependencies/a~1b"}},
            "#/dependentSchemas/a~1b",
        ),
        # what stands where the dialect knows no schema
        (DRAFT_07, {"x-types": {"a": TEXT}, "not": {"$ref": "#/x-types/a"}}, "#/$defs/a"),
        (DRAFT_06, {"then": TEXT, "not": {"$ref": "#/then"}}, "#/$defs/then"),
        # identifiers and anchors
        (
            DRAFT_07,
            {"definitions": {"a": {"$id": "#b", **TEXT}}, "not": {"$ref": "#b"}},
            "#/definitions/a",
        ),
        (
            DRAFT_04,
            {"definitions": {"a": {"id": "#b", **TEXT}}, "not": {"$ref": "#b"}},
            "#/definitions/a",
        ),
        (
            DRAFT_06,
            {
                "$id": "http://example.com/a",
                "definitions": {"a b": {"$id": "c", **TEXT}},
                "not": {"$ref": "http://example.com/c"},
            },
            "#/definitions/a%20b",
        ),
    ],
)
def test_a_reference_leads_to_the_same_schema(dialect, schema, reference):
    written: Any = modern(schema, dialect)
    assert written["not"]["$ref"] == reference
    validator = Validator.of(written)
    assert [validator.is_valid(value) for value in ("a", 1)] == [False, True]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        # identifiers, of the whole and of parts
        (
            {"$id": "https://example.com/a", "items": {"$ref": "a#/$defs/b"}, "$defs": {"b": {}}},
            {"items": {"$ref": "#/$defs/b"}, "$defs": {"b": {}}},
        ),
        (
            {"$ref": "b#/$defs/c", "$defs": {"b": {"$id": "b", "$defs": {"c": {"$ref": "#"}}}}},
            {"$ref": "#/$defs/b/$defs/c", "$defs": {"b": {"$defs": {"c": {"$ref": "#/$defs/b"}}}}},
        ),
        # anchors
        (
            {"$ref": "#a", "$defs": {"b": {"$anchor": "a"}}},
            {"$ref": "#/$defs/b", "$defs": {"b": {}}},
        ),
        # a dynamic reference that is a plain one
        ({"$dynamicAnchor": "a", "items": {"$dynamicRef": "#a"}}, {"items": {"$ref": "#"}}),
        (
            {"$ref": "#/$defs/b", "$dynamicRef": "#a", "$defs": {"b": {"$anchor": "a"}}},
            {"$ref": "#/$defs/b", "allOf": [{"$ref": "#/$defs/b"}], "$defs": {"b": {}}},
        ),
        # what leads elsewhere
        (
            {"$id": "https://example.com/a", "$ref": "b#c"},
            {"$ref": "https://example.com/b#c"},
        ),
        # what 2020-12 passes over
        ({"dependencies": {"a": ["b"]}, "additionalItems": False}, {}),
    ],
)
def test_references_become_pointers_from_the_root(schema, expected):
    assert localised(schema) == expected


def test_a_dynamic_reference_is_written_once_for_each_scope():
    tree = {
        "$id": "https://example.com/tree",
        "$dynamicAnchor": "node",
        "type": "object",
        "properties": {"children": {"items": {"$dynamicRef": "#node"}}},
    }
    strict = {
        "$id": "https://example.com/strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": False,
    }
    schema: Any = {"properties": {"loose": {"$ref": "tree"}, "strict": {"$ref": "strict"}}}
    written = localised(
        {"$id": "https://example.com/", **schema, "$defs": {"t": tree, "s": strict}}
    )
    assert "dynamic" not in str(written)
    validator = Validator.of(written)
    child: Any = {"children": [{"extra": 1}]}
    assert validator.is_valid({"loose": child})
    assert not validator.is_valid({"strict": child})


def test_nothing_to_do_leaves_the_same_object():
    schema: Any = {"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"enum": [1]}}}
    assert localised(schema) is schema


@pytest.mark.parametrize("dialect", [DRAFT_04, DRAFT_06, DRAFT_07, DRAFT_2020_12])
def test_a_reference_to_the_metaschema_leads_to_a_copy(dialect):
    validator = Validator.of(localised(modern({"$ref": dialect}, dialect)))
    assert validator.is_valid({"properties": {"a": {"minLength": 1}}})
    assert not validator.is_valid({"properties": {"a": {"minLength": "1"}}})


def test_too_many_dynamic_scopes_are_left_alone():
    names = [f"n{number}" for number in range(20)]
    resources = {
        name: {
            "$id": name,
            "$defs": {"a": {"$dynamicAnchor": name}},
            "anyOf": [{"$ref": other} for other in names],
        }
        for name in names
    }
    schema: Any = {"$id": "https://example.com/", "$ref": "n0", "$defs": resources}
    assert localised(schema) is schema


def test_references_into_data_do_not_multiply_without_bound():
    data: Any = {}
    for _ in range(60):
        data = {"allOf": [data, *({} for _ in range(200))]}
    pointers = ["#/x" + "/allOf/0" * depth for depth in reversed(range(60))]
    schema: Any = {"x": data, "allOf": [{"$ref": pointer} for pointer in pointers]}
    with pytest.raises(TooLarge):
        modern(schema, DRAFT_07)

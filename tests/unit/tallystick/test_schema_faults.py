"""Which schemas may be published: one row for each reason to refuse, with its place."""

from typing import Any

import pytest

from tallystick.errors import InvalidContract, TooLarge
from tallystick.schema import (
    DRAFT_04,
    DRAFT_06,
    DRAFT_07,
    DRAFT_2020_12,
    SCHEMA_BYTES_MAX,
    Validator,
    check_schema,
)

TEXT: Any = {"type": "string"}


def nested(depth, leaf: Any, key) -> Any:
    for _ in range(depth):
        leaf = {key: leaf}
    return leaf


def chained(length, copies=1, **beside) -> Any:
    """Return a schema that leads to a string through so many others, each so many times."""
    onward = [{"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * copies} | beside for n in range(length)]
    definitions = {str(n): schema for n, schema in enumerate([*onward, TEXT])}
    return {"$ref": "#/$defs/0", "$defs": definitions}


def branching(length) -> Any:
    """Return a schema that looks at a value so deep inside 2^length times."""
    onward = [
        {"anyOf": [{"properties": {"x": {"$ref": f"#/$defs/{n + 1}"}}}] * 2} for n in range(length)
    ]
    definitions = {str(n): schema for n, schema in enumerate([*onward, TEXT])}
    return {"$ref": "#/$defs/0", "$defs": definitions}


@pytest.mark.parametrize(
    ("schema", "pointer", "detail"),
    [
        # It is no schema.
        (5, "", "a schema must be an object or a boolean"),
        (None, "", "a schema must be an object or a boolean"),
        ([], "", "a schema must be an object or a boolean"),
        ({"properties": {"a/b": {"items": 5}}}, "/properties/a~1b/items", "an object or a boolean"),
        ({"$defs": {"a": "x"}}, "/$defs/a", "an object or a boolean"),
        # It is no schema of 2020-12.
        ({"properties": {"a": {"type": "strin"}}}, "/properties/a/type", '"strin" is not one of'),
        ({"required": "a"}, "/required", 'is not of type "array"'),
        ({"minLength": -1}, "/minLength", "less than the minimum"),
        ({"allOf": []}, "/allOf", "not valid JSON Schema"),
        ({"items": [TEXT]}, "/items", "not valid JSON Schema"),
        ({"not": {"$ref": 5}}, "/not/$ref", 'is not of type "string"'),
        ({"exclusiveMinimum": True}, "/exclusiveMinimum", 'is not of type "number"'),
        # It names another dialect, or counts on one.
        ({"$schema": DRAFT_07}, "/$schema", "the contract's dialect is"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "/$schema", "dialect"),
        ({"$schema": 5}, "/$schema", "dialect"),
        ({"not": {"$schema": DRAFT_07}}, "/not/$schema", "dialect"),
        ({"not": {"additionalItems": False}}, "/not/additionalItems", "means nothing in"),
        ({"dependencies": {"a": ["b"]}}, "/dependencies", "means nothing in"),
        # A reference leaves the schema.
        ({"$ref": "https://example.com/a.json"}, "/$ref", "must stay in its schema"),
        ({"items": {"$ref": "file:///etc/passwd"}}, "/items/$ref", "must stay in its schema"),
        ({"items": {"$ref": "other.json#/a"}}, "/items/$ref", "must stay in its schema"),
        ({"items": {"$ref": DRAFT_2020_12}}, "/items/$ref", "must stay in its schema"),
        ({"items": {"$dynamicRef": "a#b"}}, "/items/$dynamicRef", "must stay in its schema"),
        ({"items": {"$ref": ""}}, "/items/$ref", "must stay in its schema"),
        # A reference points at no schema.
        ({"items": {"$ref": "#/$defs/a"}}, "/items/$ref", "points at no schema"),
        ({"items": {"$ref": "#a"}}, "/items/$ref", "points at no schema"),
        ({"items": {"$ref": "#/%ff"}}, "/items/$ref", "points at no schema"),
        ({"not": {"$ref": "#/properties"}, "properties": {}}, "/not/$ref", "points at no schema"),
        # ... but at an annotation or a value, which could change what is valid and not the hash.
        ({"not": {"$ref": "#/examples/0"}, "examples": [{}]}, "/not/$ref", "points at no schema"),
        ({"items": {"$ref": "#/default"}, "default": {}}, "/items/$ref", "points at no schema"),
        ({"items": {"$ref": "#/x-a"}, "x-a": {}}, "/items/$ref", "points at no schema"),
        # ... but outside the resource that its own identifier begins.
        (
            {"$defs": {"a": {}}, "properties": {"b": {"$id": "c", "$ref": "#/$defs/a"}}},
            "/properties/b/$ref",
            "points at no schema",
        ),
        # Two schemas go by one name.
        ({"not": {"$anchor": "a"}, "if": {"$anchor": "a"}}, "/if", "the same identifier or anchor"),
        ({"not": {"$id": "a"}, "if": {"$id": "a"}}, "/if", "the same identifier or anchor"),
        ({"$id": "https://a/b", "not": {"$id": "b"}}, "/not", "the same identifier or anchor"),
        ({"not": {"$id": DRAFT_2020_12}}, "/not/$id", "not one for a part of a schema"),
        # A pattern needs to backtrack, or is none.
        ({"items": {"pattern": "(?=a)b"}}, "/items/pattern", "the pattern is malformed"),
        ({"pattern": "(?<!a)b"}, "/pattern", "look-around"),
        ({"pattern": "(a)\\1"}, "/pattern", "back-references"),
        ({"pattern": "("}, "/pattern", "the pattern is malformed"),
        ({"pattern": "((((a{100}){100}){100}){100})"}, "/pattern", "too large"),
        (
            {"items": {"patternProperties": {"(?=a)/~": {}}}},
            "/items/patternProperties/(?=a)~1~0",
            "the pattern is malformed",
        ),
        (
            {"properties": {str(n): {"pattern": f"^{n}$"} for n in range(129)}},
            "/properties/128/pattern",
            "more than 128 patterns",
        ),
        # It leads nowhere, or nowhere in reasonable time.
        ({"$ref": "#"}, "", "a loop"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}}, "/$defs/a", "a loop"),
        ({"anyOf": [{"$ref": "#"}] * 1000}, "", "a loop"),
        ({"not": {"allOf": [{"$ref": "#/if"}]}, "if": {"$ref": "#/not"}}, "", "a loop"),
        (nested(33, TEXT, "not"), "", "more than 32 schemas in a chain"),
        (chained(20), "", "more than 32 schemas in a chain"),
        (chained(6000), "", "more than 32 schemas in a chain"),
        (chained(15, copies=3), "/$defs/5", "more than 100000 times"),
        (branching(30), "/$defs/15", "more than 100000 times"),
        (chained(12, unevaluatedProperties=False), "/$defs/2", "more than 100000 times"),
        # It is too deep, or not JSON.
        (nested(64, {}, "items"), "/items" * 64, "nested more than 64 deep"),
        (nested(100_000, {}, "items"), "/items" * 64, "nested more than 64 deep"),
        ({"default": nested(64, [], "a")}, "/default" + "/a" * 63, "nested more than 64 deep"),
        ({"minimum": float("nan")}, "/minimum", "a number that a double cannot hold"),
        # A secret is marked, and marked so that nobody can misread it.
        ({"items": {"x-sensitive": "true"}}, "/items/x-sensitive", "must be true or false"),
    ],
)  # fmt: skip
def test_schema_is_refused_at_its_place(schema, pointer, detail):
    with pytest.raises(InvalidContract) as refused:
        check_schema(schema, dialect=DRAFT_2020_12, pointer="/input_schema")

    assert refused.value.pointer == "/input_schema" + pointer
    assert detail in refused.value.detail


@pytest.mark.parametrize(
    ("schema", "pointer", "detail"),
    [
        ({"$schema": DRAFT_2020_12}, "/$schema", "the contract's dialect is"),
        ({"type": ["string", "string"]}, "/type", "not valid JSON Schema"),
        ({"prefixItems": [TEXT]}, "/prefixItems", "means nothing in"),
        ({"unevaluatedProperties": False}, "/unevaluatedProperties", "means nothing in"),
        ({"dependentRequired": {"a": ["b"]}}, "/dependentRequired", "means nothing in"),
        ({"$defs": {"a": 5}}, "/$defs/a", "an object or a boolean"),
        ({"items": [{"pattern": "("}]}, "/items/0/pattern", "the pattern is malformed"),
        ({"dependencies": {"a": {"$ref": "x"}}}, "/dependencies/a/$ref", "must stay in its schema"),
        ({"additionalItems": {"$ref": "#a"}}, "/additionalItems/$ref", "points at no schema"),
        ({"not": {"$id": "#a"}, "if": {"$id": "#a"}}, "/if", "the same identifier or anchor"),
        ({"not": {"$id": "a#b"}}, "/not/$id", "not one for a part of a schema"),
    ],
)
def test_draft_07_schema_is_refused_at_its_place(schema, pointer, detail):
    with pytest.raises(InvalidContract) as refused:
        check_schema(schema, dialect=DRAFT_07, pointer="")

    assert refused.value.pointer == pointer
    assert detail in refused.value.detail


@pytest.mark.parametrize(
    ("schema", "dialect", "pointer", "detail"),
    [
        ({"exclusiveMinimum": True}, 6, "/exclusiveMinimum", "not valid JSON Schema"),
        ({"if": TEXT}, 6, "/if", "means nothing in"),
        ({"not": {"then": TEXT}}, 6, "/not/then", "means nothing in"),
        ({"prefixItems": [TEXT]}, 6, "/prefixItems", "means nothing in"),
        ({"minimum": 1, "exclusiveMinimum": 0}, 4, "/exclusiveMinimum", "not valid JSON Schema"),
        ({"const": 1}, 4, "/const", "means nothing in"),
        ({"contains": TEXT}, 4, "/contains", "means nothing in"),
        ({"propertyNames": TEXT}, 4, "/propertyNames", "means nothing in"),
        ({"$id": "http://example.com/"}, 4, "/$id", "means nothing in"),
        ({"items": {"id": "#a"}}, 4, "/items/id", "below the root"),
        ({"items": {"$ref": "#a"}}, 4, "/items/$ref", "points at no schema"),
        ({"properties": {"a": True}}, 4, "/properties/a", "not valid JSON Schema"),
        (True, 4, "", "must be an object"),
    ],
)
def test_schema_of_an_early_draft_is_refused_at_its_place(schema, dialect, pointer, detail):
    with pytest.raises(InvalidContract) as refused:
        check_schema(schema, dialect={4: DRAFT_04, 6: DRAFT_06}[dialect], pointer="")

    assert refused.value.pointer == pointer
    assert detail in refused.value.detail


def test_schema_has_a_size_limit():
    largest: Any = {"const": "x" * (SCHEMA_BYTES_MAX - len('{"const":""}'))}
    check_schema(largest, dialect=DRAFT_2020_12, pointer="")

    with pytest.raises(TooLarge) as refused:
        check_schema(largest | {"const": largest["const"] + "x"}, dialect=DRAFT_07, pointer="/a")
    assert refused.value.pointer == "/a"


@pytest.mark.parametrize(
    ("schema", "dialect", "good", "bad"),
    [
        # References: to a name that needs escapes, by percent-encoding, by anchor, to the root.
        ({"properties": {"a/b": TEXT}, "items": {"$ref": "#/properties/a~1b"}}, 20, ["x"], [1]),
        ({"properties": {"a~b": TEXT}, "items": {"$ref": "#/properties/a%7E0b"}}, 20, ["x"], [1]),
        ({"$defs": {"a%b": TEXT}, "items": {"$ref": "#/%24defs/a%25b"}}, 20, ["x"], [1]),
        ({"$defs": {"a": TEXT | {"$anchor": "b"}}, "items": {"$ref": "#b"}}, 20, ["x"], [1]),
        ({"definitions": {"a": TEXT | {"$id": "#b"}}, "items": {"$ref": "#b"}}, 7, ["x"], [1]),
        ({"$dynamicAnchor": "n", "items": {"$dynamicRef": "#n"}, "type": "array"}, 20, [[]], [1]),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, 20, {"a": {}}, {"a": 1}),
        ({"$id": "https://example.com/a", "items": {"$ref": "#/$defs/b"}, "$defs": {"b": TEXT}}, 20,
         ["x"], [1]),
        # A part with an identifier of its own resolves its references inside itself.
        ({"properties": {"a": {"$id": "b", "$defs": {"c": TEXT}, "$ref": "#/$defs/c"}},
          "$defs": {"c": {"type": "null"}}}, 20, {"a": "x"}, {"a": None}),
        # Names and values that only look like keywords.
        ({"properties": {"$ref": TEXT, "$id": TEXT}}, 20, {"$ref": "x"}, {"$id": 1}),
        ({"const": {"$ref": "https://example.com"}}, 20, {"$ref": "https://example.com"}, {}),
        ({"enum": [{"$ref": "a", "pattern": "("}]}, 20, {"$ref": "a", "pattern": "("}, {}),
        ({"default": {"$ref": "a"}, "examples": [{"$ref": "b"}], "items": TEXT}, 20, ["x"], [1]),
        ({"x-any": {"$ref": "https://example.com", "pattern": "("}, "items": TEXT}, 20, ["x"], [1]),
        # draft-07.
        ({"items": [TEXT], "additionalItems": {"type": "null"}}, 7, ["x", None], ["x", 1]),
        ({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, 7, {"a": 1, "b": 1}, {"c": 1}),
        ({"$ref": "#/definitions/a", "title": "t", "definitions": {"a": TEXT}}, 7, "x", 1),
        ({"$schema": "http://json-schema.org/draft-07/schema", "items": TEXT}, 7, ["x"], [1]),
        ({"$defs": {"a": TEXT}, "items": {"$ref": "#/$defs/a"}}, 7, ["x"], [1]),
        # draft-06.
        ({"exclusiveMinimum": 1, "contains": {"const": 2}}, 6, [2], [3]),
        ({"$ref": "#/definitions/a", "definitions": {"a": {"$id": "#b", **TEXT}}}, 6, "x", 1),
        # draft-04.
        ({"minimum": 1, "exclusiveMinimum": True}, 4, 2, 1),
        ({"items": [TEXT], "additionalItems": False}, 4, ["x"], ["x", 1]),
        ({"id": "http://example.com/", "properties": {"id": TEXT}}, 4, {"id": "x"}, {"id": 1}),
        ({"additionalProperties": False, "properties": {"a": {}}}, 4, {"a": 1}, {"b": 1}),
        # 2020-12.
        ({"prefixItems": [TEXT], "unevaluatedItems": False}, 20, ["x"], ["x", 1]),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, 20, {"a": 1, "b": 1}, {"a": 1}),
        ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, 20, {"a": 1},
         {"b": 1}),
        ({"definitions": {"a": TEXT}, "items": {"$ref": "#/definitions/a"}}, 20, ["x"], [1]),
        ({"contentSchema": {"type": "object"}, "type": "string"}, 20, "{}", 1),
        # At the limits.
        (nested(63, {}, "items"), 20, [[]], None),
        (nested(32, TEXT, "not"), 20, "x", 1),
        (chained(15), 20, "x", 1),
        (chained(10, copies=2), 20, "x", 1),
        (True, 20, 1, None),
    ],
)  # fmt: skip
def test_schema_is_accepted_and_means_what_it_says(schema, dialect, good, bad):
    dialect = {4: DRAFT_04, 6: DRAFT_06, 7: DRAFT_07, 20: DRAFT_2020_12}[dialect]
    check_schema(schema, dialect=dialect, pointer="")
    validator = Validator.of(schema, dialect)

    assert validator.is_valid(good)
    assert bad is None or not validator.is_valid(bad)


def test_types_that_all_refer_to_each_other_are_accepted():
    members: Any = {"properties": {f"p{n}": {"$ref": f"#/$defs/t{n}"} for n in range(30)}}
    types: Any = {f"t{n}": members for n in range(30)}
    check_schema({"$ref": "#/$defs/t0", "$defs": types}, dialect=DRAFT_2020_12, pointer="")

"""What of a schema is structure, and how a value breaks it."""

from typing import Any

import pytest

from tallystick.errors import InvalidContract
from tallystick.schema import DIALECTS, DRAFT_07, DRAFT_2020_12, Validator, structure

TEXT: Any = {"type": "string"}


def nested(depth, leaf: Any, key="x") -> Any:
    for _ in range(depth):
        leaf = {key: leaf}
    return leaf


# --- structure: annotations go, where a schema stands ---------------------------------------------


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        # Annotations go at the root and wherever else a schema stands.
        (TEXT | {"title": "t", "description": "d", "examples": [1], "$comment": "c"}, TEXT),
        (TEXT | {"deprecated": True}, TEXT),
        *[
            ({keyword: TEXT | {"title": "t"}}, {keyword: TEXT})
            for keyword in (
                *("additionalItems", "additionalProperties", "contains", "contentSchema", "else"),
                *("if", "items", "not", "propertyNames", "then", "unevaluatedItems"),
                "unevaluatedProperties",
            )
        ],
        *[
            ({keyword: [TEXT | {"title": "t"}, True]}, {keyword: [TEXT, True]})
            for keyword in ("allOf", "anyOf", "oneOf", "prefixItems", "items")
        ],
        *[
            ({keyword: {"title": TEXT | {"title": "t"}}}, {keyword: {"title": TEXT}})
            for keyword in (
                *("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties"),
                "properties",
            )
        ],
        # What is only named like an annotation is structure.
        *[
            ({"properties": {name: TEXT}, "required": [name]}, "all")
            for name in ("title", "description", "examples", "$comment", "deprecated", "default")
        ],
        ({"properties": {"properties": {"properties": {"title": TEXT}}}}, "all"),
        # Values are data, whatever their keys are called.
        ({"const": {"title": "t"}}, "all"),
        ({"enum": [{"description": "d"}]}, "all"),
        ({"default": {"title": "t", "properties": {"title": {"title": "t"}}}}, "all"),
        # What no dialect knows is kept whole, and so is what constrains or may change an effect.
        ({"x-unit": {"title": "cents", "items": {"title": "t"}}}, "all"),
        ({"format": "date", "readOnly": True, "contentEncoding": "base64"}, "all"),
        ({"$id": "a", "$schema": DRAFT_2020_12, "$anchor": "b", "$ref": "#"}, "all"),
        # Sets have one order and no duplicates.
        ({"required": ["b", "a", "b"]}, {"required": ["a", "b"]}),
        ({"type": ["string", "null"]}, {"type": ["null", "string"]}),
        ({"enum": ["b", 1, "a", 1.0, True]}, {"enum": ["a", "b", 1, True]}),
        ({"dependentRequired": {"a": ["c", "b"]}}, {"dependentRequired": {"a": ["b", "c"]}}),
        ({"dependencies": {"a": ["c", "b"]}}, {"dependencies": {"a": ["b", "c"]}}),
        # Everything else keeps its order and its form.
        ({"allOf": [{"minimum": 2}, {"minimum": 1}]}, "all"),
        ({"const": ["b", "a"]}, "all"),
        ({"type": ["string"]}, "all"),
        ({"type": "string"}, "all"),
        (True, True),
        (False, False),
        # A malformed keyword is kept for others to refuse.
        ({"properties": [1], "required": "a", "allOf": {}, "items": 5}, "all"),
    ],
)
def test_structure(schema, kept):
    assert structure(schema) == (schema if kept == "all" else kept)
    assert structure(structure(schema)) == structure(schema)


def test_structure_of_a_bottomless_schema_is_refused():
    with pytest.raises(InvalidContract) as refused:
        structure(nested(100_000, {}, "not"))

    assert refused.value.pointer == "/not" * 64


# --- what a schema says of a value ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "value", "pointer", "keyword", "message"),
    [
        ({"type": "integer"}, "secret", "", "type", 'the value is not of type "integer"'),
        ({"enum": [1, 2]}, "secret", "", "enum", "the value is not one of 1 or 2"),
        ({"const": 1}, "secret", "", "const", "1 was expected"),
        ({"maximum": 2}, 987654, "", "maximum", "the value is greater than the maximum of 2"),
        ({"maxLength": 2}, "secret", "", "maxLength", "the value is longer than 2 characters"),
        ({"pattern": "^b$"}, "secret", "", "pattern", 'the value does not match "^b$"'),
        (
            {"properties": {"a/b": {"items": TEXT}}},
            {"a/b": ["", 987654]},
            "/a~1b/1",
            "type",
            'the value is not of type "string"',
        ),
        ({"required": ["a"]}, {}, "/a", "required", "this property is required"),
        (
            {"dependentRequired": {"a": ["b"]}},
            {"a": 1},
            "/b",
            "required",
            "this property is required",
        ),
        (
            {"properties": {"a": {}}, "additionalProperties": False},
            {"b": "secret"},
            "/b",
            "additionalProperties",
            "this property is not declared",
        ),
        (
            {"unevaluatedProperties": False},
            {"b": "secret"},
            "/b",
            "unevaluatedProperties",
            "this property is not declared",
        ),
        ({"properties": {"a": False}}, {"a": "secret"}, "/a", "falseSchema", "nothing is allowed"),
        ({"contains": TEXT}, [987654], "", "contains", "too few or too many items match"),
        ({"uniqueItems": True}, ["secret"] * 2, "", "uniqueItems", "non-unique"),
        ({"not": {}}, "secret", "", "not", "{} is not allowed for the value"),
        # The one alternative of the value's type, or with its constant, explains better than all.
        (
            {"anyOf": [TEXT | {"pattern": "^b$"}, {"type": "null"}]},
            "secret",
            "",
            "pattern",
            'the value does not match "^b$"',
        ),
        (
            {
                "oneOf": [
                    {"properties": {"kind": {"const": "card"}, "number": TEXT}},
                    {"properties": {"kind": {"const": "cash"}, "number": False}},
                ]
            },
            {"kind": "card", "number": 987654},
            "/number",
            "type",
            'the value is not of type "string"',
        ),
        (
            {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "secret",
            "",
            "anyOf",
            "the value is not valid under any of the schemas",
        ),
    ],
)
def test_violation_names_the_place_and_hides_the_value(schema, value, pointer, keyword, message):
    (violation,) = Validator.of(schema).violations(value)

    assert (violation.pointer, violation.keyword) == (pointer, keyword)
    assert message in violation.message
    assert "secret" not in violation.message
    assert "987654" not in violation.message


def test_value_that_obeys_has_no_violations():
    validator = Validator.of({"items": TEXT})

    assert validator.violations(["a", "b"]) == ()
    assert validator.is_valid(["a"])
    assert not validator.is_valid([1])


def test_every_violation_is_named_up_to_a_limit():
    validator = Validator.of({"items": TEXT})

    assert [each.pointer for each in validator.violations([1, "a", 2])] == ["/0", "/2"]
    assert len(validator.violations([*range(1000)])) == 20


def test_long_schema_text_is_cut_in_messages():
    (violation,) = Validator.of({"const": "x" * 5000}).violations(1)

    assert len(violation.message) <= 300


@pytest.mark.parametrize("dialect", [DRAFT_2020_12, DRAFT_07])
@pytest.mark.parametrize("asserted", [False, True])
def test_format_is_an_annotation_unless_asserted(dialect, asserted):
    validator = Validator.of({"format": "date"}, dialect, asserted)

    assert validator.is_valid("30 November") is not asserted
    assert validator.is_valid("2026-11-30")


def test_dialect_decides_what_a_schema_means():
    beside_reference: Any = {"$ref": "#/definitions/any", "minimum": 5, "definitions": {"any": {}}}

    assert Validator.of(beside_reference, DRAFT_07).is_valid(1)
    assert not Validator.of(beside_reference, DRAFT_2020_12).is_valid(1)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_content_is_an_annotation_in_every_dialect(dialect):
    content: Any = {"contentEncoding": "base64", "contentMediaType": "application/json"}

    assert Validator.of(content, dialect).is_valid("neither")


def test_nothing_is_fetched_even_by_an_unchecked_schema():
    for reference in ("http://127.0.0.1:9/schema.json", "file:///etc/hostname"):
        with pytest.raises(ValueError, match=r"Resource|fetched"):
            Validator.of({"$ref": reference})


def test_patterns_run_in_linear_time():
    validator = Validator.of({"pattern": "^(a+)+$"})

    assert not validator.is_valid("a" * 100_000 + "!")
    with pytest.raises(ValueError, match="regex"):
        Validator.of({"pattern": "(?=a)"})


RECURSIVE: Any = {"properties": {"x": {"$ref": "#"}}, "required": ["x"]}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        # The engine would list 2^100 errors.
        ({"anyOf": [RECURSIVE, RECURSIVE]}, nested(100, {})),
        ({"oneOf": [RECURSIVE, RECURSIVE], "type": "object"}, nested(100, {})),
        # It would copy each of these on every level above it.
        (nested(13, RECURSIVE, "not") | RECURSIVE, nested(120, {})),
        ({"items": TEXT}, [1] * 200_000),
    ],
)
def test_what_would_take_for_ever_to_explain_is_refused_as_a_whole(schema, value):
    (violation,) = Validator.of(schema).violations(value)

    assert violation.pointer == ""
    assert "too large to say where" in violation.message


LISTED: Any = {"items": {"enum": [{"a": number} for number in range(20_000)]}}


def doubled(times: int, schema: Any) -> Any:
    """Return a schema of lists that looks at each item 2**times times."""
    steps = {
        f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}, {"$ref": f"#/$defs/s{n + 1}"}]}
        for n in range(times)
    }
    return {"items": {"$ref": "#/$defs/s0"}, "$defs": {**steps, f"s{times}": schema}}


@pytest.mark.parametrize(
    ("schema", "little", "much"),
    [
        (doubled(14, {"required": ["x"]}), [{"x": 1}], [{"x": 1}] * 10_000),
        (doubled(12, {"pattern": "a$"}), ["a"], ["a" * 1_000_000]),
        (LISTED, [{"a": 1}], [{"b": 1}] * 10_000),
    ],
    ids=["schemas", "characters", "comparisons"],
)
def test_a_value_that_is_dear_to_look_at_is_refused_as_a_whole(schema: Any, little: Any, much: Any):
    validator = Validator.of(schema)
    assert validator.violations(little) == ()

    (violation,) = validator.violations(much)
    assert (violation.pointer, violation.keyword) == ("", "schema")
    assert "too large for what the schema asks" in violation.message


def test_a_large_value_of_a_plain_schema_is_looked_at():
    rows: Any = [{"id": number, "tags": ["a", "b"], "note": "n" * 20} for number in range(20_000)]
    row = {"properties": {"id": {"type": "integer"}, "tags": {"items": {"type": "string"}}}}
    assert Validator.of({"items": {**row, "required": ["id"]}}).violations(rows) == ()


def test_a_step_too_deep_is_explained_while_it_is_cheap():
    violations = Validator.of({"anyOf": [RECURSIVE, {"type": "null"}]}).violations(nested(5, {}))

    assert [each.pointer for each in violations] == ["/x/x/x/x/x/x"]

"""Laws of `close`: it lets nothing new through, and refuses nothing that is declared.

What is declared is asked of the validator, which tells for each valid value which `properties` have
described which members.
"""

from typing import Any, cast

import jsonschema_rs
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.canonical import Json, pointer_join
from tallystick.compatibility.forms.producer import close
from tallystick.subschema import Subschemas

NAMES = st.sampled_from("abc")
LEAVES = st.sampled_from(
    [
        *({}, True, {"type": "object"}, {"type": ["object", "null"]}, {"type": "integer"}),
        *({"const": 1}, {"enum": [1, "a"]}, {"required": ["a"]}, {"properties": {}}),
        *({"$ref": "#"}, {"$ref": "#/$defs/d"}, {"$ref": "#/$defs/e"}, {"minProperties": 1}),
        *({"maxProperties": 1}, {"additionalProperties": False}, {"type": "array"}),
        *({"not": {"$ref": "#/$defs/d"}}, {"not": {"$ref": "#/properties/a"}}),
        *({"$ref": "#/properties/a"}, {"$ref": "#/$defs/d/properties/b"}),
    ]
)


def schemas_over(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    members = st.dictionaries(NAMES, inner, min_size=1, max_size=2)
    some = st.lists(inner, min_size=1, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", ["object", "array"]]),
            "properties": members,
            "required": st.lists(NAMES, max_size=1),
            "allOf": some,
            "anyOf": some,
            "oneOf": some,
            "if": inner,
            "then": inner,
            "else": inner,
            "not": inner,
            "dependentSchemas": members,
            "items": inner,
            "prefixItems": some,
            "contains": inner,
            "additionalProperties": inner,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=1),
            "unevaluatedProperties": inner,
            "$ref": st.sampled_from(["#/$defs/d", "#/$defs/e"]),
        },
    ).map(lambda drawn: dict(list(drawn.items())[:4]))


SCHEMAS = st.recursive(LEAVES, schemas_over, max_leaves=8)
OBJECTS = st.dictionaries(NAMES, SCHEMAS, min_size=1, max_size=3).map(
    lambda members: {"type": "object", "properties": members}
)
DOCUMENTS = st.builds(
    lambda root, d, e: {**root, "$defs": {"d": d, "e": e}},
    OBJECTS | SCHEMAS.filter(lambda schema: isinstance(schema, dict)),
    OBJECTS | SCHEMAS,
    OBJECTS | SCHEMAS,
)
VALUES = st.recursive(
    st.sampled_from([1, "a", None]),
    lambda inner: st.dictionaries(NAMES, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=6,
)


def compiled(schema: Any) -> jsonschema_rs.Draft202012Validator | None:
    positions = Subschemas(schema)
    references = ((each, each.keywords.get("$ref")) for each in positions)
    if any(isinstance(ref, str) and not positions.target(each, ref) for each, ref in references):
        return None  # the validator does not look where it need not
    try:
        return jsonschema_rs.Draft202012Validator(schema)
    except (ValueError, jsonschema_rs.ValidationError):
        return None  # its references lead round in a circle


def is_declared(validator: jsonschema_rs.Draft202012Validator, value: Json) -> bool:
    """Return whether every member of every object in a valid value is one of some `properties`."""
    declared: dict[str, set[str]] = {}
    for each in validator.evaluate(value).annotations():
        if each["schemaLocation"].endswith("/properties"):
            names = cast("list[str]", each["annotations"])
            declared.setdefault(each["instanceLocation"], set()).update(names)
    return all(
        set(members) <= declared.get(pointer, set()) for pointer, members in objects("", value)
    )


def objects(pointer: str, value: Json) -> list[tuple[str, dict[str, Json]]]:
    items = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        items = enumerate(value)
    inside = [found for key, item in items for found in objects(pointer + pointer_join(key), item)]
    return [(pointer, value), *inside] if isinstance(value, dict) else inside


@settings(deadline=None, max_examples=200)
@given(DOCUMENTS, st.lists(VALUES, min_size=1, max_size=12))
def test_closing_refuses_what_is_not_declared_alone(schema, values):
    before = compiled(schema)
    if before is None:
        return
    closed: Any = close(schema)
    after = jsonschema_rs.Draft202012Validator(closed)
    for value in values:
        if not before.is_valid(value):
            assert not after.is_valid(value), (schema, closed, value)
        elif is_declared(before, value):
            assert after.is_valid(value), (schema, closed, value)


@settings(deadline=None, max_examples=200)
@given(DOCUMENTS)
def test_closing_twice_is_closing_once(schema):
    closed = close(schema)
    assert close(closed) == closed

"""Plain schemas are closed to what all others are closed to."""

import json
from typing import Any

import pytest

from tallystick.compatibility.forms.dialect import localised
from tallystick.compatibility.forms.plain import closed_plainly, is_plain
from tallystick.compatibility.forms.producer import close
from tallystick.subschema import DRAFT_2020_12
from tests.conformance.compatibility.suites import CORPUS, tool_schemas

STRING = {"type": "string"}

PLAIN: list[Any] = [
    True,
    False,
    {},
    STRING,
    {"properties": {}},
    {"properties": {"a": STRING}},
    {"properties": {"a": STRING}, "additionalProperties": True},
    {"properties": {"a": {"properties": {"b": STRING}}}, "additionalProperties": STRING},
    {"additionalProperties": {"properties": {"b": STRING}}},
    {"type": "array", "items": {"properties": {"a": True}}},
    {"items": {"items": {"properties": {"properties": STRING}}}},
    {"type": ["object", "null"], "properties": {"a": {"enum": [{"properties": {}}]}}},
]


def generally(schema: Any) -> Any:
    """Close a schema the long way: what it may refer to makes it one that is not plain."""
    closed: Any = close({**schema, "$defs": {}})
    return {keyword: value for keyword, value in closed.items() if keyword != "$defs"}


@pytest.mark.parametrize("schema", PLAIN, ids=json.dumps)
def test_a_plain_schema_is_closed_as_any_other(schema: Any):
    expected = generally(schema) if isinstance(schema, dict) else schema

    assert is_plain(schema)
    assert localised(schema) is schema
    assert closed_plainly(schema) == expected
    assert close(schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"properties": {"a": {"anyOf": [STRING]}}},
        {"items": {"patternProperties": {"a": True}}},
        {"properties": {"a": STRING}, "unevaluatedProperties": STRING},
        {"additionalProperties": {"$id": "a"}},
        {"$schema": DRAFT_2020_12},
        {"dependencies": {"a": ["b"]}},
    ],
    ids=json.dumps,
)
def test_what_says_more_is_left_to_the_long_way(schema: Any):
    assert not is_plain(schema)


def test_what_is_closed_already_comes_back_as_it_is():
    schema = {"properties": {"a": STRING}, "additionalProperties": False}

    assert close(schema) is schema


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the tools are not in {CORPUS}")
def test_the_plain_schemas_of_real_tools_are_closed_as_any_other():
    schemas = [localised(schema) for _, schema in tool_schemas()]
    plain = [schema for schema in schemas if is_plain(schema)]

    assert len(plain) > len(schemas) / 2
    assert [closed_plainly(schema) for schema in plain] == [generally(each) for each in plain]

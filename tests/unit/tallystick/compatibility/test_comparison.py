"""Comparisons: both producers' judgements, and what is refused."""

import json
from typing import Any

import pytest

from tallystick.compatibility.comparison import compare
from tallystick.compatibility.verdict import Answer, Producer
from tallystick.errors import InvalidContract, InvalidRequest
from tallystick.subschema import DRAFT_04, DRAFT_07

OPEN: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
DEMANDING: Any = OPEN | {"required": ["a"]}
NARROW = OPEN | {"additionalProperties": False}


def test_the_verdict_is_the_one_for_the_producer_that_was_asked_about():
    declared, whatever = compare(OPEN, NARROW), compare(OPEN, NARROW, "any")

    assert declared.verdict is Answer.COMPATIBLE
    assert declared.proof is not None
    assert declared.witness is declared.obstacle is None
    assert whatever.verdict is Answer.INCOMPATIBLE
    assert whatever.witness is not None
    assert whatever.producer is Producer.ANY
    for said in (declared, whatever):
        assert (said.declared.verdict, said.any.verdict) == (
            Answer.COMPATIBLE,
            Answer.INCOMPATIBLE,
        )


def test_an_undecided_comparison_says_why():
    said = compare(OPEN, OPEN | {"minProperties": 1}, budget=0)

    assert said.verdict is Answer.UNDECIDED
    assert said.obstacle is not None
    assert said.obstacle.reason == "budget"


def test_changes_are_listed():
    said = compare(OPEN, DEMANDING)

    assert len(said.changes) == 1


def test_a_comparison_is_json():
    said = compare(OPEN, DEMANDING).to_json()

    assert json.loads(json.dumps(said)) == said
    assert said["verdict"] == "incompatible"
    assert said["producer"] == "declared"
    assert {*said} == {"producer", "verdict", "witness", "producers", "changes"}


@pytest.mark.parametrize(
    ("schema", "dialect", "verdict"),
    [
        ({"$schema": DRAFT_04, "minimum": 1, "exclusiveMinimum": True}, None, "compatible"),
        (
            {"$schema": DRAFT_04.rstrip("#"), "minimum": 1, "exclusiveMinimum": True},
            None,
            "compatible",
        ),
        ({"minimum": 1, "exclusiveMinimum": True}, DRAFT_04, "compatible"),
        ({"items": [{"const": 1}]}, DRAFT_07, "incompatible"),
    ],
)
def test_a_dialect_is_said_or_stated(schema: Any, dialect: str | None, verdict: str):
    assert (
        compare(schema, {"minimum": 1, "not": {"enum": [1]}}, "any", dialect=dialect).verdict
        == verdict
    )


def test_formats_count_where_they_are_asserted():
    date: Any = {"type": "string", "format": "date"}

    assert compare({"type": "string"}, date).verdict is Answer.COMPATIBLE
    assert compare({"type": "string"}, date, assert_format=True).verdict is Answer.INCOMPATIBLE


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "text"},
        {"$schema": "https://example.org/own"},
        "string",
        None,
        [],
        {"minimum": "1"},
    ],
)
def test_what_is_no_schema_is_refused(schema: Any):
    with pytest.raises(InvalidContract):
        compare(schema, {})
    with pytest.raises(InvalidContract):
        compare({}, schema)


def test_a_schema_that_is_nested_too_deeply_is_refused():
    schema: Any = {}
    for _ in range(10_000):
        schema = {"not": schema}

    with pytest.raises(InvalidContract, match="nested"):
        compare(schema, {})


def test_an_unknown_producer_is_refused():
    with pytest.raises(InvalidRequest) as refused:
        compare({}, {}, "nobody")

    assert refused.value.pointer == "/producer"

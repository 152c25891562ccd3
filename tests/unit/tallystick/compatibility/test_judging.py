"""Judgements: what both sides' validators do not confirm is never reported."""

from typing import Any

import pytest

from tallystick.compatibility.budget import Budget
from tallystick.compatibility.judging import Side, judge
from tallystick.compatibility.prover import PROVER
from tallystick.compatibility.verdict import Answer
from tallystick.subschema import DRAFT_04, DRAFT_06, DRAFT_07, DRAFT_2020_12
from tests.unit.tallystick.compatibility.asked import obstacle, rules, witness

TEXT: dict[str, Any] = {"type": "string"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TEXT, TEXT),
        ({"type": "string", "minLength": 1}, {"minLength": 1, "type": "string"}),
        (TEXT, TEXT | {"description": "a text", "default": "x"}),
        ({"anyOf": [TEXT, {"type": "null"}]}, {"anyOf": [{"type": "null"}, TEXT]}),
        ({"$ref": "https://example.org/elsewhere"}, {"$ref": "https://example.org/elsewhere"}),
    ],
)
def test_what_says_the_same_is_compatible_with_itself(old: Any, new: Any):
    assert rules(old, new) == {"identity"}


def tree(**annotations: Any) -> dict[str, Any]:
    """Return a recursive schema with more ways into itself than a search can go."""
    again = {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}
    branches = [{"type": "boolean"}, {"type": "array", "items": True}, *again["anyOf"]]
    return {
        "$ref": "#/$defs/tree",
        "$defs": {
            "tree": {
                "type": "object",
                "properties": {
                    "one": {"anyOf": branches},
                    "many": {"anyOf": [{"type": "array", "items": again}, *branches]},
                    "named": {"type": "object", "additionalProperties": again},
                    "left": {**again, **annotations},
                    "right": again,
                },
            }
        },
    }


def test_no_text_changes_what_a_recursive_schema_says():
    texts = {"title": "Left", "description": "what stands left", "examples": [{}], "default": None}
    budget = Budget(100)
    assert judge(Side(tree()), Side(tree(**texts)), budget).verdict is Answer.COMPATIBLE


@pytest.mark.parametrize(
    "reference", ["#/examples/0", "#/default", "#/%65xamples/0", "#/properties/x/examples/0"]
)
def test_an_example_that_is_referred_to_is_no_annotation(reference: str):
    def referring(schema: dict[str, Any]) -> dict[str, Any]:
        held = {"examples": [schema], "default": schema}
        return {"$ref": reference, **held, "properties": {"x": held}}

    judgement = judge(Side(referring(TEXT)), Side(referring({"type": "integer"})))
    assert judgement.verdict is not Answer.COMPATIBLE


def test_one_is_not_true():
    assert witness({"const": 1}, {"const": True}) == 1
    assert witness({"enum": [[0]]}, {"enum": [[False]]}) == [0]


@pytest.mark.parametrize(
    ("old", "before", "new", "after", "verdict"),
    [
        # from draft-06 on 1.0 is an integer, in draft-04 it may be none: the wider reading decides
        ({"type": "integer"}, DRAFT_06, {"type": "integer"}, DRAFT_2020_12, "compatible"),
        # an older keyword is the newer one by another name
        (
            {"dependencies": {"a": ["b"]}},
            DRAFT_07,
            {"dependentRequired": {"a": ["b"]}},
            DRAFT_2020_12,
            "compatible",
        ),
        (
            {"items": [TEXT], "additionalItems": False},
            DRAFT_07,
            {"prefixItems": [TEXT], "items": False},
            DRAFT_2020_12,
            "compatible",
        ),
        (
            {"minimum": 1, "exclusiveMinimum": True},
            DRAFT_04,
            {"exclusiveMinimum": 1},
            DRAFT_07,
            "compatible",
        ),
        # what a dialect lacks constrains nothing
        ({"const": 1}, DRAFT_04, {"const": 1}, DRAFT_07, "incompatible"),
        (
            {"dependentRequired": {"a": ["b"]}},
            DRAFT_07,
            {"dependentRequired": {"a": ["b"]}},
            DRAFT_2020_12,
            "incompatible",
        ),
        # beside `$ref` nothing counts before 2020-12
        (
            {"$ref": "#/definitions/t", "minLength": 1, "definitions": {"t": TEXT}},
            DRAFT_07,
            TEXT | {"minLength": 1},
            DRAFT_07,
            "incompatible",
        ),
    ],
)
def test_each_side_is_read_in_its_own_dialect(
    old: Any, before: str, new: Any, after: str, verdict: str
):
    said = judge(Side(old, before), Side(new, after))

    assert said.verdict.value == verdict


def test_a_closed_writer_writes_only_what_is_declared():
    old = {"type": "object", "properties": {"a": TEXT}}
    new = {"type": "object", "properties": {"a": TEXT}, "additionalProperties": False}

    assert judge(Side(old), Side(new)).verdict is Answer.INCOMPATIBLE
    assert judge(Side(old, is_closed=True), Side(new)).verdict is Answer.COMPATIBLE
    assert judge(Side(old), Side(old, is_closed=True)).verdict is Answer.INCOMPATIBLE


def test_a_format_that_only_one_side_asserts():
    date = TEXT | {"format": "date"}

    assert judge(Side(date, assert_format=True), Side(date)).verdict is Answer.COMPATIBLE
    assert judge(Side(date), Side(date, assert_format=True)).verdict is Answer.INCOMPATIBLE


def test_a_witness_says_how_it_breaks_the_reader():
    said = judge(Side({"type": "object"}), Side({"required": ["a"]}))

    assert said.witness is not None
    assert said.witness.value == {}
    assert [each.keyword for each in said.witness.violations] == ["required"]


def test_a_witness_is_small():
    old = {"type": "object", "properties": {"a": {"type": "integer"}, "b": TEXT}, "required": ["b"]}
    new = {"properties": {"a": {"maximum": 10}}}

    assert witness(old, new) == {"b": "", "a": 11}


def test_what_the_search_leaves_open_is_put_to_the_prover():
    old = TEXT | {"format": "ipv4", "pattern": "^1"}

    said = judge(Side(old, assert_format=True), Side({"format": "ipv4"}, assert_format=True))

    assert said.verdict is Answer.COMPATIBLE
    assert said.proof is not None
    assert said.proof.prover in ("tallystick", PROVER)


def test_a_reference_that_leads_nowhere_is_undecided():
    stopped = obstacle({"$ref": "https://example.org/elsewhere"}, TEXT)

    assert stopped.keyword == "$ref"


@pytest.mark.parametrize("bound", [10**400, -(10**400), 1e308, 2**64])
def test_numbers_beyond_doubles_are_no_trouble(bound: float):
    old = {"type": "number", "exclusiveMinimum": bound, "multipleOf": 0.5}

    assert judge(Side(old), Side(False)).verdict is not Answer.COMPATIBLE


def test_a_spent_budget_is_an_obstacle():
    properties: Any = {f"p{index}": TEXT for index in range(100)}
    old: Any = {"properties": properties}
    new: Any = {"additionalProperties": TEXT, "properties": properties}

    said = judge(Side(old), Side(new), Budget(10))

    assert said.obstacle is not None
    assert said.obstacle.reason == "budget"

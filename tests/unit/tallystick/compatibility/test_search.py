"""The tableau: choices, listed values, what differs from a value, and questions that come back."""

from typing import Any

import pytest

from tallystick.compatibility.budget import Budget
from tallystick.compatibility.judging import Side, judge
from tallystick.compatibility.verdict import Answer
from tests.unit.tallystick.compatibility.asked import obstacle, rules, witness

TEXT: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}
ARRAY: dict[str, Any] = {"type": "array"}
PAIR = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (TEXT, {"type": ["string", "null"]}, "type"),
        ({"type": "null"}, {"const": None}, "type"),
        ({"type": "boolean"}, {"enum": [False, True]}, "type"),
        (False, {"const": 1}, "type"),
        ({"allOf": [TEXT, NUMBER]}, False, "type"),
        ({"enum": [1, "a"]}, {"type": ["integer", "string"]}, "enum"),
        ({"enum": [1, 2]}, {"enum": [1, 2, 3]}, "enum"),
        ({"const": {"a": 1}}, PAIR, "enum"),
        (INTEGER, NUMBER, "contradiction"),
        (TEXT | {"minLength": 1}, {"minLength": 1}, "contradiction"),
    ],
)
def test_a_case_closes(old: Any, new: Any, rule: str):
    assert rules(old, new) == {rule}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"anyOf": [INTEGER, TEXT]}, {"type": ["string", "integer"]}),
        ({"anyOf": [TEXT, INTEGER], "not": TEXT}, INTEGER),
        ({"oneOf": [INTEGER, NUMBER]}, {"not": INTEGER}),
        ({"oneOf": [TEXT, TEXT]}, False),
        ({"oneOf": [TEXT, INTEGER]}, {"anyOf": [INTEGER, TEXT]}),
        ({"not": {"oneOf": [{}, TEXT]}}, TEXT),
        (TEXT | {"if": {"maxLength": 3}, "then": {"minLength": 1}}, {"minLength": 1}),
        (PAIR | {"additionalProperties": False}, {"const": {"a": 1}}),
        (ARRAY | {"prefixItems": [{"const": 1}], "minItems": 1, "maxItems": 1}, {"const": [1]}),
        (
            {"type": "object", "minProperties": 1, "oneOf": [PAIR, {"maxProperties": 0}]},
            {"required": ["a"]},
        ),
    ],
)
def test_no_choice_is_left(old: Any, new: Any):
    assert rules(old, new) & {"cases", "type", "contradiction", "language", "maxProperties"}


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ({}, TEXT, {}),
        ({"type": ["string", "null"]}, TEXT, None),
        ({"type": "boolean"}, {"const": True}, False),
        ({"enum": [1, "a"]}, INTEGER, "a"),
        (PAIR, {"const": {"a": 1}}, {"a": 1, "b": {}}),
        ({"enum": [{"a": 1}, {"a": 2}]}, {"const": {"a": 1}}, {"a": 2}),
        ({"type": "array", "items": {"const": 1}}, {"enum": [[], [1]]}, [1, 1]),
        ({"anyOf": [INTEGER, NUMBER]}, {"oneOf": [INTEGER, NUMBER]}, 0),
        ({"oneOf": [INTEGER, NUMBER]}, INTEGER, 0.1),
        (INTEGER, {"if": {"minimum": 5}, "then": {"maximum": 7}}, 8),
    ],
)
def test_a_value_is_found(old: Any, new: Any, value: Any):
    assert witness(old, new) == value


def of(link: Any) -> dict[str, Any]:
    """Return a schema that refers to its one definition."""
    return {"$ref": "#/$defs/link", "$defs": {"link": link}}


LINK = {"$ref": "#/$defs/link"}
LIST = {"type": "object", "properties": {"next": LINK}}
ENDLESS = of(LIST | {"required": ["next"]})


def test_a_value_without_an_end_is_none():
    assert "recursion" in rules(ENDLESS, False)
    assert rules(of(ARRAY | {"items": LINK, "minItems": 1}), False)
    assert rules(of({"anyOf": [LIST | {"required": ["next"]}, False]}), TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (of(LIST), of({"type": ["object", "null"], "properties": {"next": LINK}})),
        (
            of({"anyOf": [INTEGER, {"type": "array", "items": LINK}]}),
            of({"anyOf": [NUMBER, {"type": "array", "items": LINK}]}),
        ),
        (
            of(LIST | {"properties": {"next": LINK, "value": INTEGER}}),
            of(LIST | {"properties": {"next": LINK, "value": NUMBER}}),
        ),
    ],
)
def test_a_recursive_schema_is_within_a_wider_one(old: Any, new: Any):
    assert rules(old, new)


def test_a_recursive_schema_is_not_within_a_narrower_one():
    old = of({"anyOf": [{"type": "null"}, ARRAY | {"items": LINK, "minItems": 1}]})
    new = {"anyOf": [{"type": "null"}, {"items": {"type": "null"}}]}

    assert witness(old, new) == [[None]]


def test_what_is_closed_inside_a_question_may_be_open_outside_of_it():
    # Inside of "even" there is no "odd" but through another "even"; by itself there is one.
    odd = {"type": "object", "properties": {"n": {"$ref": "#/$defs/even"}}, "required": ["n"]}
    even = {"anyOf": [odd | {"properties": {"n": {"$ref": "#/$defs/odd"}}}, {"type": "null"}]}
    both = {"even": {"$ref": "#/$defs/even"}, "odd": {"$ref": "#/$defs/odd"}}
    old = {"type": "object", "properties": both, "required": ["even", "odd"]}

    found: Any = witness(old | {"$defs": {"even": even, "odd": odd}}, False)

    assert found["odd"] == {"n": None}


def test_a_proof_says_where_it_closed():
    old: Any = {"type": "object", "properties": {"a/b": {"type": "array", "items": INTEGER}}}
    new: Any = {"properties": {"a/b": {"items": NUMBER}}}

    said = judge(Side(old), Side(new))

    assert said.proof is not None
    assert [step.path for step in said.proof.steps] == ["/a~1b/*", "/a~1b", ""]


def test_a_keyword_that_is_not_understood_decides_nothing():
    elsewhere = {"$ref": "https://example.org/elsewhere"}
    old = {"type": "object", "properties": {"a": elsewhere}, "required": ["a"]}

    assert rules(old, {"minProperties": 1})
    stopped = obstacle(old, {"properties": {"a": TEXT}})
    assert (stopped.path, stopped.keyword) == ("/a", "$ref")


def test_nesting_beyond_what_is_followed_is_not_known():
    inner: Any = {"type": "array", "items": INTEGER}
    wide: Any = {"items": NUMBER}
    for _ in range(40):
        inner, wide = {"type": "array", "items": inner}, {"items": wide}
    for _ in range(40):
        inner, wide = {"allOf": [{"type": "array", "items": inner}]}, {"items": wide}

    assert judge(Side(inner), Side(wide)).verdict is not Answer.INCOMPATIBLE


def test_many_choices_are_bounded_by_the_budget():
    choices = [
        {"anyOf": [{"required": [f"a{index}"]}, {"required": [f"b{index}"]}]} for index in range(60)
    ]
    limits = [{"not": {"required": [f"a{index}", f"b{index - 1}"]}} for index in range(1, 60)]
    old = {"type": "object", "allOf": [*choices, *limits], "maxProperties": 59}

    said = judge(Side(old), Side(False), Budget(20_000))

    assert said.verdict in (Answer.COMPATIBLE, Answer.UNDECIDED)

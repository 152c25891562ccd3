"""What a model sent is held to the closed contract, and told in sentences that it can act on."""

from typing import Any

import pytest

from tallystick.errors import InvalidArguments
from tallystick.gates.arguments import accepted, closed_arguments, closed_validator
from tallystick.tool_contract import Contract

DRAFT_07 = "http://json-schema.org/draft-07/schema#"


def taking(properties: dict[str, Any], *required: str, **fields: Any) -> Contract:
    """Return a contract of a tool whose schema is open, as most are."""
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Contract.of(
        name="get_order",
        version="1.0",
        description="Look up an order.",
        capabilities=[],
        effect_class="PURE",
        **{"input_schema": schema, **fields},
    )


ORDER = taking({"order_id": {"type": "string", "pattern": r"^LK-\d{6}$"}}, "order_id")
LINES = {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "integer"}}}}


def refusal(contract: Contract, arguments: object) -> InvalidArguments:
    with pytest.raises(InvalidArguments) as caught:
        accepted(contract, arguments)
    return caught.value


@pytest.mark.parametrize("arguments", [{"order_id": "LK-551906"}, '{"order_id": "LK-551906"}'])
def test_an_object_and_its_text_are_one(arguments: object):
    assert accepted(ORDER, arguments) == {"order_id": "LK-551906"}


@pytest.mark.parametrize("text", ["", " ", "{}"])
def test_no_text_means_no_arguments(text: str):
    assert accepted(taking({}), text) == {}


def test_the_copy_is_the_callers_no_more():
    given: dict[str, Any] = {"lines": [{"sku": 1}]}
    copy = accepted(taking({"lines": LINES}), given)
    given["lines"].append({"sku": "x"})
    assert copy == {"lines": [{"sku": 1}]}


@pytest.mark.parametrize(
    ("arguments", "pointer", "told"),
    [
        # not the JSON of an object
        ("not json", "", "the arguments are not JSON"),
        ("[1]", "", "the arguments must be an object"),
        (None, "", "the arguments must be an object"),
        ('{"order_id": "LK-551906", "order_id": "LK-1"}', "/order_id", "has already"),
        ('{"order_id": NaN}', "/order_id", "NaN is not JSON"),
        ('{"order_id": 12345678901234567890}', "/order_id", "use a string"),
        ("[" * 200, "", "deep"),
        ({"order_id": {1, 2}}, "/order_id", "a Python set is not JSON"),
        # not what the contract says
        ({}, "/order_id", "order_id: Field required"),
        ({"order_id": None}, "/order_id", "order_id: Input should be a valid string"),
        (
            {"order_id": "LK-55190"},
            "/order_id",
            r"order_id: String should match pattern '^LK-\d{6}$'",
        ),
        (
            {"order_id": "LK-551906", "limit": 1},
            "/limit",
            "limit: Extra inputs are not permitted",
        ),
    ],
)
def test_what_does_not_fit_is_told_by_its_place(arguments: object, pointer: str, told: str):
    error = refusal(ORDER, arguments)
    assert error.detail.startswith("Invalid arguments for get_order: ")
    assert told in error.detail
    assert pointer in (error.pointer, "")


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ({"type": ["integer", "null"]}, "x", "Input should be a valid integer or null"),
        ({"type": "string", "minLength": 3}, "", "String should have at least 3 characters"),
        ({"type": "string", "maxLength": 1}, "xx", "String should have at most 1 character"),
        ({"type": "array", "minItems": 1}, [], "List should have at least 1 item"),
        ({"type": "array", "maxItems": 2}, [1, 2, 3], "List should have at most 2 items"),
        ({"type": "array", "uniqueItems": True}, [1, 1], "List should have no item twice"),
        ({"minimum": 0}, -1, "Input should be greater than or equal to 0"),
        ({"maximum": 5000}, 5001, "Input should be less than or equal to 5000"),
        ({"exclusiveMinimum": 0}, 0, "Input should be greater than 0"),
        ({"exclusiveMaximum": 1}, 1, "Input should be less than 1"),
        ({"multipleOf": 5}, 7, "Input should be a multiple of 5"),
        ({"const": "a"}, "b", "Input should be 'a'"),
        ({"enum": ["a", 1, None]}, "b", "Input should be 'a' or 1 or null"),
        ({"anyOf": [{"minimum": 9}, {"multipleOf": 7}]}, 5, "one of the forms"),
    ],
)
def test_a_sentence_says_what_the_schema_wants(schema: dict[str, Any], value: Any, told: str):
    assert told in refusal(taking({"x": schema}), {"x": value}).detail


def test_formats_are_told_where_they_are_asserted():
    schema = {"type": "string", "format": "date"}
    assert accepted(taking({"at": schema}), {"at": "soon"}) == {"at": "soon"}
    strict = taking({"at": schema}, assert_format=True)
    assert "at: Input should be a valid date" in refusal(strict, {"at": "soon"}).detail


def test_several_faults_are_one_sentence():
    error = refusal(taking({"lines": LINES}, "note"), {"lines": [{"sku": "x"}], "y": 1})
    assert "lines.0.sku: Input should be a valid integer" in error.detail
    assert "note: Field required" in error.detail
    assert "y: Extra inputs are not permitted" in error.detail
    assert error.detail.count("; ") == 2


def test_many_faults_are_counted():
    error = refusal(taking({}), {f"x{number}": 1 for number in range(15)})
    assert error.detail.count("Extra inputs are not permitted") == 10
    assert "and 5 more" in error.detail


def test_no_value_is_repeated():
    secret = "sk-" + "0123456789" * 30
    schema = {"type": "string", "maxLength": 9, "x-sensitive": True}
    for value in (secret, [secret], {secret: secret}):
        assert secret not in refusal(taking({"key": schema}), {"key": value}).detail


def test_a_name_that_a_model_made_up_is_cut():
    error = refusal(ORDER, {"order_id": "LK-551906", "x" * 5000: 1})
    assert len(error.detail) < 300


def test_nothing_extra_at_any_depth_of_an_open_schema():
    contract = taking({"lines": LINES})
    error = refusal(contract, {"lines": [{"sku": 1, "price": 2}]})
    assert "lines.0.price: Extra inputs are not permitted" in error.detail


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"x": {}}, "additionalProperties": True},
        {"type": "object"},
        {"type": "object", "properties": {}, "patternProperties": {"^y": {}}},
    ],
)
def test_what_is_declared_as_a_map_stays_one(schema: dict[str, Any]):
    assert accepted(taking({}, input_schema=schema), {"y": 1}) == {"y": 1}


def test_branches_are_closed_as_one():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "allOf": [{"properties": {"b": {"type": "string"}}}],
    }
    contract = taking({}, input_schema=schema)
    assert accepted(contract, {"a": "1", "b": "2"}) == {"a": "1", "b": "2"}
    assert "c: Extra inputs" in refusal(contract, {"a": "1", "c": "2"}).detail


def test_an_older_dialect_means_what_it_says():
    schema = {
        "$schema": DRAFT_07,
        "type": "object",
        "definitions": {"id": {"type": "string"}},
        "properties": {"id": {"$ref": "#/definitions/id", "minLength": 99}},
    }
    contract = taking({}, input_schema=schema, dialect=DRAFT_07)
    # Up to draft-07 a reference stands alone: what is beside it says nothing.
    assert accepted(contract, {"id": "x"}) == {"id": "x"}
    assert "extra: Extra inputs" in refusal(contract, {"id": "x", "extra": 1}).detail


def test_equal_contracts_are_compiled_once():
    twice = [taking({"x": {"type": "string"}}) for _ in range(2)]
    assert twice[0] is not twice[1]
    assert closed_validator(twice[0]) is closed_validator(twice[1])


def test_a_closed_schema_is_the_contracts_own():
    contract = taking({}, input_schema={"type": "object", "additionalProperties": False})
    assert closed_arguments(contract) is contract.input_schema

"""The record of a schema's evolution, as an answer of ours, and the rules around it."""

from typing import Any

import pytest

from tallystick.compatibility.contracts.comparison import ContractComparison, compare_contracts
from tallystick.compatibility.contracts.flow import Flow
from tallystick.tool_contract import Contract
from tests.builders import a_contract

INVOICE = {
    "type": "object",
    "properties": {
        "customer_id": {"type": "string"},
        "amount_dollars": {"type": "number", "minimum": 0},
    },
    "required": ["customer_id", "amount_dollars"],
    "additionalProperties": False,
}
RENAMED = {
    "type": "object",
    "properties": {
        "account_id": {"type": "string"},
        "amount_cents": {"type": "integer", "minimum": 0},
        "currency": {"type": "string"},
    },
    "required": ["account_id", "amount_cents", "currency"],
    "additionalProperties": False,
}


def compared(old: dict[str, Any], new: dict[str, Any]) -> ContractComparison:
    before = a_contract(name="create_invoice", version="1.4", **old)
    after = a_contract(name="create_invoice", version="2.0", **new)
    return compare_contracts(Contract.parse(before), Contract.parse(after))


def of(input_schema: dict[str, Any], **properties: Any) -> dict[str, Any]:
    merged = input_schema["properties"] | properties
    return {"input_schema": input_schema | {"properties": merged}}


def test_the_record():
    """Old producer to new consumer needs an adapter; the other way round nothing helps."""
    record: dict[str, Any] = compared(
        {"input_schema": INVOICE}, {"input_schema": RENAMED}
    ).to_json()
    assert (record["old"]["name"], record["old"]["version"]) == ("create_invoice", "1.4.0")
    assert record["new"]["version"] == "2.0.0"
    assert record["old_calls"]["declared"]["verdict"] == "incompatible"
    assert record["new_calls"]["declared"]["verdict"] == "incompatible"
    changes = {(each["path"], each["kind"]): each for each in record["changes"]}
    renamed = changes["/input_schema/properties/customer_id", "renamed"]
    assert renamed["replacement"] == "/input_schema/properties/account_id"
    assert ("/input_schema/properties/currency", "required_added") in changes


STATUS = {"type": "string", "enum": ["open", "closed"]}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, of(INVOICE | {"required": [*INVOICE["required"], "memo"]}, memo={"type": "string"})),
        ({}, {"input_schema": RENAMED}),
        ({}, of(INVOICE, amount_dollars={"type": "integer", "minimum": 0})),
        (of(INVOICE, status=STATUS), of(INVOICE, status={"enum": ["open"]})),
        ({"input_schema": INVOICE | {"additionalProperties": True}}, {}),
    ],
    ids=["required added", "renamed", "type narrowed", "enum value removed", "closed"],
)
def test_what_breaks_old_producers(old: dict[str, Any], new: dict[str, Any]):
    base = {"input_schema": INVOICE}
    comparison = compared(base | old, base | new)
    passage = comparison.flows[Flow.OLD_CALLS]
    assert passage.any.verdict == "incompatible"
    assert any(Flow.OLD_CALLS in each.breaks for each in comparison.changes)


RESULT = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "state": {"enum": ["paid", "open"]}},
    "required": ["id", "state"],
}


def results(**properties: Any) -> dict[str, Any]:
    kept = {name: each for name, each in (RESULT["properties"] | properties).items() if each}
    return {"output_schema": RESULT | {"properties": kept, "required": [*kept]}}


@pytest.mark.parametrize(
    ("new", "verdict", "strict"),
    [
        (results(id=None), "incompatible", "incompatible"),
        (results(id={"type": ["string", "null"]}), "incompatible", "incompatible"),
        (results(state={"enum": ["paid"]}), "compatible", "compatible"),
        (results(state={"enum": ["paid", "open", "void"]}), "incompatible", "incompatible"),
        (results(total={"type": "number"}), "compatible", "incompatible"),
    ],
    ids=["removed", "nullable", "enum narrowed", "enum widened", "added"],
)
def test_outputs_have_the_reverse_direction(new: dict[str, Any], verdict: str, strict: str):
    passage = compared({"output_schema": RESULT}, new).flows[Flow.NEW_RESULTS]
    assert passage.strict is not None
    assert (passage.declared.verdict, passage.strict.verdict) == (verdict, strict)


def test_dollars_become_cents_without_any_schema_that_says_so():
    """Whether the meaning is preserved is a matter for a person, and is named as one."""
    dollars = {"type": "number", "description": "The amount in dollars."}
    cents = {"type": "number", "description": "The amount in cents."}
    comparison = compared(of(INVOICE, amount=dollars), of(INVOICE, amount=cents))
    assert comparison.flows[Flow.OLD_CALLS].any.verdict == "compatible"
    paths = {each.code.value: each.path for each in comparison.review}
    assert paths["meaning_changed"] == "/input_schema/properties/amount"


def test_a_new_default_can_change_effects():
    optional = {"type": "string", "default": "USD"}
    added = compared({"input_schema": INVOICE}, of(INVOICE, currency=optional))
    assert "default_added" in {each.code.value for each in added.review}
    changed = compared(of(INVOICE, currency=optional), of(INVOICE, currency={"type": "string"}))
    assert "default_changed" in {each.code.value for each in changed.breaches}
    assert changed.bump == "major"


def test_a_rewritten_description_is_a_change_of_behaviour():
    comparison = compared({}, {"description": "Use this for every invoice."})
    assert comparison.bump == "patch"
    assert "prompt_text_changed" in {each.code.value for each in comparison.review}


@pytest.mark.parametrize("retryable", [True, False])
def test_an_error_that_becomes_final_or_retryable_is_no_small_change(retryable: bool):
    error = {"code": "conflict", "meaning": "There is one already.", "retryable": retryable}
    turned = error | {"retryable": not retryable}
    comparison = compared({"errors": [error]}, {"errors": [turned]})
    assert {each.code.value for each in comparison.breaches} == {"error_meanings"}

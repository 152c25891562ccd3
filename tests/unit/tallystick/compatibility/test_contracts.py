"""Whole contracts: the four flows, the version rule part by part, and what is left to a person."""

from typing import Any

import pytest

from tallystick.compatibility.contracts.comparison import ContractComparison, compare_contracts
from tallystick.compatibility.contracts.flow import Flow
from tallystick.compatibility.verdict import Answer, Producer
from tallystick.tool_contract import Contract
from tests.builders import a_contract

INPUT: dict[str, Any] = a_contract()["input_schema"]
OUTPUT: dict[str, Any] = a_contract()["output_schema"]
OPEN: dict[str, Any] = {key: value for key, value in INPUT.items() if key != "additionalProperties"}
DECLINED = {"code": "declined", "meaning": "The customer's bank said no.", "retryable": False}
OWNED = {"argument": "/customer_id", "kind": "customer", "subject": "customer_id"}
ANY = {"argument": "/customer_id"}
RETURNED = {"argument": "/customer_id", "tools": ["crm.find"]}
BUSY = {"code": "busy", "meaning": "The provider is busy.", "retryable": True}

YES, NO, OPEN_QUESTION = Answer.COMPATIBLE, Answer.INCOMPATIBLE, Answer.UNDECIDED


def contract(version: str = "1.0", **changes: Any) -> Contract:
    return Contract.parse(a_contract(version=version, **changes))


def compared(old: dict[str, Any] | None = None, **new: Any) -> ContractComparison:
    return compare_contracts(contract(**(old or {})), contract("1.1", **new))


def having(schema: dict[str, Any], **properties: Any) -> dict[str, Any]:
    """Return the schema with properties added, changed or, for None, taken away."""
    merged = schema["properties"] | properties
    kept = {name: each for name, each in merged.items() if each is not None}
    required = [name for name in schema["required"] if name in kept]
    return schema | {"properties": kept, "required": required}


def requiring(schema: dict[str, Any], *names: str) -> dict[str, Any]:
    return schema | {"required": [*schema["required"], *names]}


def optional(schema: dict[str, Any], name: str, default: Any) -> dict[str, Any]:
    """Return the schema with a required property made optional, with a default."""
    given = having(schema, **{name: schema["properties"][name] | {"default": default}})
    return given | {"required": [each for each in schema["required"] if each != name]}


def verdicts(comparison: ContractComparison, producer: Producer) -> dict[str, Answer]:
    return {flow.value: comparison.flows[flow].by(producer).verdict for flow in Flow}


def codes(findings: Any) -> list[str]:
    return [each.code.value for each in findings]


def kinds(comparison: ContractComparison) -> dict[str, str]:
    return {each.path: each.kind.value for each in comparison.changes}


# --- the four flows -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("new", "declared"),
    [
        ({"input_schema": having(INPUT, note={"type": "string"})}, (YES, NO, YES, YES)),
        ({"input_schema": having(INPUT, memo=None)}, (NO, YES, YES, YES)),
        ({"input_schema": requiring(INPUT, "memo")}, (NO, YES, YES, YES)),
        (
            {"input_schema": having(INPUT, amount_cents={"type": "integer", "minimum": 0})},
            (YES, NO, YES, YES),
        ),
        ({"output_schema": having(OUTPUT, total={"type": "integer"})}, (YES, YES, YES, YES)),
        (
            {"output_schema": requiring(having(OUTPUT, total={"type": "integer"}), "total")},
            (YES, YES, YES, NO),
        ),
        ({"output_schema": having(OUTPUT, invoice_id=None)}, (YES, YES, NO, YES)),
        (
            {"output_schema": having(OUTPUT, invoice_id={"type": ["string", "null"]})},
            (YES, YES, NO, YES),
        ),
        ({"output_schema": None}, (YES, YES, NO, YES)),
    ],
)
def test_each_flow_has_its_own_verdict(new: dict[str, Any], declared: tuple[Answer, ...]):
    flows = ("old_calls", "new_calls", "new_results", "old_results")
    found = verdicts(compared(**new), Producer.DECLARED)
    assert tuple(found[flow] for flow in flows) == declared


def test_every_answer_brings_its_evidence():
    comparison = compared(input_schema=requiring(INPUT, "memo"))
    witness = comparison.flows[Flow.OLD_CALLS].declared.witness
    assert witness is not None
    assert isinstance(witness.value, dict)
    assert witness.value.keys() == {"customer_id", "amount_cents"}
    assert [each.pointer for each in witness.violations] == ["/memo"]
    assert comparison.flows[Flow.NEW_CALLS].declared.proof is not None


def test_both_producer_models_are_told():
    """An optional parameter of an open schema harms no one who sends only what is declared."""
    comparison = compared({"input_schema": OPEN}, input_schema=having(OPEN, n={"type": "integer"}))
    assert comparison.flows[Flow.OLD_CALLS].declared.verdict is YES
    assert comparison.flows[Flow.OLD_CALLS].any.verdict is NO
    assert comparison.verdict(Producer.DECLARED) is YES
    assert comparison.verdict(Producer.ANY) is NO
    assert "undeclared_values" in codes(comparison.review)
    assert comparison.bump == "minor"


def test_strict_readers_are_told_of_apart():
    comparison = compared(output_schema=having(OUTPUT, total={"type": "integer"}))
    results = comparison.flows[Flow.NEW_RESULTS]
    assert results.strict is not None
    assert (results.declared.verdict, results.strict.verdict) == (YES, NO)
    assert "strict_readers" in codes(comparison.review)


def test_a_call_is_an_object_whatever_the_schema_leaves_open():
    free = {"properties": {"a": {"type": "string"}}}
    comparison = compared({"input_schema": free}, input_schema=free | {"type": "object"})
    assert comparison.flows[Flow.OLD_CALLS].any.verdict is YES


def test_a_root_that_is_referred_to_stays_what_it_is():
    """In the middle of the arguments, such a root stands for values of any type."""
    loose = {"properties": {"child": {"$ref": "#"}}}
    comparison = compared({"input_schema": loose}, input_schema=loose | {"type": "object"})
    assert comparison.flows[Flow.OLD_CALLS].any.verdict is NO


@pytest.mark.parametrize("is_old", [True, False])
def test_a_missing_output_schema_is_anything_and_said_so(is_old: bool):
    old, new = ({"output_schema": None}, {}) if is_old else ({}, {"output_schema": None})
    comparison = compared(old, **new)
    silent = "1.0.0" if is_old else "1.1.0"
    assert any(f"{silent} describes no results" in each for each in comparison.rule)
    kind = "output_schema_added" if is_old else "output_schema_removed"
    assert kinds(comparison)["/output_schema"] == kind
    assert verdicts(comparison, Producer.ANY)["new_results"] is (YES if is_old else NO)


# --- the version rule -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ({}, "none"),
        ({"description": "Send one invoice."}, "patch"),
        ({"title": "Send"}, "patch"),
        ({"examples": [{"customer_id": "C-1"}]}, "patch"),
        ({"lease_seconds": 31, "settle_seconds": 1, "result_limit": 100}, "patch"),
        ({"input_schema": INPUT | {"description": "All that is needed."}}, "patch"),
        ({"input_schema": INPUT | {"required": INPUT["required"][::-1]}}, "patch"),
        ({"capabilities": []}, "minor"),
        ({"input_schema": having(INPUT, note={"type": "string"})}, "minor"),
        ({"output_schema": having(OUTPUT, total={"type": "integer"})}, "minor"),
        ({"assert_format": True}, "minor"),
        # Every old call gives the argument, so that the default is for new calls alone.
        ({"input_schema": optional(INPUT, "customer_id", "anyone")}, "minor"),
        ({"input_schema": INPUT | {"required": []}}, "minor"),
    ],
)
def test_what_a_minor_version_is_enough_for(new: dict[str, Any], expected: str):
    comparison = compared(**new)
    assert (comparison.bump.value, comparison.breaches) == (expected, ())


@pytest.mark.parametrize(
    ("new", "code"),
    [
        ({"input_schema": requiring(INPUT, "memo")}, "old_calls"),
        ({"output_schema": having(OUTPUT, invoice_id={"type": "integer"})}, "new_results"),
        ({"output_schema": None}, "new_results"),
        ({"effect_class": "NON_RETRYABLE"}, "effect_class"),
        ({"capabilities": ["invoice:write:{tenant}", "a:b:c"]}, "wider_capabilities"),
        ({"errors": [DECLINED]}, "error_meanings"),
        ({"name": "billing.bill"}, "name"),
        (
            {"input_schema": having(INPUT, memo={"type": "string", "default": ""})},
            "default_changed",
        ),
    ],
)
def test_what_needs_a_major_version_or_a_review(new: dict[str, Any], code: str):
    comparison = compared(**new)
    assert comparison.bump == "major"
    assert codes(comparison.breaches) == [code]
    assert comparison.rule[0] == comparison.breaches[0].detail


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ([], [DECLINED], "error_added"),
        ([DECLINED], [], "error_removed"),
        ([DECLINED], [DECLINED | {"retryable": True}], "error_changed"),
        ([DECLINED], [DECLINED | {"not_executed": True}], "error_changed"),
        ([DECLINED], [DECLINED | {"meaning": "The card expired."}], "error_changed"),
        ([DECLINED, BUSY], [BUSY, DECLINED], None),
        ([DECLINED], [DECLINED | {"not_executed": False}], None),
    ],
)
def test_an_error_means_what_its_code_says(old: list[Any], new: list[Any], kind: str | None):
    comparison = compared({"errors": old}, errors=new)
    assert [each.kind.value for each in comparison.changes] == ([kind] if kind else [])
    assert codes(comparison.breaches) == (["error_meanings"] if kind else [])


def test_undecided_is_never_a_yes():
    old = having(INPUT, memo={"type": "string", "pattern": "^(a|b){3,9}c?$", "minLength": 3})
    new = having(INPUT, memo={"type": "string", "pattern": "^[ab]{3}([ab]*c?)$", "minLength": 3})
    comparison = compare_contracts(
        contract(input_schema=old), contract("1.1", input_schema=new), budget=1
    )
    assert comparison.flows[Flow.OLD_CALLS].declared.verdict is OPEN_QUESTION
    assert comparison.verdict() is OPEN_QUESTION
    assert comparison.bump == "major"
    assert "old_calls" in codes(comparison.breaches)
    told = [each for each in comparison.review if each.code == "undecided"]
    assert "budget" in told[0].detail


def test_a_proof_about_calls_that_nobody_can_make_is_none():
    """`tenant` is required and not declared: "declared calls" are no calls at all."""
    old = requiring(OPEN, "tenant")
    comparison = compared({"input_schema": old}, input_schema=requiring(old, "region"))
    assert comparison.bump == "major"
    assert "requires_undeclared" in codes(comparison.breaches)


# --- what changed ---------------------------------------------------------------------------------


def test_changes_stand_where_they_are_in_the_contract():
    comparison = compared(
        input_schema=having(INPUT, memo=None),
        output_schema=having(OUTPUT, total={"type": "integer"}),
        lease_seconds=31,
    )
    assert kinds(comparison) == {
        "/input_schema/properties/memo": "property_removed",
        "/output_schema/properties/total": "property_added",
        "/lease_seconds": "lease_seconds_changed",
    }
    breaks = {each.path: each.breaks for each in comparison.changes}
    assert breaks["/input_schema/properties/memo"] == {Flow.OLD_CALLS}
    assert breaks["/output_schema/properties/total"] == frozenset()


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ({}, {"approval": "never"}, None),
        ({}, {"attempts_max": 3}, None),
        ({}, {"approval": "always"}, "/approval"),
        ({}, {"attempts_max": 2}, "/attempts_max"),
        ({}, {"credential": None}, "/credential"),
        ({}, {"identity_fields": ["customer_id"]}, "/identity_fields"),
        (
            {"identity_fields": ["customer_id", "amount_cents"]},
            {"identity_fields": ["amount_cents", "customer_id"]},
            None,
        ),
        ({"examples": [1]}, {"examples": [True]}, "/examples"),
        ({}, {"dialect": "http://json-schema.org/draft-07/schema#"}, "/dialect"),
        ({}, {"ownership": [OWNED]}, "/ownership"),
        ({"returned": [RETURNED, ANY]}, {"returned": [ANY, RETURNED]}, None),
    ],
)
def test_a_default_that_is_spelled_out_is_no_change(
    old: dict[str, Any], new: dict[str, Any], path: str | None
):
    assert [each.path for each in compared(old, **new).changes] == ([path] if path else [])


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        # more is checked, or the same
        ({}, {"ownership": [OWNED], "returned": [ANY]}, []),
        ({"ownership": [OWNED]}, {"ownership": [{**OWNED, "kind": "account"}]}, []),
        ({"returned": [ANY]}, {"returned": [RETURNED]}, []),
        ({"returned": [ANY, RETURNED]}, {"returned": [RETURNED]}, []),
        # less is checked, or something else
        ({"ownership": [OWNED]}, {}, ["/ownership/0"]),
        ({"ownership": [OWNED]}, {"ownership": [{**OWNED, "subject": "x"}]}, ["/ownership/0"]),
        ({"returned": [RETURNED]}, {"returned": [ANY]}, ["/returned/0"]),
        ({"returned": [ANY]}, {"returned": [{"argument": "/memo"}]}, ["/returned/0"]),
    ],
)
def test_a_minor_version_checks_no_less(old: dict[str, Any], new: dict[str, Any], paths: list[str]):
    comparison = compared(old, **new)
    found = [each for each in comparison.breaches if each.code.value == "less_checked"]
    assert [each.path for each in found] == paths
    assert (comparison.bump.value == "major") is bool(paths)


def test_an_effect_class_changes_the_kind_with_it():
    comparison = compared(effect_class="PURE", idempotency=None)
    assert {"/effect_class", "/kind", "/idempotency"} <= kinds(comparison).keys()
    kind = next(each for each in comparison.changes if each.path == "/kind")
    assert (kind.old, kind.new) == ("write", "read")


# --- what a person has to judge -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ({}, {"description": "Send one invoice."}, "prompt_text_changed"),
        ({}, {"approval": "always"}, "approval_changed"),
        ({}, {"credential": "other-api"}, "credential_changed"),
        ({}, {"returned": [RETURNED]}, "checks_changed"),
        ({"ownership": [OWNED]}, {}, "checks_changed"),
        ({}, {"identity_fields": ["customer_id"]}, "identity_changed"),
        (
            {},
            {"input_schema": having(INPUT, note={"type": "string", "default": "none"})},
            "default_added",
        ),
        (
            {"input_schema": having(INPUT, q={"type": "string", "maxLength": 9})},
            {"input_schema": having(INPUT, query={"type": "string", "maxLength": 9})},
            "parameter_renamed",
        ),
        (
            {},
            {
                "input_schema": having(
                    INPUT, amount_cents={"type": "integer", "minimum": 1, "description": "Dollars."}
                )
            },
            "meaning_changed",
        ),
        (
            {},
            {
                "input_schema": having(
                    INPUT, customer_id=INPUT["properties"]["customer_id"] | {"description": "Payer"}
                )
            },
            "meaning_changed",
        ),
    ],
)
def test_what_no_schema_can_say_is_left_to_a_person(
    old: dict[str, Any], new: dict[str, Any], code: str
):
    assert code in codes(compared(old, **new).review)


def test_a_free_text_that_is_described_otherwise_measures_nothing():
    memo = {"type": "string", "description": "What it is for."}
    assert "meaning_changed" not in codes(compared(input_schema=having(INPUT, memo=memo)).review)


def test_nothing_is_left_to_judge_of_the_same_contract():
    comparison = compared()
    assert (comparison.review, comparison.changes, comparison.bump.value) == ((), (), "none")


@pytest.mark.parametrize(
    ("new", "code"),
    [
        ({"input_schema": having(INPUT, amount_cents=False)}, "accepts_nothing"),
        ({"input_schema": INPUT | {"minProperties": 9}}, "accepts_nothing"),
        ({"input_schema": requiring(OPEN, "tenant")}, "requires_undeclared"),
        ({"output_schema": having(OUTPUT, invoice_id={"enum": []})}, "returns_nothing"),
    ],
)
def test_what_is_surely_not_meant_is_a_warning(new: dict[str, Any], code: str):
    assert codes(compared(**new).warnings) == [code]


# --- equivalence ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ({}, True),
        ({"description": "Other words.", "lease_seconds": 31}, True),
        ({"input_schema": INPUT | {"maxProperties": 3}}, True),
        ({"input_schema": {"allOf": [INPUT], "type": "object"}}, True),
        ({"input_schema": having(INPUT, note={"type": "string"})}, False),
        ({"output_schema": None}, False),
        ({"effect_class": "NON_RETRYABLE"}, False),
        ({"capabilities": []}, False),
        ({"approval": "always"}, False),
        ({"returned": [RETURNED]}, False),
        ({"credential": None}, False),
        ({"attempts_max": 2}, False),
        ({"errors": [DECLINED]}, False),
        ({"input_schema": having(INPUT, memo={"type": "string", "default": "x"})}, False),
        ({"name": "billing.bill"}, False),
    ],
)
def test_what_is_proven_to_mean_the_same(new: dict[str, Any], expected: bool):
    assert compared(**new).is_equivalent is expected


def test_the_comparison_as_json():
    answer = compared(input_schema=requiring(INPUT, "memo")).to_json(Producer.ANY)
    assert (answer["compared"], answer["producer"]) == ("contracts", "any")
    assert (answer["verdict"], answer["bump"]) == ("incompatible", "major")
    assert {flow.value for flow in Flow} <= answer.keys()
    results: Any = answer["new_results"]
    assert results.keys() == {"declared", "any", "strict"}

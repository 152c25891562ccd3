"""The record of a schema's evolution, as an answer of ours, and the rules around it."""

from typing import Any

import pytest

from tallystick.compatibility.contracts.comparison import ContractComparison, compare_contracts
from tallystick.compatibility.contracts.flow import Flow
from tallystick.tool_contract import Contract
from tests.api import Api
from tests.builders import ARGUMENTS, a_contract, http_evidence
from tests.fixtures import Owner, Sweep
from tests.provider import Provider

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


# --- idempotency, errors, and a provider of whose state nobody knows ------------------------------


@pytest.fixture
async def reference(api: Api) -> dict[str, Any]:
    return await api.publish(a_contract())


async def test_equivalent_requests_of_two_versions_are_one_operation(
    api: Api, reference: dict[str, Any]
):
    """A retry by an agent of the new release is the call that the old one made."""
    first = (await api.plan(reference, key="order-7")).body
    newer = await api.publish(a_contract(version="3.0"))
    again = await api.plan(newer, key="order-7", run="run-2")
    assert (again.status, again.body["effect_id"]) == (200, first["effect_id"])
    assert again.body["version"] == "2.1.0", "it stays on the version that was recorded"
    by_default = {"type": "string", "default": "EUR"}
    schema = a_contract()["input_schema"]
    properties = schema["properties"] | {"currency": by_default}
    wider = a_contract(version="4.0", input_schema=schema | {"properties": properties})
    changed = ARGUMENTS | {"currency": "USD"}
    answer = await api.plan(await api.publish(wider), key="order-7", arguments=changed)
    assert answer.refusal == (409, "effect_conflict")


async def test_a_changed_effect_does_not_collide_with_an_old_key(
    api: Api, owner: Owner, reference: dict[str, Any]
):
    """Neither under the caller's key, nor at the provider."""
    first = await api.dispatched(reference, key="order-7")
    changed = ARGUMENTS | {"amount_cents": 1}
    answer = await api.plan(reference, key="order-7", arguments=changed)
    assert (answer.refusal, answer.body["retryable"]) == ((409, "effect_conflict"), False)
    assert await owner.one("SELECT count(*) FROM effect") == 1
    other = await api.dispatched(reference, effect="effect-2", key="order-8", arguments=changed)
    assert other["dispatch"]["idempotency_key"] != first["dispatch"]["idempotency_key"]


async def test_validation_errors_have_a_code_and_a_field_path(api: Api, reference: dict[str, Any]):
    for arguments, path in (
        (ARGUMENTS | {"amount_cents": 0}, "/amount_cents"),
        ({"customer_id": "C-42"}, "/amount_cents"),
        (ARGUMENTS | {"account_id": "C-42"}, "/account_id"),
    ):
        answer = await api.plan(reference, arguments=arguments)
        assert (answer.refusal, answer.body["pointer"]) == ((422, "invalid_arguments"), path)
        assert answer.body["retryable"] is False


async def test_retryability_is_said_and_is_true(api: Api, owner: Owner, reference: dict[str, Any]):
    """What may pass says so, and does; what is final leaves no call that could be repeated."""
    planned = (await api.plan(reference)).body
    await owner.suspend("billing.send_invoice", "2.1.0")
    passing = await api.dispatch(planned)
    assert (passing.code, passing.body["retryable"]) == ("contract_suspended", True)
    await owner.suspend("billing.send_invoice", "2.1.0", suspended=False)
    await api.rotate("billing-api")
    final = await api.dispatch(planned)
    assert (final.code, final.body["retryable"]) == ("credential_policy_changed", False)
    assert not (await api.dispatch(planned)).body["dispatch"]["owned"]


async def test_permission_denial(api: Api, owner: Owner, reference: dict[str, Any]):
    await api.ask("DELETE", "/v1/grants?principal=admin&capability=invoice:write:default")
    answer = await api.plan(reference, dispatch=api.asking())
    assert (answer.refusal, answer.body["retryable"]) == ((403, "capability_not_granted"), False)
    assert await owner.one("SELECT count(*) FROM effect") == 0


async def test_a_conflict_at_the_provider_is_a_failure_with_its_code(
    api: Api, reference: dict[str, Any]
):
    effect = await api.dispatched(reference)
    error = {"code": "conflict", "message": "There is one already."}
    await api.report(effect, "failed", error=error)
    shown = await api.show(effect)
    assert (shown["state"], shown["outcome"]["error"]) == ("FAILED", error)


async def test_a_partial_success_is_neither_success_nor_failure(
    api: Api, provider: Provider, sweep: Sweep
):
    """The provider did something else than was sent: a person looks, and nobody sends again."""
    effect = await api.dispatched(
        await api.publish(a_contract(evidence=http_evidence(provider.port)))
    )
    await api.report(effect, "unknown")
    provider.book(effect["effect_id"], amount_cents=ARGUMENTS["amount_cents"] - 1)
    await sweep.until(api, effect, "QUARANTINED")
    assert not (await api.dispatch(effect)).body["dispatch"]["owned"]


async def test_what_is_done_is_a_success_though_its_result_is_not_what_was_promised(
    api: Api, reference: dict[str, Any]
):
    effect = await api.dispatched(reference)
    await api.report(effect, "succeeded", result={"id": 7})
    shown = await api.show(effect)
    assert shown["state"] == "SUCCEEDED"
    assert shown["outcome"]["invalid_result"]


async def test_an_unknown_provider_state_settles_nothing(
    api: Api, provider: Provider, sweep: Sweep
):
    reference = await api.publish(a_contract(evidence=http_evidence(provider.port)))
    for status in ("pending", "a word that nobody knows", None):
        effect = await api.dispatched(reference, effect=str(status))
        await api.report(effect, "unknown")
        provider.books[effect["effect_id"]] = {"effect_id": effect["effect_id"], "status": status}
        await sweep.once()
        again = await api.plan(reference, effect=str(status), dispatch=api.asking())
        assert (again.body["state"], again.body["dispatch"]["owned"]) == ("UNKNOWN", False)


async def test_an_old_agent_does_not_repeat_a_mutation_on_a_new_final_error(
    api: Api, reference: dict[str, Any]
):
    """However it reads the error, the ledger answers the same call with how it ended."""
    effect = await api.dispatched(reference)
    await api.report(effect, "failed", error={"code": "account_closed"})
    for _ in range(2):
        again = await api.plan(reference, dispatch=api.asking())
        assert (again.body["state"], again.body["dispatch"]["owned"]) == ("FAILED", False)
    assert len((await api.show(effect))["attempts"]) == 1


async def test_nothing_turns_an_error_into_a_success(api: Api, reference: dict[str, Any]):
    """Neither a result that comes with it, nor a report that comes after it."""
    effect = await api.dispatched(reference)
    await api.report(effect, "failed", error={"code": "declined"}, result={"invoice_id": "i"})
    assert await api.state(effect) == "FAILED"
    assert (await api.report(effect, "succeeded")).refusal == (409, "fence_stale")
    assert await api.state(effect) == "QUARANTINED", "they disagree, and a person decides"

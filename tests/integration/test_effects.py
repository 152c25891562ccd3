"""Effects as callers have them: planned, dispatched, asked for again, given up, listed."""

import json
import logging
from typing import Any
from uuid import uuid4

import pytest

from tests.api import Api, moment
from tests.builders import ARGUMENTS, a_contract, a_contract_of, http_evidence
from tests.fixtures import Owner, Sweep
from tests.provider import Provider

pytestmark = pytest.mark.usefixtures("histories")

CANARY = "canary-4111111111111111"
REDACTED = {"x-redacted": True}
CARD = {"type": "string", "x-sensitive": True, "pattern": "^canary-"}


@pytest.fixture
async def reference(api: Api) -> dict[str, Any]:
    return await api.publish(a_contract())


def secretive(**changes: Any) -> dict[str, Any]:
    properties = a_contract()["input_schema"]["properties"] | {"card": CARD}
    schema = a_contract()["input_schema"] | {"properties": properties}
    return a_contract(input_schema=schema, **changes)


SECRET_ARGUMENTS = ARGUMENTS | {"card": CANARY}


async def test_a_plan_is_recorded_before_anything_begins(api: Api, reference: dict[str, Any]):
    answer = await api.plan(reference)
    planned = answer.body
    assert (answer.status, planned["created"], planned["state"]) == (201, True, "PLANNED")
    assert planned["effect_id"].startswith(f"{planned['run_id']}.")
    assert (planned["tool"], planned["version"]) == (reference["name"], "2.1.0")
    assert (planned["fence"], planned["attempt"], planned["arguments"]) == (0, 0, ARGUMENTS)
    assert (planned["dispatch"], planned["outcome"], planned["due_at"]) == (None, None, None)
    shown = await api.show(planned)
    assert shown["attempts"] == shown["evidence"] == shown["outcomes"] == []
    assert [(one["transition"], one["actor"]) for one in shown["events"]] == [("T1", "admin")]


async def test_planned_and_dispatched_in_one_request(api: Api, reference: dict[str, Any]):
    effect = await api.dispatched(reference)
    assert (effect["state"], effect["fence"], effect["attempt"]) == ("DISPATCHED", 1, 1)
    dispatch = effect["dispatch"]
    assert (dispatch["fence"], dispatch["attempt"]) == (1, 1)
    assert dispatch["lease_seconds"] == pytest.approx(30)
    assert dispatch["idempotency"] == {"header": "Idempotency-Key"}
    assert dispatch["arguments"] == ARGUMENTS
    shown = await api.show(effect)
    (attempt,) = shown["attempts"]
    assert (attempt["fence"], attempt["worker_id"]) == (1, api.worker_id)
    assert attempt["credential_version"] == 1
    assert attempt["lease_until"] == effect["due_at"]


async def test_dispatched_later(api: Api, reference: dict[str, Any]):
    planned = (await api.plan(reference)).body
    for tool, refusal in (
        (reference | {"schema_hash": "sha256:" + "0" * 64}, (409, "tool_schema_drift")),
        (reference | {"version": "3.0"}, (409, "tool_schema_drift")),
        (reference | {"capabilities": []}, (409, "tool_schema_drift")),
    ):
        assert (await api.dispatch(planned, tool=tool)).refusal == refusal
        assert await api.state(planned) == "PLANNED"
    answer = await api.dispatch(planned, tool=reference)
    assert (answer.status, answer.body["dispatch"]["owned"]) == (200, True)
    assert answer.body["dispatch"]["arguments"] == ARGUMENTS


async def test_an_argument_can_carry_the_providers_key(api: Api):
    key = {"argument": "/meta/key", "retention_seconds": 60, "conflict": {"statuses": [409]}}
    schema = a_contract()["input_schema"]
    properties = schema["properties"] | {"meta": {"type": "object"}}
    document = a_contract(
        idempotency=key, lease_seconds=1, input_schema=schema | {"properties": properties}
    )
    effect = await api.dispatched(await api.publish(document))
    dispatch = effect["dispatch"]
    assert dispatch["idempotency"] == {"argument": "/meta/key"}
    assert dispatch["arguments"] == ARGUMENTS | {"meta": {"key": dispatch["idempotency_key"]}}
    assert effect["arguments"] == ARGUMENTS


async def test_the_same_effect_again_is_the_recorded_one(
    api: Api, owner: Owner, reference: dict[str, Any]
):
    effect = await api.dispatched(reference)
    before = await owner.counts()
    again = await api.plan(reference, dispatch=api.asking())
    assert (again.status, again.body["created"]) == (200, False)
    assert again.body["effect_id"] == effect["effect_id"]
    assert again.body["dispatch"] | {"owned": False} == again.body["dispatch"]
    assert again.body["dispatch"]["arguments"] is None
    assert await owner.counts() == before
    result = {"invoice_id": "inv_7"}
    await api.report(effect, "succeeded", result=result, provider_reference="inv_7")
    for dispatch in (None, api.asking()):
        closed = await api.plan(reference, dispatch=dispatch)
        assert (closed.status, closed.body["state"]) == (200, "SUCCEEDED")
        assert closed.body["outcome"]["result"] == result
        assert closed.body["outcome"]["provider_reference"] == "inv_7"
        assert not (closed.body["dispatch"] or {}).get("owned")
    late = await api.dispatch(effect)
    assert (late.status, late.body["dispatch"]["owned"]) == (200, False)


async def test_one_effect_stands_for_one_call(api: Api, owner: Owner, reference: dict[str, Any]):
    planned = (await api.plan(reference)).body
    other_tool = await api.publish(a_contract_of("PURE"))
    before = await owner.counts()
    for changes in (
        {"arguments": ARGUMENTS | {"amount_cents": 1251}},
        {"arguments": ARGUMENTS | {"memo": "for May"}},
        {"arguments": ARGUMENTS | {"amount_cents": "1250"}},
        {"arguments": {}},
        {"tool": other_tool},
    ):
        answer = await api.plan(reference, **changes)
        assert answer.refusal == (409, "effect_conflict")
        assert answer.body["facts"]["effect_id"] == planned["effect_id"]
    assert await owner.counts() == before
    reordered = dict(reversed(ARGUMENTS.items()))
    assert (await api.plan(reference, arguments=reordered)).status == 200


async def test_without_a_name_the_call_is_the_name(api: Api, reference: dict[str, Any]):
    async def effect_id(**changes: Any) -> str:
        return (await api.plan(reference, effect=None, **changes)).body["effect_id"]

    first = await effect_id()
    assert await effect_id() == first
    assert await effect_id(occurrence=1) == first
    others = {
        await effect_id(occurrence=2),
        await effect_id(arguments=ARGUMENTS | {"amount_cents": 1}),
        await effect_id(arguments=ARGUMENTS | {"memo": "for May"}),
        await effect_id(run="run-2"),
    }
    assert len(others | {first}) == 5
    assert await effect_id(occurrence=2) in others


async def test_free_text_can_be_left_out_of_the_name(api: Api):
    fields = ["customer_id", "amount_cents"]
    reference = await api.publish(a_contract(identity_fields=fields))
    worded = [ARGUMENTS, ARGUMENTS | {"memo": "for May"}, ARGUMENTS | {"memo": "May's invoice"}]
    for name in (None, "effect-1"):
        answers = [await api.plan(reference, effect=name, arguments=one) for one in worded]
        assert [answer.status for answer in answers] == [201, 200, 200]
        assert len({answer.body["effect_id"] for answer in answers}) == 1
        assert all(answer.body["arguments"] == ARGUMENTS for answer in answers)
    other = await api.plan(reference, effect=None, arguments=ARGUMENTS | {"amount_cents": 1})
    assert other.status == 201


async def test_a_callers_key_is_one_effect_in_every_run(
    api: Api, owner: Owner, reference: dict[str, Any]
):
    first = await api.plan(reference, key="order-7")
    for changes in (
        {},
        {"run": "run-2"},
        {"effect": "effect-2"},
        {"run": "run-3", "effect": None, "occurrence": 9},
    ):
        again = await api.plan(reference, key="order-7", **changes)
        assert (again.status, again.body["effect_id"]) == (200, first.body["effect_id"])
        assert (again.body["key"], again.body["run"]) == ("order-7", "run-1")
    before = await owner.one("SELECT count(*) FROM effect")
    for changes in (
        {"arguments": ARGUMENTS | {"amount_cents": 1}},
        {"arguments": ARGUMENTS | {"amount_cents": 1}, "run": "run-2"},
        {"tool": await api.publish(a_contract_of("PURE"))},
    ):
        assert (await api.plan(reference, key="order-7", **changes)).code == "effect_conflict"
    assert await owner.one("SELECT count(*) FROM effect") == before
    assert (await api.plan(reference, key="order-8", effect="effect-8")).status == 201


async def test_a_refused_plan_leaves_its_key_free(api: Api, reference: dict[str, Any]):
    bad = await api.plan(reference, key="order-7", arguments={})
    assert bad.refusal == (422, "invalid_arguments")
    assert (await api.plan(reference, key="order-7")).status == 201


async def test_a_callers_key_outlives_the_version(api: Api, reference: dict[str, Any]):
    effect = await api.dispatched(reference, key="order-7")
    await api.report(effect, "succeeded", result={"invoice_id": "inv_7"})
    api.app.state.lease_seconds_max = 0
    assert (await api.retire(reference)).status == 200
    again = await api.plan(reference, key="order-7", run="run-2")
    assert (again.status, again.body["outcome"]["result"]) == (200, {"invoice_id": "inv_7"})
    new = await api.publish(a_contract(version="3.0"))
    again = await api.plan(new, key="order-7", run="run-3")
    assert (again.status, again.body["version"]) == (200, "2.1.0")


async def test_a_run_uses_one_version_of_a_tool(api: Api, owner: Owner, reference: dict[str, Any]):
    await api.plan(reference)
    new = await api.publish(a_contract(version="3.0"))
    before = await owner.effects_count()
    for arguments in (ARGUMENTS, {}):
        answer = await api.plan(new, effect="effect-2", arguments=arguments)
        assert answer.refusal == (409, "mixed_versions")
        assert answer.body["facts"] == {"run": "run-1", "uses": "2.1.0"}
    assert await owner.effects_count() == before
    assert (await api.plan(new, run="run-2")).status == 201
    other = await api.publish(a_contract_of("PURE"))
    assert (await api.plan(other, effect="effect-3")).status == 201


async def test_arguments_are_held_to_the_contract(api: Api, owner: Owner):
    reference = await api.publish(secretive())
    before = await owner.effects_count()
    for arguments, pointer in (
        ({}, "/customer_id"),
        (ARGUMENTS | {"amount_cents": 0}, "/amount_cents"),
        (ARGUMENTS | {"amount_cents": "1250"}, "/amount_cents"),
        (ARGUMENTS | {"amount_cents": True}, "/amount_cents"),
        (ARGUMENTS | {"customer_id": "c-42"}, "/customer_id"),
        (ARGUMENTS | {"customer_id": None}, "/customer_id"),
        (ARGUMENTS | {"currency": "EUR"}, "/currency"),
        (ARGUMENTS | {"card": "4111111111111111"}, "/card"),
    ):
        for dispatch in (None, api.asking()):
            answer = await api.plan(reference, arguments=arguments, dispatch=dispatch)
            assert answer.refusal == (422, "invalid_arguments")
            assert answer.body["pointer"] == pointer
            assert "4111" not in str(answer.body)
            assert "c-42" not in str(answer.body)
    assert await owner.effects_count() == before


async def test_a_plan_that_is_too_old_is_refused_at_dispatch(
    api: Api, owner: Owner, reference: dict[str, Any]
):
    planned = (await api.plan(reference, deadline_seconds=60)).body
    waited = moment(planned["due_at"]) - moment(planned["planned_at"])
    assert waited.total_seconds() == 60
    await owner.pass_deadline(planned)
    assert (await api.dispatch(planned)).refusal == (409, "lease_expired")
    shown = await api.show(planned)
    assert (shown["state"], shown["attempts"]) == ("REFUSED", [])
    assert (shown["events"][-1]["transition"], shown["reason"]) == ("T9", "lease_expired")
    again = await api.plan(reference, dispatch=api.asking())
    assert (again.status, again.body["state"], again.body["dispatch"]["owned"]) == (
        200,
        "REFUSED",
        False,
    )


async def test_a_plan_that_is_too_old_is_swept_away(
    api: Api, owner: Owner, sweep: Sweep, reference: dict[str, Any]
):
    late = (await api.plan(reference, deadline_seconds=60)).body
    early = (await api.plan(reference, effect="effect-2", deadline_seconds=3600)).body
    never = (await api.plan(reference, effect="effect-3")).body
    await owner.pass_deadline(late)
    assert await sweep.once() == 1
    assert [await api.state(one) for one in (late, early, never)] == [
        "REFUSED",
        "PLANNED",
        "PLANNED",
    ]


async def test_a_deadline_is_for_the_plan_alone(api: Api, reference: dict[str, Any]):
    effect = await api.dispatched(reference, deadline_seconds=0.001)
    assert effect["dispatch"]["owned"]
    assert (await api.report(effect, "succeeded")).body["state"] == "SUCCEEDED"


async def test_what_needs_a_person_waits(api: Api, owner: Owner):
    reference = await api.publish(a_contract(approval="always"))
    together = await api.plan(reference, dispatch=api.asking())
    assert together.refusal == (403, "needs_human")
    assert together.body["retryable"]
    planned = {"effect_id": together.body["facts"]["effect_id"]}
    before = await owner.counts()
    shown = await api.show(planned)
    assert (shown["state"], shown["fence"]) == ("PLANNED", 0)
    assert (await api.dispatch(planned)).refusal == (403, "needs_human")
    assert await api.show(planned) == shown
    assert await owner.counts() == before


@pytest.mark.parametrize(
    ("fault", "refusal", "state"),
    [
        ("suspended", (409, "contract_suspended"), "PLANNED"),
        ("rotated", (409, "credential_policy_changed"), "REFUSED"),
        ("revoked", (403, "capability_not_granted"), "REFUSED"),
        ("retired", (409, "contract_retired"), "REFUSED"),
        ("closed", None, "DISPATCHED"),
    ],
)
async def test_all_is_checked_again_at_the_dispatch(
    api: Api,
    owner: Owner,
    reference: dict[str, Any],
    fault: str,
    refusal: tuple[int, str] | None,
    state: str,
):
    planned = (await api.plan(reference)).body
    if fault == "suspended":
        await owner.suspend(reference["name"], "2.1.0")
    elif fault == "rotated":
        await api.rotate("billing-api")
    elif fault == "revoked":
        await api.ask("DELETE", "/v1/grants?principal=admin&capability=invoice:write:default")
    elif fault == "retired":
        await owner.live(reference["name"], "2.1.0", "RETIRED")
    else:
        assert (await api.retire(reference)).status == 409
    answer = await api.dispatch(planned)
    if refusal is None:
        assert answer.body["dispatch"]["owned"], "what is open on a closed version drains"
    else:
        assert answer.refusal == refusal
        assert answer.body["facts"]["effect_id"] == planned["effect_id"]
    assert await api.state(planned) == state


async def test_only_the_same_question_again_owns_again(
    api: Api, owner: Owner, reference: dict[str, Any]
):
    asked = api.asking()
    first = (await api.plan(reference, dispatch=asked)).body
    for answer in (await api.plan(reference, dispatch=asked), await api.dispatch(first, **asked)):
        again = answer.body["dispatch"]
        assert (answer.status, again["owned"], again["fence"]) == (200, True, 1)
        assert again["idempotency_key"] == first["dispatch"]["idempotency_key"]
        assert again["arguments"] == ARGUMENTS
        assert again["lease_seconds"] <= first["dispatch"]["lease_seconds"]
    for other in (
        asked | {"nonce": str(uuid4())},
        asked | {"worker_id": str(uuid4())},
        {"worker_id": asked["nonce"], "nonce": asked["worker_id"]},
    ):
        answer = await api.dispatch(first, **other)
        assert (answer.status, answer.body["dispatch"]["owned"]) == (200, False)
        assert answer.body["dispatch"]["arguments"] is None
    await owner.run_out(first)
    assert not (await api.dispatch(first, **asked)).body["dispatch"]["owned"]
    assert len((await api.show(first))["events"]) == 2


async def test_a_new_attempt_is_the_same_request_on_the_same_contract(
    api: Api, provider: Provider, sweep: Sweep
):
    evidence = http_evidence(provider.port)
    reference = await api.publish(a_contract(evidence=evidence))
    first = await api.dispatched(reference)
    await api.report(first, "unknown")
    assert "RETRYABLE" in await sweep.until(api, first, "RETRYABLE")
    new = await api.publish(a_contract(version="3.0", evidence=evidence))
    newest = await api.plan(new, dispatch=api.asking())
    assert newest.refusal == (409, "tool_schema_drift"), "a worker of 3.0 is not one of 2.1"
    second = await api.plan(reference, dispatch=api.asking())
    assert second.body["dispatch"]["owned"]
    assert (second.body["version"], second.body["contract_digest"]) == (
        "2.1.0",
        first["contract_digest"],
    )
    assert second.body["dispatch"]["attempt"] == 2
    assert second.body["dispatch"]["fence"] > first["dispatch"]["fence"]
    for same in ("idempotency_key", "arguments", "idempotency"):
        assert second.body["dispatch"][same] == first["dispatch"][same]
    assert [one["attempt"] for one in (await api.show(first))["attempts"]] == [1, 2]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("secret", [True, False])
async def test_every_attempt_is_told_the_same_bytes(api: Api, *, secret: bool, together: bool):
    """However the caller wrote the arguments, in whichever order, and with whichever numbers."""
    properties = {"card": {"x-sensitive": secret}, "z": {}, "a": {"type": "object"}, "\ufb33": {}}
    schema = {"type": "object", "properties": properties | {"\U0001f600": {}}}
    reference = await api.publish(a_contract_of("PURE", input_schema=schema))
    inner = {"z": [1e2, -0.0, 1.0, 2.50], "b": 2**53 - 1, "\u00e9": 1e21, "": None}
    arguments = {"\ufb33": 1e-7, "z": True, "card": inner, "a": inner, "\U0001f600": "\u2028</"}
    if together:
        first = await api.dispatched(reference, arguments=arguments)
        planned = first
    else:
        planned = (await api.plan(reference, arguments=arguments)).body
        first = (await api.dispatch(planned)).body
    await api.report(first, "unknown")
    second = (await api.dispatch(first)).body
    sent, sent_again = (json.dumps(one["dispatch"]["arguments"]) for one in (first, second))
    assert sent == sent_again
    assert json.loads(sent) == arguments
    shown = {json.dumps(one["arguments"]) for one in (planned, second, await api.show(first))}
    assert len(shown) == 1
    assert (shown == {sent}) is not secret


async def test_attempts_are_counted(api: Api, provider: Provider, sweep: Sweep):
    document = a_contract(evidence=http_evidence(provider.port), attempts_max=2)
    reference = await api.publish(document)
    effect = await api.dispatched(reference)
    await api.report(effect, "unknown")
    await sweep.until(api, effect, "RETRYABLE")
    second = (await api.dispatch(effect)).body
    await api.report(second, "unknown")
    await sweep.until(api, effect, "QUARANTINED")
    assert "2 attempts" in (await api.show(effect))["reason"]
    assert not (await api.dispatch(effect)).body["dispatch"]["owned"]


async def test_no_attempt_once_the_providers_key_may_be_forgotten(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    reference = await api.publish(a_contract(evidence=http_evidence(provider.port)))
    effect = await api.dispatched(reference)
    await api.report(effect, "unknown")
    await sweep.until(api, effect, "RETRYABLE")
    await owner.rows(
        "UPDATE effect_open SET first_dispatched_at = clock_timestamp() - interval '1 day'"
    )
    assert (await api.dispatch(effect)).refusal == (409, "effect_not_retryable")
    assert await api.state(effect) == "QUARANTINED"


async def test_what_was_attempted_is_quarantined_where_a_plan_would_be_refused(
    api: Api, provider: Provider, sweep: Sweep
):
    reference = await api.publish(a_contract(evidence=http_evidence(provider.port)))
    effect = await api.dispatched(reference)
    await api.report(effect, "unknown")
    await sweep.until(api, effect, "RETRYABLE")
    await api.rotate("billing-api")
    assert (await api.dispatch(effect)).refusal == (409, "credential_policy_changed")
    shown = await api.show(effect)
    assert (shown["state"], shown["events"][-1]["transition"]) == ("QUARANTINED", "T10")


async def test_what_is_given_up(api: Api, reference: dict[str, Any]):
    planned = (await api.plan(reference)).body
    for _ in range(2):
        answer = await api.cancel(planned)
        assert (answer.status, answer.body["state"]) == (200, "CANCELLED")
    assert answer.body["outcome"]["decided_by"] == "admin"
    assert answer.body["reason"] == "not wanted any more"
    assert not (await api.dispatch(planned)).body["dispatch"]["owned"]
    assert (await api.resolve(planned, "FAILED")).refusal == (409, "effect_conflict")
    sent = await api.dispatched(reference, effect="effect-2")
    assert (await api.cancel(sent)).refusal == (409, "illegal_transition")
    await api.report(sent, "succeeded")
    assert (await api.cancel(sent)).refusal == (409, "effect_conflict")
    missing = {"effect_id": f"{uuid4()}.1"}
    assert (await api.cancel(missing)).refusal == (404, "not_found")


@pytest.mark.parametrize(
    ("effect_class", "state"), [("PURE", "CANCELLED"), ("IDEMPOTENT", "QUARANTINED")]
)
async def test_what_was_sent_already_is_not_simply_given_up(
    api: Api, provider: Provider, sweep: Sweep, effect_class: str, state: str
):
    evidence = http_evidence(provider.port)
    reference = await api.publish(a_contract_of(effect_class, evidence=evidence))
    effect = await api.dispatched(reference)
    await api.report(effect, "unknown")
    await sweep.until(api, effect, "RETRYABLE")
    assert (await api.cancel(effect)).body["state"] == state


async def test_a_person_settles_what_is_quarantined(
    api: Api, sweep: Sweep, reference: dict[str, Any]
):
    effects = [await api.dispatched(reference, effect=f"effect-{number}") for number in range(4)]
    for effect in effects:
        assert (await api.resolve(effect, "FAILED")).refusal == (409, "illegal_transition")
        await api.report(effect, "unknown")
        await sweep.until(api, effect, "QUARANTINED")
    for effect, to, error in zip(
        effects,
        ("SUCCEEDED", "FAILED", "ABANDONED", "RETRYABLE"),
        (None, "resolved", "outcome_not_known", None),
        strict=True,
    ):
        answer = await api.resolve(effect, to)
        assert (answer.status, answer.body["state"]) == (200, to)
        shown = await api.show(effect)
        assert shown["events"][-1]["actor"] == "person:admin"
        assert (shown["evidence"][-1]["source"], shown["evidence"][-1]["detail"]) == (
            "person:admin",
            "ticket 7",
        )
        if to != "RETRYABLE":
            assert (shown["outcome"]["error"] or {}).get("code") == error
            assert (await api.resolve(effect, to)).refusal == (409, "effect_conflict")
    assert (await api.dispatch(effects[3])).body["dispatch"]["owned"]


@pytest.mark.parametrize("by", ["ada", "Admin", "admin "])
async def test_nobody_decides_under_the_name_of_another(api: Api, sweep: Sweep, by: str):
    effect = await api.dispatched(await api.publish(a_contract_of("IDEMPOTENT")))
    await api.report(effect, "unknown")
    await sweep.until(api, effect, "QUARANTINED")
    answer = await api.resolve(effect, "FAILED", by=by)
    assert (answer.refusal, answer.body["pointer"]) == ((422, "invalid_request"), "/by")
    assert await api.state(effect) == "QUARANTINED"
    answer = await api.resolve(effect, "FAILED", by="admin")
    assert answer.body["outcome"]["decided_by"] == "person:admin"


async def test_a_worker_of_another_principal_needs_grants_of_its_own(api: Api, owner: Owner):
    effect = (await api.plan(await api.publish(a_contract()))).body
    queue = api.speaking_for(await owner.token("default", "runtime", principal="queue"))
    assert (await queue.dispatch(effect)).refusal == (403, "capability_not_granted")
    grant = {"principal": "queue", "capability": "invoice:write:{tenant}"}
    assert (await api.ask("POST", "/v1/grants", grant)).status == 201
    taken = (await queue.dispatch(effect)).body
    assert taken["dispatch"]["owned"]
    path = "/v1/grants?principal=queue&capability=invoice:write:{tenant}"
    assert (await api.ask("DELETE", path)).status < 300
    # What was dispatched is ended by who dispatched it, whatever was revoked since.
    done = await queue.report(taken, "succeeded", result={"invoice_id": "I-1"})
    assert (done.status, done.body["state"]) == (200, "SUCCEEDED")
    actor = f"worker:{queue.worker_id} of queue"
    assert done.body["outcome"]["decided_by"] == actor
    events = (await api.show(effect))["events"]
    assert [event["actor"] for event in events] == ["admin", actor, actor]


async def test_a_secret_argument_is_for_the_owner_of_the_dispatch_alone(
    api: Api, owner: Owner, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    document = secretive()
    reference = await api.publish(document)
    shared = {"arguments": SECRET_ARGUMENTS}
    planned = (await api.plan(reference, **shared)).body
    unnamed = (await api.plan(reference, effect=None, **shared)).body
    other = await api.plan(reference, arguments=ARGUMENTS | {"card": CANARY[::-1]})
    assert other.refusal == (409, "effect_conflict")
    sent = (await api.dispatch(planned)).body
    assert sent["dispatch"]["arguments"] == SECRET_ARGUMENTS
    for told in (planned, unnamed, sent | {"dispatch": None}, await api.show(sent)):
        assert told["arguments"] == ARGUMENTS | {"card": REDACTED}
        assert CANARY not in str(told)
    second = (await api.dispatch(planned)).body
    assert (second["dispatch"]["owned"], second["dispatch"]["arguments"]) == (False, None)
    assert CANARY not in str((await api.ask("GET", "/v1/effects")).body)
    dump = await owner.dump()
    assert CANARY not in dump
    assert CANARY.encode().hex() not in dump
    assert "card" in dump
    assert CANARY not in caplog.text


async def test_a_sealed_argument_goes_when_its_effect_closes(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    document = secretive(evidence=http_evidence(provider.port))
    reference = await api.publish(document)
    effects = [
        (await api.plan(reference, effect=f"effect-{number}", arguments=SECRET_ARGUMENTS)).body
        for number in range(5)
    ]

    async def sealed() -> int:
        return await owner.one("SELECT count(*) FROM effect_payload")

    assert await sealed() == 5
    await api.cancel(effects[0])
    assert await sealed() == 4
    sent = (await api.dispatch(effects[1])).body
    assert await sealed() == 4
    await api.report(sent, "failed", error={"code": "declined"})
    assert await sealed() == 3
    lost = (await api.dispatch(effects[2])).body
    await api.report(lost, "unknown")
    await sweep.until(api, lost, "RETRYABLE")
    again = (await api.dispatch(lost)).body
    assert again["dispatch"]["arguments"] == SECRET_ARGUMENTS, "a new attempt sends the same"
    await api.report(again, "unknown")
    provider.book(lost["effect_id"], amount_cents=1250)
    await sweep.until(api, lost, "SUCCEEDED")
    assert await sealed() == 2
    await api.rotate("billing-api")
    assert (await api.dispatch(effects[3])).code == "credential_policy_changed"
    assert await sealed() == 1


async def test_a_secret_result_is_not_kept(api: Api, owner: Owner):
    output = {
        "type": "object",
        "properties": {"invoice_id": {"type": "string"}, "card": CARD},
        "required": ["invoice_id"],
    }
    reference = await api.publish(a_contract(output_schema=output))
    for number, result in enumerate(
        ({"invoice_id": "inv_7", "card": CANARY}, {"invoice_id": 7, "card": f"4{CANARY}"})
    ):
        effect = await api.dispatched(reference, effect=f"effect-{number}")
        answer = await api.report(effect, "succeeded", result=result)
        assert answer.body["outcome"]["result"] == result | {"card": REDACTED}
        assert (answer.body["outcome"]["invalid_result"] is None) == (number == 0)
        assert CANARY not in str(answer.body)
    assert CANARY not in await owner.dump()


async def test_a_list_is_narrowed_by_what_is_asked_for(api: Api, reference: dict[str, Any]):
    pure = await api.publish(a_contract_of("PURE"))
    planned = (await api.plan(reference)).body
    sent = await api.dispatched(reference, effect="effect-2")
    done = await api.dispatched(pure, run="run-2")
    await api.report(done, "succeeded")
    given_up = (await api.plan(pure, run="run-2", effect="effect-2")).body
    await api.cancel(given_up)
    for query, expected in (
        ("", [planned, sent, done, given_up]),
        ("?run=run-1", [planned, sent]),
        ("?run=run-9", []),
        ("?tool=tools.pure", [done, given_up]),
        ("?state=PLANNED", [planned]),
        ("?state=SUCCEEDED", [done]),
        ("?state=CANCELLED&run=run-2", [given_up]),
        ("?state=CANCELLED&run=run-1", []),
        ("?open=true", [planned, sent]),
        ("?open=true&state=SUCCEEDED", []),
        ("?open=false&tool=tools.pure", [done, given_up]),
    ):
        listed = (await api.ask("GET", f"/v1/effects{query}")).body
        ids = {one["effect_id"] for one in listed["effects"]}
        assert ids == {one["effect_id"] for one in expected}, query
        assert listed["next"] is None
    runs = [one["run"] for one in (await api.ask("GET", "/v1/effects")).body["effects"]]
    assert runs == ["run-2", "run-2", "run-1", "run-1"], "newest run first"


async def test_a_long_list_comes_in_pages(api: Api, reference: dict[str, Any]):
    planned = {
        (await api.plan(reference, run=f"run-{number % 3}", effect=f"e-{number}")).body["effect_id"]
        for number in range(7)
    }
    whole = [one["effect_id"] for one in (await api.ask("GET", "/v1/effects")).body["effects"]]
    assert set(whole) == planned
    for limit in (1, 3, 7, 8):
        pages = [one["effect_id"] for one in await api.effects(f"limit={limit}")]
        assert pages == whole, "each once, in the same order"
    first = (await api.ask("GET", "/v1/effects?limit=3")).body
    assert (len(first["effects"]), first["next"]) == (3, whole[2])
    await api.plan(reference, run="run-later")
    following = (await api.ask("GET", f"/v1/effects?limit=3&after={first['next']}")).body
    assert [one["effect_id"] for one in following["effects"]] == whole[3:6]


async def test_a_queues_late_work_is_kept_for_a_person(api: Api, reference: dict[str, Any]):
    assert (await api.retire(reference)).status == 409
    closing = await api.plan(reference, origin="queue")
    assert closing.refusal == (409, "contract_migrating")
    api.app.state.lease_seconds_max = 0
    assert (await api.retire(reference)).status == 200
    answer = await api.plan(reference, origin="queue", dispatch=api.asking())
    assert (answer.status, answer.body["state"]) == (201, "QUARANTINED")
    assert (answer.body["origin"], answer.body["dispatch"]["owned"]) == ("queue", False)
    assert (await api.plan(reference, origin="queue")).status == 200
    again = await api.resolve(answer.body, "RETRYABLE")
    assert again.refusal == (409, "effect_not_retryable"), "its version runs no more"
    assert await api.state(answer.body) == "QUARANTINED"
    assert (await api.resolve(answer.body, "ABANDONED")).body["state"] == "ABANDONED"


async def test_workers_are_known_by_their_heartbeat(api: Api):
    assert (await api.ask("GET", "/v1/workers")).body == {"workers": []}
    path = f"/v1/workers/{api.worker_id}/heartbeat"
    first = await api.ask("PUT", path, {"label": "host-1"})
    second = await api.ask("PUT", path, {"label": "host-2"})
    assert (first.status, second.status) == (200, 200)
    (worker,) = (await api.ask("GET", "/v1/workers")).body["workers"]
    assert (worker["worker_id"], worker["label"]) == (api.worker_id, "host-2")
    assert worker["started_at"] < worker["heartbeat_at"] == second.body["heartbeat_at"]


async def test_a_heartbeat_never_extends_a_lease(
    api: Api, owner: Owner, sweep: Sweep, reference: dict[str, Any]
):
    effect = await api.dispatched(reference)
    await owner.run_out(effect)
    await api.ask("PUT", f"/v1/workers/{api.worker_id}/heartbeat", {})
    await sweep.once()
    assert await api.state(effect) == "UNKNOWN"

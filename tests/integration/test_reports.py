"""What workers report: once, again, too late, and against what is known already."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.api import Api, moment
from tests.builders import a_contract, a_contract_of, http_evidence
from tests.fixtures import Owner, Sweep
from tests.provider import Provider

pytestmark = pytest.mark.usefixtures("histories")

RESULT = {"invoice_id": "inv_7"}


@pytest.fixture
async def effect(api: Api) -> dict[str, Any]:
    """An effect that the client's worker owns."""
    return await api.dispatched(await api.publish(a_contract()))


def facts(evidence: dict[str, Any]) -> tuple[str, str, int]:
    return evidence["source"], evidence["answer"], evidence["fence"]


async def lost(api: Api, sweep: Sweep, effect: dict[str, Any]) -> dict[str, Any]:
    """Take an effect that nobody knows the end of again, as another worker; return it owned."""
    await api.report(effect, "unknown")
    await sweep.until(api, effect, "RETRYABLE")
    api.worker_id = str(uuid4())
    return (await api.dispatch(effect)).body


@pytest.mark.parametrize(
    ("outcome", "more", "state", "error"),
    [
        ("succeeded", {"result": RESULT}, "SUCCEEDED", None),
        (
            "failed",
            {"error": {"code": "declined", "message": "no funds"}},
            "FAILED",
            {"code": "declined", "message": "no funds"},
        ),
        ("failed", {"not_sent": True}, "FAILED", {"code": "not_sent", "message": ""}),
        ("failed", {}, "FAILED", None),
        ("unknown", {}, "UNKNOWN", None),
        ("unknown", {"error": {"code": "timeout", "message": "no answer"}}, "UNKNOWN", None),
    ],
)
async def test_the_same_report_again_changes_nothing(
    api: Api,
    owner: Owner,
    effect: dict[str, Any],
    outcome: str,
    more: dict[str, Any],
    state: str,
    error: dict[str, str] | None,
):
    first = await api.report(effect, outcome, provider_reference="inv_7", **more)
    assert (first.status, first.body["state"], first.body["fence"]) == (200, state, 2)
    if state == "UNKNOWN":
        assert first.body["outcome"] is None
    else:
        assert first.body["outcome"]["status"] == state
        assert first.body["outcome"]["error"] == error
        assert first.body["outcome"]["result"] == more.get("result")
        assert first.body["outcome"]["decided_by"] == f"worker:{api.worker_id} of admin"
        assert first.body["outcome"]["provider_reference"] == "inv_7"
    before = await owner.counts()
    again = await api.report(effect, outcome, provider_reference="inv_7", **more)
    assert (again.status, again.body) == (200, first.body)
    assert await owner.counts() == before


async def test_a_late_report_still_finishes_what_nobody_took_over(
    api: Api, owner: Owner, effect: dict[str, Any]
):
    await owner.run_out(effect)
    assert (await api.report(effect, "succeeded", result=RESULT)).body["state"] == "SUCCEEDED"


@pytest.mark.parametrize(
    ("outcome", "more", "answer"),
    [
        ("succeeded", {"result": RESULT, "provider_reference": "inv_7"}, "applied"),
        ("failed", {}, "rejected"),
        ("failed", {"not_sent": True}, "absent"),
        ("unknown", {}, None),
    ],
)
async def test_a_stale_fence_changes_nothing_and_is_kept_as_evidence(
    api: Api,
    owner: Owner,
    sweep: Sweep,
    effect: dict[str, Any],
    outcome: str,
    more: dict[str, Any],
    answer: str | None,
):
    await owner.run_out(effect)
    await sweep.once()
    before = await api.show(effect)
    late = await api.report(effect, outcome, **more)
    assert late.refusal == (409, "fence_stale")
    after = await api.show(effect)
    assert after | {"evidence": []} == before
    kept = [("late_worker", answer, 1)] if answer else []
    assert [facts(one) for one in after["evidence"]] == kept
    if "provider_reference" in more:
        assert after["evidence"][0]["provider_reference"] == "inv_7"
    assert "inv_7" not in "".join(one["detail"] for one in after["evidence"])


async def test_another_end_than_the_reported_one_is_for_a_person(api: Api, effect: dict[str, Any]):
    await api.report(effect, "succeeded", result=RESULT)
    assert (await api.report(effect, "failed")).refusal == (409, "fence_stale")
    shown = await api.show(effect)
    assert (shown["state"], shown["outcome"]) == ("QUARANTINED", None)
    assert [(one["status"], one["result"]) for one in shown["outcomes"]] == [("SUCCEEDED", RESULT)]
    assert [facts(one) for one in shown["evidence"]] == [("late_worker", "rejected", 1)]


async def test_only_the_worker_of_the_attempt_reports(
    api: Api, owner: Owner, effect: dict[str, Any]
):
    planned = (await api.plan(await api.publish(a_contract()), effect="effect-2")).body
    before = await owner.counts()
    for target, changes in (
        (effect, {"worker_id": str(uuid4())}),
        (effect, {"fence": 0}),
        (effect, {"fence": 2}),
        (effect, {"fence": 2**53 - 1}),
        (planned | {"dispatch": {"fence": 0}}, {}),
        (effect | {"effect_id": f"{uuid4()}.1"}, {}),
        (effect | {"effect_id": f"{effect['run_id']}.1"}, {}),
    ):
        answer = await api.report(target, "succeeded", **changes)
        assert answer.refusal == (404, "not_found")
    assert await owner.counts() == before
    assert await api.state(effect) == "DISPATCHED"


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"result": {"invoice_id": 7}}, "/invoice_id: "),
        ({"result": {}}, "/invoice_id: "),
        ({"result": []}, "/: "),
        ({"result": None}, "/: "),
        ({}, "/: "),
    ],
)
async def test_what_is_done_is_done_though_its_output_breaks_the_contract(
    api: Api, effect: dict[str, Any], more: dict[str, Any], place: str
):
    answer = await api.report(effect, "succeeded", **more)
    assert (answer.status, answer.body["state"]) == (200, "SUCCEEDED")
    outcome = answer.body["outcome"]
    assert outcome["result"] == more.get("result")
    assert [one for one in outcome["invalid_result"] if one.startswith(place)]
    assert (await api.show(effect))["outcomes"] == [outcome]


async def test_any_json_is_a_result_where_the_contract_names_no_schema(api: Api):
    reference = await api.publish(a_contract(output_schema=None))
    for number, result in enumerate((None, 0, "", [], {"a": [1, {"b": None}]}, 1.5, False)):
        effect = await api.dispatched(reference, effect=f"effect-{number}")
        answer = await api.report(effect, "succeeded", result=result)
        assert answer.body["outcome"]["result"] == result
        assert answer.body["outcome"]["invalid_result"] is None


async def test_a_report_does_not_contradict_itself(api: Api, effect: dict[str, Any]):
    for outcome in ("succeeded", "unknown"):
        answer = await api.report(effect, outcome, not_sent=True)
        assert answer.refusal == (422, "invalid_request")
        assert answer.body["pointer"] == "/not_sent"
    assert await api.state(effect) == "DISPATCHED"


async def test_a_failure_does_not_settle_what_an_earlier_attempt_may_have_done(
    api: Api, sweep: Sweep
):
    reference = await api.publish(a_contract_of("REPLAYABLE", max_duplicates=1))
    second = await lost(api, sweep, await api.dispatched(reference))
    answer = await api.report(second, "failed", error={"code": "declined"})
    assert (answer.status, answer.body["state"]) == (200, "UNKNOWN")
    assert "earlier attempt" in answer.body["reason"]
    await sweep.until(api, second, "QUARANTINED")


async def test_a_success_settles_it_all_the_same(api: Api, sweep: Sweep):
    reference = await api.publish(a_contract_of("REPLAYABLE", max_duplicates=1))
    second = await lost(api, sweep, await api.dispatched(reference))
    assert (await api.report(second, "succeeded", result=RESULT)).body["state"] == "SUCCEEDED"


@pytest.mark.parametrize(
    ("known", "outcome", "state"),
    [
        ("applied", "failed", "UNKNOWN"),
        ("contradicts", "failed", "UNKNOWN"),
        ("rejected", "succeeded", "UNKNOWN"),
        ("contradicts", "succeeded", "UNKNOWN"),
        ("applied", "succeeded", "SUCCEEDED"),
        ("rejected", "failed", "FAILED"),
        ("absent", "succeeded", "SUCCEEDED"),
    ],
)
async def test_evidence_that_came_before_the_report_counts(
    api: Api, owner: Owner, effect: dict[str, Any], known: str, outcome: str, state: str
):
    now = moment((await api.show(effect))["planned_at"])
    run_id, _, number = effect["effect_id"].partition(".")
    await owner.rows(
        "INSERT INTO effect_evidence (run_id, number, evidence_id, tenant_id, fence, source,"
        " answer, observed_at, received_at, detail)"
        " SELECT %s, %s, gen_random_uuid(), tenant_id, 1, 'http', %s, %s, %s, '' FROM effect",
        *(UUID(run_id), int(number), known, now, now),
    )
    answer = await api.report(effect, outcome)
    assert (answer.status, answer.body["state"]) == (200, state)


async def test_what_an_earlier_worker_did_after_all_is_not_forgotten(
    api: Api, provider: Provider, sweep: Sweep
):
    evidence = http_evidence(provider.port)
    first = await api.dispatched(await api.publish(a_contract(evidence=evidence)))
    early = api.worker_id
    second = await lost(api, sweep, first)
    late = await api.report(first, "succeeded", worker_id=early, result=RESULT)
    assert late.refusal == (409, "fence_stale")
    answer = await api.report(second, "failed", error={"code": "duplicate"})
    assert answer.body["state"] == "UNKNOWN", "the first attempt took effect"
    provider.book(first["effect_id"], amount_cents=1250)
    await sweep.until(api, first, "SUCCEEDED")


async def test_what_an_earlier_worker_failed_at_says_nothing_of_the_next(
    api: Api, provider: Provider, sweep: Sweep
):
    evidence = http_evidence(provider.port)
    first = await api.dispatched(await api.publish(a_contract(evidence=evidence)))
    early = api.worker_id
    second = await lost(api, sweep, first)
    late = await api.report(first, "failed", worker_id=early)
    assert late.refusal == (409, "fence_stale")
    assert (await api.report(second, "succeeded", result=RESULT)).body["state"] == "SUCCEEDED"


async def test_a_pure_effect_simply_runs_again(api: Api, owner: Owner, sweep: Sweep):
    reference = await api.publish(a_contract_of("PURE", attempts_max=3))
    effect = await api.dispatched(reference)
    assert (await api.report(effect, "unknown")).body["state"] == "RETRYABLE"
    effect = (await api.dispatch(effect)).body
    await owner.run_out(effect)
    await sweep.once()
    assert await api.state(effect) == "RETRYABLE"
    effect = (await api.dispatch(effect)).body
    assert effect["dispatch"]["attempt"] == 3
    answer = await api.report(effect, "failed", error={"code": "gone"})
    assert answer.body["state"] == "FAILED"


async def test_no_new_attempt_once_a_late_worker_said_that_it_was_done(
    api: Api, provider: Provider, sweep: Sweep, owner: Owner
):
    evidence = http_evidence(provider.port)
    reference = await api.publish(a_contract_of("REPLAYABLE", evidence=evidence))
    effect = await api.dispatched(reference)
    await owner.run_out(effect)
    await sweep.until(api, effect, "RETRYABLE")
    late = await api.report(effect, "succeeded", result={"invoice_id": "inv_1"})
    assert late.refusal == (409, "fence_stale")
    assert not (await api.dispatch(effect)).body["dispatch"]["owned"]
    await sweep.once()
    shown = await api.show(effect)
    assert (shown["state"], len(shown["attempts"])) == ("SUCCEEDED", 1)

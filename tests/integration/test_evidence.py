"""Evidence that comes late, from people and from plug-ins: what it changes, and what not."""

import asyncio
import logging
from importlib.metadata import EntryPoint
from typing import Any

import psycopg
import pytest

from ledger.settlement import CHECKS_MAX
from reconciler.plugins import GROUP, UNANSWERED_MAX, Plugins
from reconciler.sources import Sources
from tallystick.provider import PluginEvidence
from tests import plugins
from tests.api import Api
from tests.builders import ARGUMENTS, a_contract, a_contract_of, a_question, http_evidence
from tests.fixtures import Owner, Sweep, sweeper_of
from tests.provider import Provider

pytestmark = pytest.mark.usefixtures("histories")

AMOUNT = ARGUMENTS["amount_cents"]


async def ended(api: Api, owner: Owner, status: str, reference: dict[str, Any]) -> dict[str, Any]:
    """Return an effect that is closed as told."""
    if status in ("REFUSED", "CANCELLED"):
        planned = (await api.plan(reference)).body
        if status == "CANCELLED":
            await api.cancel(planned)
        else:
            await api.rotate("billing-api")
            await api.dispatch(planned)
        return planned
    effect = await api.dispatched(reference)
    if status == "ABANDONED":
        await api.report(effect, "unknown")
        await owner.rows("UPDATE effect_open SET checks = %s", CHECKS_MAX)
        return effect
    await api.report(effect, {"SUCCEEDED": "succeeded", "FAILED": "failed"}[status])
    return effect


async def test_a_late_worker_that_was_done_contradicts_a_failure(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    effect = await api.dispatched(
        await api.publish(a_contract(evidence=http_evidence(provider.port)))
    )
    await owner.run_out(effect)
    provider.book(effect["effect_id"], status="rejected")
    await sweep.until(api, effect, "FAILED")
    late = await api.report(effect, "succeeded", provider_reference="inv_7")
    assert late.refusal == (409, "fence_stale")
    shown = await api.show(effect)
    assert (shown["state"], shown["outcome"]) == ("QUARANTINED", None)
    last = shown["events"][-1]
    assert (last["transition"], last["from_state"], last["actor"]) == (
        "T12",
        "FAILED",
        "late_worker",
    )
    assert [one["status"] for one in shown["outcomes"]] == ["FAILED"], "it stays on record"
    assert (await api.report(effect, "succeeded")).code == "fence_stale"
    assert len((await api.show(effect))["evidence"]) == 2, "the same report again adds nothing"
    assert (await api.resolve(effect, "SUCCEEDED")).status == 200
    shown = await api.show(effect)
    assert [(one["revision"], one["status"]) for one in shown["outcomes"]] == [
        (1, "FAILED"),
        (2, "SUCCEEDED"),
    ]


@pytest.mark.parametrize(
    ("status", "answer", "reopens"),
    [
        ("SUCCEEDED", "rejected", True),
        ("SUCCEEDED", "contradicts", True),
        ("SUCCEEDED", "applied", False),
        ("SUCCEEDED", "absent", False),
        ("FAILED", "applied", True),
        ("FAILED", "rejected", False),
        ("REFUSED", "applied", True),
        ("CANCELLED", "applied", True),
        ("CANCELLED", "in_progress", False),
    ],
)
async def test_what_contradicts_how_an_effect_ended_opens_it_again(
    api: Api, owner: Owner, status: str, answer: str, reopens: bool
):
    effect = await ended(api, owner, status, await api.publish(a_contract()))
    before = await api.show(effect)
    assert before["state"] == status
    assert (await api.tell(effect, answer)).status == 201
    shown = await api.show(effect)
    assert shown["state"] == ("QUARANTINED" if reopens else status)
    assert shown["evidence"][-1]["source"] == "person:admin"
    assert shown["outcomes"] == before["outcomes"]
    if reopens:
        assert shown["reason"] == f"it was {status}, and person:admin says {answer}: ticket 7"


async def test_a_written_off_effect_that_happened_is_looked_at_again(api: Api, sweep: Sweep):
    effect = await api.dispatched(await api.publish(a_contract()))
    await api.report(effect, "unknown")
    await sweep.until(api, effect, "QUARANTINED")
    assert (await api.resolve(effect, "ABANDONED")).status == 200
    assert (await api.report(effect, "succeeded")).code == "fence_stale"
    shown = await api.show(effect)
    assert (shown["state"], shown["events"][-1]["from_state"]) == ("QUARANTINED", "ABANDONED")


async def test_what_was_closed_once_is_never_sent_again(api: Api, owner: Owner):
    effect = await ended(api, owner, "FAILED", await api.publish(a_contract()))
    await api.tell(effect, "applied")
    assert (await api.resolve(effect, "RETRYABLE")).code == "effect_not_retryable"
    assert not (await api.dispatch(effect)).body["dispatch"]["owned"]
    with pytest.raises(
        psycopg.errors.CheckViolation, match="was closed before, and is now RETRYABLE"
    ):
        await owner.rows(
            "WITH told AS (INSERT INTO event (run_id, number, fence, tenant_id, transition,"
            " from_state, to_state, previous_fence, attempt, actor, reason, at)"
            " SELECT run_id, number, fence + 1, tenant_id, 'T11', 'QUARANTINED', 'RETRYABLE',"
            " fence, attempt, 'me', '', now() FROM effect_open)"
            " UPDATE effect_open SET state = 'RETRYABLE', fence = fence + 1"
        )


async def test_a_retired_version_gets_no_attempt_from_what_comes_later(
    api: Api, owner: Owner, sweep: Sweep
):
    api.app.state.lease_seconds_max = 0
    reference = await api.publish(a_contract())
    effect = await ended(api, owner, "FAILED", reference)
    assert (await api.retire(reference)).status == 200
    assert (await api.tell(effect, "applied")).status == 201
    assert await api.state(effect) == "QUARANTINED"
    assert (await api.retire(reference)).status == 200, "it stays retired"
    assert (await api.resolve(effect, "RETRYABLE")).code == "effect_not_retryable"
    assert await sweep.once() == 0
    assert (await api.resolve(effect, "SUCCEEDED")).status == 200


@pytest.mark.parametrize("answer", ["applied", "in_progress", "contradicts"])
async def test_what_was_to_be_sent_again_is_in_doubt_when_it_may_have_happened(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep, answer: str
):
    effect = await api.dispatched(
        await api.publish(a_contract(evidence=http_evidence(provider.port)))
    )
    await api.report(effect, "unknown")
    await sweep.until(api, effect, "RETRYABLE")
    fence = (await api.show(effect))["fence"]
    if answer == "applied":
        assert (await api.report(effect, "succeeded")).code == "fence_stale"
    else:
        assert (await api.tell(effect, answer)).status == 201
    shown = await api.show(effect)
    assert (shown["state"], shown["fence"]) == ("UNKNOWN", fence + 1)
    assert shown["events"][-1]["transition"] == "T13"
    assert not (await api.dispatch(effect)).body["dispatch"]["owned"], "nobody sends it now"
    await sweep.once()
    settled = {"applied": "SUCCEEDED", "contradicts": "QUARANTINED", "in_progress": "UNKNOWN"}
    assert await api.state(effect) == settled[answer]


async def test_evidence_may_come_before_the_workers_own_report(api: Api, sweep: Sweep):
    reference = await api.publish(a_contract())
    effect = await api.dispatched(reference)
    assert (await api.tell(effect, "applied")).body["state"] == "DISPATCHED"
    assert (await api.report(effect, "failed", not_sent=True)).body["state"] == "UNKNOWN"
    await sweep.once()
    shown = await api.show(effect)
    assert (shown["state"], shown["reason"]) == ("SUCCEEDED", "evidence: applied")
    other = await api.dispatched(reference, effect="effect-2")
    await api.tell(other, "applied")
    assert (await api.report(other, "succeeded")).body["state"] == "SUCCEEDED"


async def test_the_reconciler_is_woken_by_what_settles(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    effect = await api.dispatched(
        await api.publish(a_contract(evidence=http_evidence(provider.port)))
    )
    await api.report(effect, "unknown")
    provider.status = 503
    await sweep.once()
    await owner.put_off(effect)
    assert await sweep.once() == 0
    await api.tell(effect, "in_progress")
    assert await sweep.once() == 0
    await api.tell(effect, "rejected", provider_reference="inv_9")
    assert await sweep.once() == 1
    shown = await api.show(effect)
    assert shown["state"] == "FAILED"
    assert shown["outcome"]["provider_reference"] == "inv_9"


async def test_what_takes_two_people_is_not_settled_by_one(api: Api, owner: Owner, sweep: Sweep):
    effect = await api.dispatched(await api.publish(a_contract_of("NON_RETRYABLE")))
    await api.report(effect, "unknown")
    await api.tell(effect, "applied")
    await sweep.once()
    assert await api.state(effect) == "QUARANTINED"
    reference = await api.publish(a_contract_of("UNKNOWN"))
    second = await api.dispatched(reference, effect="effect-2")
    await api.report(second, "unknown")
    grace = api.speaking_for(await owner.token("default", "operator", principal="grace"))
    async with grace.http:
        for person in (api, grace):
            assert (await person.tell(second, "applied")).status == 201
    await sweep.once()
    assert await api.state(second) == "SUCCEEDED"


async def test_contradictions_that_come_at_once_open_an_effect_once(api: Api, owner: Owner):
    effect = await ended(api, owner, "FAILED", await api.publish(a_contract()))
    told = [f"ticket {number}" for number in range(8)]
    answers = await asyncio.gather(*(api.tell(effect, "applied", detail=one) for one in told))
    assert {answer.status for answer in answers} == {201}
    shown = await api.show(effect)
    assert [one["transition"] for one in shown["events"]].count("T12") == 1
    assert len(shown["evidence"]) == 8, "each of them is kept"
    assert (await api.tell(effect, "applied", detail="ticket 3")).status == 201
    assert await api.show(effect) == shown, "who was not answered says the same again"


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"answer": "unavailable"}, "/answer"),
        ({"answer": None}, "/answer"),
        ({"observed_at": "2026-11-30T12:00:00"}, "/observed_at"),
        ({"observed_at": "yesterday"}, "/observed_at"),
        ({"observed_at": 7}, "/observed_at"),
        ({"observed_at": "2999-01-01T00:00:00Z"}, "/observed_at"),
        ({"observed_at": "0001-01-01T00:00:00+14:00"}, "/observed_at"),
        ({"detail": ""}, "/detail"),
        ({"source": "http"}, "/source"),
    ],
)
async def test_what_is_no_evidence_is_refused(
    api: Api, owner: Owner, changes: dict[str, Any], pointer: str
):
    effect = await ended(api, owner, "FAILED", await api.publish(a_contract()))
    before = await owner.counts()
    answer = await api.tell(effect, **({"answer": "applied"} | changes))
    assert answer.refusal == (422, "invalid_request")
    assert answer.body["pointer"] == pointer
    assert await owner.counts() == before


async def test_nobody_gives_evidence_on_what_is_not_theirs(api: Api, other: Api, owner: Owner):
    effect = await ended(api, owner, "FAILED", await api.publish(a_contract()))
    assert (await other.tell(effect, "applied")).refusal == (404, "not_found")
    runtime = api.speaking_for(await owner.token("default", "runtime"))
    async with runtime.http:
        assert (await runtime.tell(effect, "applied")).refusal == (403, "forbidden")
    assert (await api.show(effect))["evidence"] == []


async def test_a_late_answer_to_a_reconciler_contradicts_as_well(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    """It was asked, lost its lease, and hears of another end than the one that was recorded."""
    effect = await api.dispatched(
        await api.publish(a_contract(evidence=http_evidence(provider.port)))
    )
    await api.report(effect, "unknown")
    provider.book(effect["effect_id"], amount_cents=AMOUNT)
    source = sweep.sweeper.source
    has_asked, may_answer = asyncio.Event(), asyncio.Event()

    class Slow:
        async def ask(self, contract: Any, question: Any, asker: Any) -> Any:
            judgement = await source.ask(contract, question, asker)
            has_asked.set()
            await may_answer.wait()
            return judgement

    late = asyncio.create_task(sweeper_of(api, Slow(), name="late").once())
    await has_asked.wait()
    await owner.run_out(effect)
    await sweep.once()
    provider.book(effect["effect_id"], status="rejected")
    await sweep.once()
    assert await api.state(effect) == "FAILED"
    may_answer.set()
    await late
    shown = await api.show(effect)
    assert (shown["state"], shown["events"][-1]["transition"]) == ("QUARANTINED", "T12")


# --- exhaustion -----------------------------------------------------------------------------------


async def test_a_source_that_never_tells_is_escalated_once(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep, caplog: pytest.LogCaptureFixture
):
    effect = await api.dispatched(
        await api.publish(a_contract(evidence=http_evidence(provider.port)))
    )
    await api.report(effect, "unknown")
    provider.status = 503
    text = (await api.http.get("/metrics")).text
    assert 'tallystick_effects_open{state="QUARANTINED"} 0.0' in text
    assert 'tallystick_effects_open{state="UNKNOWN"} 1.0' in text
    assert "tallystick_effects_unknown_since_seconds 1." in text
    for _ in range(CHECKS_MAX):
        await owner.run_out(effect)
        await sweep.once()
    shown = await api.show(effect)
    assert shown["state"] == "QUARANTINED"
    assert shown["reason"] == f"inconclusive for good: asked {CHECKS_MAX} times"
    told = [one.message for one in caplog.records if one.levelno == logging.WARNING]
    assert told == [
        f"effect {effect['effect_id']} of billing.send_invoice is quarantined: {shown['reason']}"
    ]
    text = (await api.http.get("/metrics")).text
    assert 'tallystick_effects_open{state="QUARANTINED"} 1.0' in text
    assert "tallystick_effects_unknown_since_seconds 0.0" in text


# --- plug-ins -------------------------------------------------------------------------------------


def installed(*names: str) -> Plugins:
    return Plugins({name: EntryPoint(name, f"tests.plugins:{name}", GROUP) for name in names})


def plugged(name: str, **changes: Any) -> dict[str, Any]:
    plugin = {"name": name, "timeout_seconds": 1}
    return {"source": "plugin", "consistency": "read_after_write", "plugin": plugin} | changes


async def test_a_plug_in_is_asked_and_settles(api: Api, sweep: Sweep):
    effect = await api.dispatched(await api.publish(a_contract(evidence=plugged("applied"))))
    await api.report(effect, "unknown")
    plugins.asked.clear()
    source = Sources(sweep.sweeper.source, installed("applied"))
    await sweeper_of(api, source).once()
    shown = await api.show(effect)
    assert (shown["state"], shown["outcome"]["provider_reference"]) == ("SUCCEEDED", "inv_1")
    (evidence,) = shown["evidence"]
    assert (evidence["source"], evidence["detail"]) == ("plugin", "seen in the books")
    (question,) = plugins.asked
    assert (question.effect_id, question.tool) == (effect["effect_id"], "billing.send_invoice")
    assert (question.arguments, question.tenant) == (ARGUMENTS, "default")
    assert question.idempotency_key == effect["dispatch"]["idempotency_key"]


async def test_a_plug_ins_absent_is_believed_as_any_other(api: Api, owner: Owner, sweep: Sweep):
    effect = await api.dispatched(await api.publish(a_contract(evidence=plugged("absent"))))
    await api.report(effect, "unknown")
    sweeping = sweeper_of(api, Sources(sweep.sweeper.source, installed("absent")))
    await sweeping.once()
    assert await api.state(effect) == "UNKNOWN"
    await owner.pass_time(effect, 2)
    await sweeping.once()
    assert await api.state(effect) == "RETRYABLE"


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("silent", "the plug-in did not answer in time"),
        ("broken", "the plug-in failed: RuntimeError"),
        ("ends", "the plug-in failed: SystemExit"),
        ("says_nothing", "the plug-in's answer is none"),
        ("invents", "the plug-in failed: ValueError"),
        ("is_not_there", "the plug-in failed: AttributeError"),
    ],
)
async def test_what_a_plug_in_cannot_say_is_unavailable(
    name: str, detail: str, caplog: pytest.LogCaptureFixture
):
    seconds = 0.2 if name == "silent" else 30
    told = await installed(name).ask(PluginEvidence(name, seconds), a_question("run.1"))
    assert (told.answer, told.detail) == ("unavailable", detail)
    assert "canary" not in caplog.text
    assert str(ARGUMENTS["amount_cents"]) not in caplog.text


async def test_a_plug_in_that_is_not_installed_is_unavailable():
    told = await installed().ask(PluginEvidence("applied", 1), a_question("run.1"))
    assert (told.answer, told.detail) == ("unavailable", "no plug-in 'applied' is installed")


async def test_a_plug_in_that_hangs_does_not_pile_up():
    asking = installed("silent")
    told = await asyncio.gather(
        *(
            asking.ask(PluginEvidence("silent", 0.2), a_question("run.1"))
            for _ in range(UNANSWERED_MAX + 2)
        )
    )
    details = [one.detail for one in told]
    assert details.count("the plug-in is still at earlier questions") == 2
    assert {one.answer for one in told} == {"unavailable"}

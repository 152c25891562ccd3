"""What may run once is settled by two people, each by a token of their own."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tests.api import Answered, Api
from tests.builders import a_contract_of
from tests.fixtures import Owner, Sweep


async def person(api: Api, owner: Owner, name: str) -> Api:
    return api.speaking_for(await owner.token("default", "operator", principal=name))


@pytest.fixture
async def ada(api: Api, owner: Owner) -> AsyncGenerator[Api]:
    ada = await person(api, owner, "ada")
    async with ada.http:
        yield ada


@pytest.fixture
async def grace(api: Api, owner: Owner) -> AsyncGenerator[Api]:
    grace = await person(api, owner, "grace")
    async with grace.http:
        yield grace


async def quarantined(api: Api, sweep: Sweep, effect_class: str = "NON_RETRYABLE") -> Any:
    effect = await api.dispatched(await api.publish(a_contract_of(effect_class)))
    await api.report(effect, "unknown")
    await sweep.until(api, effect, "QUARANTINED")
    return effect


async def withdraw(who: Api, effect: Any) -> Answered:
    return await who.ask(
        "POST", f"/v1/effects/{effect['effect_id']}/withdraw", {"reason": "I was wrong"}
    )


@pytest.mark.parametrize("effect_class", ["UNKNOWN", "NON_RETRYABLE"])
@pytest.mark.parametrize("to", ["SUCCEEDED", "FAILED", "ABANDONED"])
async def test_the_second_person_decides_what_the_first_proposed(
    api: Api, sweep: Sweep, ada: Api, grace: Api, effect_class: str, to: str
):
    effect = await quarantined(api, sweep, effect_class)
    proposed = await ada.resolve(effect, to, reason="never sent", evidence="the statement")
    assert (proposed.status, proposed.body["state"]) == (200, "QUARANTINED")
    told = {name: proposed.body["proposal"][name] for name in ("status", "to", "by", "evidence")}
    assert told == {"status": "proposed", "to": to, "by": "ada", "evidence": "the statement"}
    assert (await api.show(effect))["evidence"] == [], "one person's word is no evidence yet"
    decided = await grace.resolve(effect, to, reason="I see it too", evidence="ticket 7")
    assert (decided.status, decided.body["state"], decided.body["proposal"]) == (200, to, None)
    shown = await api.show(effect)
    assert shown["outcome"]["decided_by"] == "person:grace"
    assert shown["outcome"]["reason"] == (
        "I see it too (evidence: ticket 7); proposed by person:ada:"
        " never sent (evidence: the statement)"
    )
    said = [(one["source"], one["detail"]) for one in shown["evidence"]]
    assert said == [("person:ada", "the statement"), ("person:grace", "ticket 7")]
    words = [(one["status"], one["by"], one["proposed_by"]) for one in shown["resolutions"]]
    assert words == [("proposed", "ada", None), ("confirmed", "grace", "ada")]
    await api.check_histories()


async def test_one_person_is_one_however_often_they_say_it(
    api: Api, owner: Owner, sweep: Sweep, ada: Api
):
    effect = await quarantined(api, sweep)
    once_more = await person(api, owner, "ada")
    for who, words in ((ada, {}), (ada, {}), (once_more, {}), (ada, {"reason": "again"})):
        answer = await who.resolve(effect, "FAILED", **words)
        assert (answer.status, answer.body["state"]) == (200, "QUARANTINED")
    words = (await api.show(effect))["resolutions"]
    assert [one["reason"] for one in words] == ["looked it up", "again"], "the same twice is one"


async def test_nobody_names_a_second_person(api: Api, sweep: Sweep, ada: Api):
    effect = await quarantined(api, sweep)
    answer = await ada.resolve(effect, "FAILED", second="grace")
    assert (answer.refusal, answer.body["pointer"]) == ((422, "invalid_request"), "/second")
    assert (await api.show(effect))["resolutions"] == []


async def test_who_says_otherwise_proposes_that(api: Api, sweep: Sweep, ada: Api, grace: Api):
    effect = await quarantined(api, sweep)
    await ada.resolve(effect, "FAILED")
    answer = await grace.resolve(effect, "SUCCEEDED")
    assert (answer.body["state"], answer.body["proposal"]["by"]) == ("QUARANTINED", "grace")
    assert (await grace.resolve(effect, "SUCCEEDED")).body["state"] == "QUARANTINED"
    decided = await ada.resolve(effect, "SUCCEEDED")
    assert decided.body["state"] == "SUCCEEDED", "and the first may be convinced"


async def test_what_is_withdrawn_counts_no_more(api: Api, sweep: Sweep, ada: Api, grace: Api):
    effect = await quarantined(api, sweep)
    assert (await withdraw(ada, effect)).refusal == (409, "illegal_transition")
    await ada.resolve(effect, "FAILED")
    answer = await withdraw(grace, effect)
    assert (answer.status, answer.body["proposal"]) == (200, None)
    assert (await withdraw(ada, effect)).refusal == (409, "illegal_transition")
    answer = await grace.resolve(effect, "FAILED")
    assert (answer.body["state"], answer.body["proposal"]["by"]) == ("QUARANTINED", "grace")
    assert (await ada.resolve(effect, "FAILED")).body["state"] == "FAILED"
    statuses = [one["status"] for one in (await api.show(effect))["resolutions"]]
    assert statuses == ["proposed", "withdrawn", "proposed", "confirmed"]
    assert (await withdraw(ada, effect)).refusal == (409, "effect_conflict")


async def test_a_proposal_is_for_one_quarantine(
    api: Api, owner: Owner, sweep: Sweep, ada: Api, grace: Api
):
    effect = await quarantined(api, sweep)
    await ada.resolve(effect, "FAILED")
    await grace.resolve(effect, "FAILED")
    late = {
        "outcome": "succeeded",
        "worker_id": api.worker_id,
        "fence": effect["dispatch"]["fence"],
    }
    await api.ask("POST", f"/v1/effects/{effect['effect_id']}/outcome", late)
    shown = await api.show(effect)
    assert (shown["state"], shown["proposal"]) == ("QUARANTINED", None), "it came back"
    answer = await grace.resolve(effect, "SUCCEEDED")
    assert answer.body["state"] == "QUARANTINED", "and takes two people anew"
    assert (await ada.resolve(effect, "SUCCEEDED")).body["state"] == "SUCCEEDED"
    await api.check_histories()


async def test_what_may_never_be_sent_again_is_not_even_proposed(
    api: Api, sweep: Sweep, ada: Api, grace: Api
):
    effect = await quarantined(api, sweep)
    for who in (ada, grace):
        again = await who.resolve(effect, "RETRYABLE")
        assert again.refusal == (409, "effect_not_retryable")
    assert (await api.show(effect))["resolutions"] == []


async def test_two_at_once_are_two(api: Api, sweep: Sweep, ada: Api, grace: Api):
    effect = await quarantined(api, sweep)
    answers = await asyncio.gather(ada.resolve(effect, "FAILED"), grace.resolve(effect, "FAILED"))
    assert sorted(one.body["state"] for one in answers) == ["FAILED", "QUARANTINED"]
    assert await api.state(effect) == "FAILED"


async def test_one_is_enough_for_the_other_classes(api: Api, sweep: Sweep, ada: Api):
    effect = await quarantined(api, sweep, "IDEMPOTENT")
    assert (await ada.resolve(effect, "FAILED")).body["state"] == "FAILED"
    assert (await api.show(effect))["resolutions"] == []


# --- the same in the database ---------------------------------------------------------------------


async def test_the_database_asks_for_two_people_too(
    api: Api, owner: Owner, sweep: Sweep, ada: Api, grace: Api
):
    effect = await quarantined(api, sweep)
    await ada.resolve(effect, "FAILED")
    run_id, number = effect["effect_id"].split(".")
    confirm = (
        "INSERT INTO resolution_event (run_id, number, step, tenant_id, fence, previous_step,"
        " from_status, to_status, to_state, principal, proposed_by, reason, at)"
        " SELECT run_id, number, 2, tenant_id, fence, 1, 'proposed', 'confirmed', %s, %s, %s, 'x',"
        " at FROM resolution_event WHERE step = 1"
    )
    for to_state, principal, proposed_by, constraint in (
        ("FAILED", "ada", "ada", "resolution_event_takes_two_people_check"),
        ("FAILED", "grace", None, "resolution_event_takes_two_people_check"),
        ("FAILED", "grace", "eve", "resolution_event_agrees_fkey"),
        ("SUCCEEDED", "grace", "ada", "resolution_event_agrees_fkey"),
    ):
        with pytest.raises(psycopg.IntegrityError) as refused:
            await owner.rows(confirm, to_state, principal, proposed_by)
        assert refused.value.diag.constraint_name == constraint
    with pytest.raises(errors.CheckViolation) as refused:
        await owner.rows(
            "INSERT INTO event (run_id, number, fence, tenant_id, transition, from_state, to_state,"
            " previous_fence, attempt, actor, reason, at)"
            " SELECT run_id, number, fence + 1, tenant_id, 'T11', 'QUARANTINED', 'FAILED', fence,"
            " attempt, 'person:ada', 'x', at FROM event"
            " WHERE run_id = %s AND number = %s AND to_state = 'QUARANTINED'",
            *(run_id, number),
        )
    assert refused.value.diag.constraint_name == "two_people_agreed"

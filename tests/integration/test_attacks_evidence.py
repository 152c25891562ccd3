"""What an attacker, or a bad night, tries at evidence, messages, quarantine and two people."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from ledger.evidence import REPEATS_MAX
from reconciler.sources import Sources
from tests.api import Api, running
from tests.builders import a_contract, a_contract_of, http_evidence
from tests.fixtures import Owner, Sweep, sweeper_of
from tests.integration.test_evidence import installed, plugged
from tests.integration.test_quarantine import late, looked_at, lost, migrate, retry
from tests.integration.test_webhooks import EVIDENCE, WEBHOOK, about, secrets_file, sent, signed
from tests.provider import Provider

pytestmark = pytest.mark.usefixtures("histories")

ANSWER = {name: fact for name, fact in http_evidence(1)["answer"].items() if name != "match"}


@pytest.fixture
async def api(database_url: str, tmp_path: Path) -> AsyncGenerator[Api]:
    """The application, with the secrets of providers that send messages, and no leases."""
    async with running(database_url, tmp_path / "home", secrets_file=secrets_file(tmp_path)) as api:
        api.app.state.lease_seconds_max = 0
        yield api


@pytest.fixture
async def grace(api: Api, owner: Owner) -> AsyncGenerator[Api]:
    grace = api.speaking_for(await owner.token("default", "operator", principal="grace"))
    async with grace.http:
        yield grace


async def message(api: Api, effect: dict[str, Any], status: str, message_id: str) -> None:
    body = about(effect, status)
    answer = await sent(api, body, signed(body, message_id=message_id))
    assert answer.status_code == 204, answer.text


# --- paid twice -----------------------------------------------------------------------------------


@pytest.mark.parametrize("effect_class", ["NON_RETRYABLE", "IDEMPOTENT"])
async def test_what_happened_before_it_was_sent_is_not_sent(api: Api, effect_class: str):
    """A person paid by hand, and said so, while the call waited for its approval."""
    document = a_contract_of(effect_class, approval="always")
    effect = (await api.plan(await api.publish(document))).body
    assert (await api.tell(effect, "applied")).body["state"] == "QUARANTINED"
    shown = await api.show(effect)
    assert shown["reason"] == "it was REFUSED, and person:admin says applied: ticket 7"
    approval = (await api.ask("GET", f"/v1/approvals/{effect['effect_id']}")).body
    assert approval["status"] not in ("pending", "approved")
    assert not (await api.dispatch(effect)).body["dispatch"]["owned"]
    assert shown["attempts"] == []


async def test_what_happened_is_not_moved_to_another_version_to_be_done_again(api: Api):
    old = await late(api, await api.publish(a_contract()))
    await api.publish(a_contract(version="3.0"))
    assert (await api.tell(old, "applied")).body["state"] == "QUARANTINED"
    choices = {one["choice"]: one["allowed"] for one in (await looked_at(api, old))["choices"]}
    assert not choices["migrate"]
    assert (await migrate(api, old)).refusal == (409, "illegal_transition")


async def test_what_took_the_place_of_something_that_happened_is_not_sent(api: Api):
    planned = (await api.plan(await api.publish(a_contract()))).body
    await api.publish(a_contract(version="3.0"))
    moved = (await migrate(api, planned)).body
    await api.tell(planned, "applied")
    assert [await api.state(each) for each in (planned, moved)] == ["QUARANTINED"] * 2
    assert not (await api.dispatch(moved)).body["dispatch"]["owned"]
    (evidence,) = (await api.show(moved))["evidence"]
    assert evidence["answer"] == "contradicts"
    assert planned["effect_id"] in evidence["detail"]


@pytest.mark.parametrize(("told", "reported"), [("rejected", "succeeded"), ("applied", "failed")])
async def test_a_report_that_evidence_contradicts_is_not_lost(
    api: Api, sweep: Sweep, told: str, reported: str
):
    """Whoever is right: it does not end as what only one of them says."""
    effect = await api.dispatched(await api.publish(a_contract()))
    await api.tell(effect, told)
    report = await api.report(effect, reported, provider_reference="inv_7")
    assert report.body["state"] == "UNKNOWN"
    await sweep.once()
    shown = await api.show(effect)
    assert (shown["state"], len(shown["evidence"])) == ("QUARANTINED", 2)
    assert (await looked_at(api, effect))["cause"] == "contradicted"
    assert shown["evidence"][1]["source"] == "worker"
    assert shown["evidence"][1]["provider_reference"] == "inv_7"


async def test_a_refusal_after_a_retry_on_a_hunch_does_not_speak_of_what_came_before(
    api: Api, sweep: Sweep
):
    effect = await lost(api, sweep, await api.publish(a_contract_of("IDEMPOTENT")))
    assert (await retry(api, effect)).body["state"] == "RETRYABLE"
    again = (await api.dispatch(effect)).body
    assert (await api.report(again, "failed")).body["state"] == "UNKNOWN"


async def test_a_refusal_that_was_seen_before_the_last_attempt_does_not_settle_it(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    reference = await api.publish(a_contract(evidence=http_evidence(provider.port)))
    effect = await api.dispatched(reference)
    await api.report(effect, "unknown")
    await sweep.once()
    await owner.pass_time(effect, 2)
    await sweep.once()
    await api.report((await api.dispatch(effect)).body, "unknown")
    await api.tell(effect, "rejected", observed_at=effect["planned_at"])
    provider.status = 503
    await sweep.once()
    assert await api.state(effect) == "UNKNOWN"


# --- lost -----------------------------------------------------------------------------------------


async def test_a_plug_in_that_answers_what_no_row_can_hold_settles_all_the_same(
    api: Api, sweep: Sweep
):
    effect = await api.dispatched(await api.publish(a_contract(evidence=plugged("garbles"))))
    await api.report(effect, "unknown")
    await sweeper_of(api, Sources(sweep.sweeper.source, installed("garbles"))).once()
    shown = await api.show(effect)
    assert shown["state"] == "SUCCEEDED"
    assert shown["outcome"]["provider_reference"] == r"inv\x00\udfff"
    assert shown["evidence"][0]["detail"] == r"no text \x00\ud800 \x1b[2J"


async def test_what_cannot_be_read_any_more_holds_up_nothing_else(
    api: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    properties = {"card": {"type": "string", "x-sensitive": True}}
    document = a_contract(
        input_schema={"type": "object", "properties": properties},
        evidence=http_evidence(provider.port, answer=ANSWER),
    )
    reference = await api.publish(document)
    first, second = [
        await api.dispatched(reference, effect=f"effect-{one}", arguments={"card": "4711"})
        for one in (1, 2)
    ]
    for each in (first, second):
        provider.book(each["effect_id"])
        await api.report(each, "unknown")
    await owner.rows(
        "UPDATE effect_payload SET sealed = '\\x00112233445566778899aabbccddeeff'::bytea"
        " WHERE number = %s",
        int(first["effect_id"].partition(".")[2]),
    )
    await sweep.once()
    assert [await api.state(each) for each in (first, second)] == ["UNKNOWN", "SUCCEEDED"]
    (evidence,) = (await api.show(first))["evidence"]
    assert evidence["answer"] == "unavailable", "so it reaches a person some day"


async def test_what_a_cache_answers_says_nothing_of_now(api: Api, provider: Provider, sweep: Sweep):
    reference = await api.publish(a_contract(evidence=http_evidence(provider.port)))
    effect = await api.dispatched(reference)
    await api.report(effect, "unknown")
    provider.headers = b"Age: 7\r\n"
    await sweep.once()
    (evidence,) = (await api.show(effect))["evidence"]
    assert (evidence["answer"], evidence["detail"]) == (
        "unavailable",
        "the answer comes from a cache",
    )
    assert provider.heads[0]["cache-control"] == "no-cache"


async def test_evidence_that_comes_while_a_person_decides_waits_for_the_decision(
    api: Api, owner: Owner, database_url: str
):
    """Another one opened the effect while this waited; it is read again, and held."""
    effect = await api.dispatched(await api.publish(a_contract()))
    await api.report(effect, "failed")
    connect = psycopg.AsyncConnection.connect
    async with await connect(database_url) as turn, await connect(database_url) as person:
        await turn.execute(
            "SELECT pg_advisory_lock(hashtextextended(%s, 0))",
            (f"tallystick.effect {effect['effect_id']}",),
        )
        telling = asyncio.ensure_future(api.tell(effect, "applied"))
        await owner.wait_for_locks()
        await owner.rows(
            "WITH told AS (INSERT INTO event (run_id, number, fence, tenant_id, transition,"
            " from_state, to_state, previous_fence, attempt, actor, reason, at)"
            " SELECT run_id, number, fence + 1, tenant_id, 'T12', status, 'QUARANTINED',"
            " fence, 1, 'x', 'y', now() FROM effect_outcome)"
            " INSERT INTO effect_open (run_id, number, tenant_id, contract_id,"
            " presented_contract_id, effect_class, state, fence, attempt, reason,"
            " first_dispatched_at)"
            " SELECT run_id, number, effect.tenant_id, contract_id, contract_id, effect_class,"
            " 'QUARANTINED', fence + 1, 1, 'y', now()"
            " FROM effect JOIN effect_outcome USING (run_id, number)"
        )
        await person.execute("SELECT FROM effect_open FOR UPDATE")
        await turn.rollback()
        await turn.execute("SELECT pg_advisory_unlock_all()")
        await owner.wait_for_locks()
        await person.rollback()
        assert (await telling).status == 201


# --- two people -----------------------------------------------------------------------------------


async def test_a_word_that_was_taken_back_does_not_count(api: Api, sweep: Sweep, grace: Api):
    effect = await api.dispatched(await api.publish(a_contract_of("NON_RETRYABLE")))
    await api.tell(effect, "applied")
    await api.tell(effect, "rejected", detail="I was wrong")
    await grace.tell(effect, "applied")
    await api.report(effect, "unknown")
    await sweep.once()
    assert await api.state(effect) == "QUARANTINED"


async def test_nobody_confirms_what_evidence_has_contradicted_since(
    api: Api, sweep: Sweep, grace: Api
):
    effect = await lost(api, sweep, await api.publish(a_contract_of("NON_RETRYABLE")))
    assert (await api.resolve(effect, "FAILED")).body["proposal"]["by"] == "admin"
    assert (await api.report(effect, "succeeded")).code == "fence_stale"
    assert (await api.show(effect))["proposal"] is None
    answer = (await grace.resolve(effect, "FAILED")).body
    assert (answer["state"], answer["proposal"]["by"]) == ("QUARANTINED", "grace")
    assert (await api.resolve(effect, "FAILED")).body["state"] == "FAILED", "seen by both"


# --- messages -------------------------------------------------------------------------------------


async def test_a_message_that_names_two_effects_is_kept_for_both(api: Api):
    paid = await api.dispatched(await api.publish(a_contract(evidence=EVIDENCE)))
    form = WEBHOOK | {"id": "/data/refund_id", "state": "/data/refund", "match": {}}
    refund = a_contract(name="billing.refund", evidence=EVIDENCE | {"webhook": form})
    back = await api.dispatched(await api.publish(refund), effect="effect-2")
    body = about(paid, "applied", refund_id=back["effect_id"], refund="rejected")
    for _ in range(2):
        assert (await sent(api, body, signed(body))).status_code == 204
    answers = [
        [one["answer"] for one in (await api.show(each))["evidence"]] for each in (paid, back)
    ]
    assert answers == [["applied"], ["rejected"]]


async def test_a_provider_that_repeats_itself_does_not_bury_an_effect(api: Api, owner: Owner):
    effect = await api.dispatched(await api.publish(a_contract(evidence=EVIDENCE)))
    await owner.rows(
        "INSERT INTO effect_evidence (run_id, number, evidence_id, tenant_id, fence, source,"
        " answer, observed_at, received_at, detail)"
        " SELECT run_id, number, gen_random_uuid(), tenant_id, fence, 'webhook:acme', 'applied',"
        " now(), now(), '' FROM effect_open, generate_series(1, %s)",
        REPEATS_MAX,
    )
    await message(api, effect, "applied", "msg_1")
    assert len((await api.show(effect))["evidence"]) == REPEATS_MAX
    await message(api, effect, "rejected", "msg_2")
    assert len((await api.show(effect))["evidence"]) == REPEATS_MAX + 1


# --- by hand --------------------------------------------------------------------------------------


async def test_no_row_takes_the_place_of_what_was_opened_again(api: Api, owner: Owner):
    planned = (await api.plan(await api.publish(a_contract()))).body
    await api.cancel(planned)
    await api.tell(planned, "applied")
    columns = await owner.one(
        "SELECT string_agg(attname, ', ') FROM pg_attribute WHERE attrelid = 'effect'::regclass"
        " AND attnum > 0 AND NOT attisdropped AND attname NOT IN ('number', 'supersedes')"
    )
    with pytest.raises(errors.CheckViolation, match="cannot take the place of"):
        await owner.rows(
            f"INSERT INTO effect (number, supersedes, {columns})"
            f" SELECT 7, number, {columns} FROM effect"
        )

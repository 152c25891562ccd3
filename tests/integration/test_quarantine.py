"""The quarantine: what waits for a person, what may be decided, and what becomes of it."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.api import Answered, Api
from tests.builders import ARGUMENTS, SEND_INVOICE, a_contract, a_contract_of
from tests.fixtures import Owner, Sweep

ASKED = {"reason": "still wanted"}
NAME = SEND_INVOICE["name"]


@pytest.fixture
async def drained(api: Api) -> Api:
    """The application, with no leases that a retirement would wait for."""
    api.app.state.lease_seconds_max = 0
    return api


@pytest.fixture
async def ada(api: Api, owner: Owner) -> AsyncGenerator[Api]:
    """An operator, who may not plan or dispatch anything."""
    ada = api.speaking_for(await owner.token("default", "operator", principal="ada"))
    async with ada.http:
        yield ada


async def late(api: Api, reference: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return work that a queue brought for a version that is retired."""
    assert (await api.retire(reference)).status == 200
    return (await api.plan(reference, origin="queue", **changes)).body


async def lost(api: Api, sweep: Sweep, reference: dict[str, Any], **changes: Any) -> Any:
    """Return an effect of which nobody knows whether it took place, quarantined."""
    effect = await api.dispatched(reference, **changes)
    await api.report(effect, "unknown")
    await sweep.until(api, effect, "QUARANTINED")
    return effect


async def migrate(who: Api, effect: dict[str, Any], version: str = "3.0") -> Answered:
    body = ASKED | {"version": version}
    return await who.ask("POST", f"/v1/effects/{effect['effect_id']}/migrate", body)


async def retry(who: Api, effect: dict[str, Any], **more: Any) -> Answered:
    return await who.ask("POST", f"/v1/effects/{effect['effect_id']}/retry", ASKED | more)


async def listed(api: Api, query: str = "") -> list[dict[str, Any]]:
    return (await api.ask("GET", f"/v1/quarantine{query}")).body["effects"]


async def looked_at(api: Api, effect: dict[str, Any]) -> dict[str, Any]:
    answer = await api.ask("GET", f"/v1/quarantine/{effect['effect_id']}")
    assert answer.status == 200, answer
    return answer.body


# --- what waits -----------------------------------------------------------------------------------


async def test_the_longest_waiting_comes_first_with_its_cause(
    drained: Api, other: Api, sweep: Sweep
):
    pure = await drained.publish(a_contract_of("IDEMPOTENT"))
    effects = [await lost(drained, sweep, pure, effect=f"effect-{one}") for one in range(3)]
    queued = await late(drained, await drained.publish(a_contract()), run="run-2")
    found = await listed(drained)
    assert [one["effect_id"] for one in found] == [one["effect_id"] for one in (*effects, queued)]
    assert [one["cause"] for one in found] == [*["inconclusive"] * 3, "retired"]
    assert await listed(other) == []
    theirs = await other.ask("GET", f"/v1/quarantine/{queued['effect_id']}")
    assert theirs.refusal == (404, "not_found")
    ages = [one["age_seconds"] for one in found]
    assert ages == sorted(ages, reverse=True)
    assert min(ages) >= 0
    for query, many in (
        (f"?tool={NAME}", 1),
        (f"?tool={NAME}&version=2.1", 1),
        (f"?tool={NAME}&version=9.9", 0),
        ("?version=2.1.0&tool=nothing", 0),
    ):
        assert len(await listed(drained, query)) == many, query
    assert (await drained.ask("GET", "/v1/quarantine?version=x")).refusal == (
        422,
        "invalid_request",
    )


async def test_a_page_goes_on_where_its_last_effect_was_resolved(api: Api, sweep: Sweep):
    reference = await api.publish(a_contract_of("IDEMPOTENT"))
    effects = [await lost(api, sweep, reference, effect=f"effect-{one}") for one in range(3)]
    page = (await api.ask("GET", "/v1/quarantine?limit=1")).body
    assert page["next"] == effects[0]["effect_id"]
    await api.resolve(effects[0], "FAILED")
    rest = await listed(api, f"?after={page['next']}")
    assert [one["effect_id"] for one in rest] == [one["effect_id"] for one in effects[1:]]


async def test_one_look_tells_what_may_be_decided(drained: Api, sweep: Sweep):
    sent = await lost(drained, sweep, await drained.publish(a_contract_of("NON_RETRYABLE")))
    shown = await looked_at(drained, sent)
    assert (shown["arguments"], len(shown["attempts"])) == (ARGUMENTS, 1)
    assert shown["idempotency_key"] is None, "the contract has none"
    told = {one["choice"]: (one["people"], one["allowed"]) for one in shown["choices"]}
    assert told == {
        "SUCCEEDED": (2, True),
        "FAILED": (2, True),
        "RETRYABLE": (1, False),
        "migrate": (1, False),
        "ABANDONED": (2, True),
    }
    queued = await late(drained, await drained.publish(a_contract()), run="run-2")
    shown = await looked_at(drained, queued)
    told = {one["choice"]: one["allowed"] for one in shown["choices"]}
    assert (told["RETRYABLE"], told["migrate"]) == (False, True)
    why = {one["choice"]: one["why_not"] for one in shown["choices"]}
    assert "is retired" in why["RETRYABLE"]


async def test_what_is_allowed_is_what_is_then_done(api: Api, sweep: Sweep):
    """The choices and the decisions are of one mind, whatever the class."""
    for effect_class in ("IDEMPOTENT", "REPLAYABLE", "NON_RETRYABLE", "UNKNOWN"):
        more = {"max_duplicates": 0} if effect_class == "REPLAYABLE" else {}
        reference = await api.publish(a_contract_of(effect_class, **more))
        effect = await lost(api, sweep, reference, run=effect_class)
        choices = {one["choice"]: one for one in (await looked_at(api, effect))["choices"]}
        assert (await migrate(api, effect)).status != 201
        answer = await retry(api, effect)
        assert (answer.status == 200) == choices["RETRYABLE"]["allowed"], effect_class
        if answer.status == 200:
            continue
        assert answer.body["detail"] == choices["RETRYABLE"]["why_not"]


async def test_only_what_is_quarantined_is_shown_here(api: Api):
    effect = (await api.plan(await api.publish(a_contract()))).body
    answer = await api.ask("GET", f"/v1/quarantine/{effect['effect_id']}")
    assert answer.refusal == (409, "effect_conflict")
    assert await listed(api) == []


# --- another attempt ------------------------------------------------------------------------------


async def test_another_attempt_is_on_the_recorded_version(api: Api, ada: Api, sweep: Sweep):
    reference = await api.publish(a_contract_of("IDEMPOTENT"))
    effect = await lost(api, sweep, reference)
    newer = await api.publish(a_contract_of("IDEMPOTENT", version="2.0.0"))
    answer = await retry(ada, effect)
    assert (answer.status, answer.body["state"]) == (200, "RETRYABLE")
    assert (await retry(ada, effect)).body["fence"] == answer.body["fence"], "once is enough"
    refused = await api.dispatch(effect, tool=newer)
    assert refused.refusal == (409, "tool_schema_drift")
    sent = (await api.dispatch(effect, tool=reference)).body
    assert (sent["version"], sent["attempt"]) == (effect["version"], 2)
    assert sent["dispatch"]["owned"]
    for part in ("idempotency_key", "arguments"):
        assert sent["dispatch"][part] == effect["dispatch"][part], "the same request, byte by byte"
    shown = await api.show(effect)
    assert shown["idempotency_key"] == effect["dispatch"]["idempotency_key"]
    assert [event["actor"] for event in shown["events"] if event["transition"] == "T11"] == [
        "person:ada"
    ]
    assert shown["events"][-2]["reason"] == "still wanted"


async def test_another_attempt_needs_what_the_first_one_needed(
    api: Api, owner: Owner, sweep: Sweep
):
    reference = await api.publish(a_contract_of("IDEMPOTENT", attempts_max=9))
    name, version = reference["name"], reference["version"]
    effect = await lost(api, sweep, reference)
    capability = {"principal": "admin", "capability": reference["capabilities"][0]}

    async def sent_and_lost() -> None:
        again = (await api.dispatch(effect)).body
        assert (again["dispatch"]["owned"], again["version"]) == (True, version)
        key = effect["dispatch"]["idempotency_key"]
        assert again["dispatch"]["idempotency_key"] == key
        await api.report(again, "unknown")
        await sweep.until(api, effect, "QUARANTINED")

    await api.http.delete("/v1/grants", params=capability)
    refused = await retry(api, effect)
    assert refused.refusal == (409, "effect_not_retryable")
    assert "does not hold" in refused.body["detail"]
    assert (await api.ask("POST", "/v1/grants", capability)).status == 201
    # Suspended is not for good: it is released, and waits.
    await owner.suspend(name, version)
    assert (await retry(api, effect)).body["state"] == "RETRYABLE"
    assert (await api.dispatch(effect)).refusal == (409, "contract_suspended")
    await owner.suspend(name, version, suspended=False)
    await owner.live(name, version, "DEPRECATED")
    await sent_and_lost()
    assert (await api.retire(reference)).refusal == (409, "contract_in_use")
    assert (await retry(api, effect)).body["state"] == "RETRYABLE", "closed: what is open drains"
    await sent_and_lost()
    # A credential that has gone on does not come back, whoever attests the contract.
    await api.rotate("billing-api")
    path = f"/v1/contracts/{name}/{version}/attest"
    assert (await api.ask("POST", path, {"reason": "the same account"})).status == 200
    refused = await retry(api, effect)
    assert refused.refusal == (409, "effect_not_retryable")
    assert "version 1 of its credential" in refused.body["detail"]
    choices = {one["choice"]: one for one in (await looked_at(api, effect))["choices"]}
    assert choices["RETRYABLE"]["why_not"] == refused.body["detail"]


async def test_nothing_is_sent_again_against_the_evidence(api: Api, owner: Owner, sweep: Sweep):
    reference = await api.publish(a_contract_of("REPLAYABLE", max_duplicates=0))
    effect = await lost(api, sweep, reference)
    told = {"worker_id": api.worker_id, "fence": effect["dispatch"]["fence"]}
    answer = await api.report(effect, "succeeded")
    assert answer.refusal == (409, "fence_stale"), told
    refused = await retry(api, effect)
    assert refused.refusal == (409, "effect_not_retryable")
    assert "took effect after all" in refused.body["detail"]


async def test_what_had_ended_is_never_sent_again(api: Api, sweep: Sweep):
    effect = await lost(api, sweep, await api.publish(a_contract_of("IDEMPOTENT")))
    await api.resolve(effect, "FAILED")
    assert (await api.report(effect, "succeeded")).refusal == (409, "fence_stale")
    shown = await looked_at(api, effect)
    assert (shown["state"], shown["cause"]) == ("QUARANTINED", "contradicted")
    refused = await retry(api, effect)
    assert refused.refusal == (409, "effect_not_retryable")
    assert (await migrate(api, effect)).status == 404
    assert (await api.resolve(effect, "SUCCEEDED")).body["state"] == "SUCCEEDED"


async def test_no_attempt_after_the_horizon(api: Api, owner: Owner, sweep: Sweep):
    effect = await lost(api, sweep, await api.publish(a_contract_of("IDEMPOTENT")))
    await owner.rows(
        "UPDATE effect_open SET first_dispatched_at = first_dispatched_at - interval '1 year'"
    )
    assert (await retry(api, effect)).refusal == (409, "effect_not_retryable")


async def test_who_runs_things_does_not_release_them(api: Api, owner: Owner, sweep: Sweep):
    effect = await lost(api, sweep, await api.publish(a_contract_of("IDEMPOTENT")))
    runtime = api.speaking_for(await owner.token("default", "runtime", principal="agent"))
    async with runtime.http:
        assert (await retry(runtime, effect)).refusal == (403, "forbidden")
        assert (await migrate(runtime, effect)).refusal == (403, "forbidden")


# --- another version ------------------------------------------------------------------------------


async def test_work_that_was_never_sent_goes_on_with_another_version(drained: Api, ada: Api):
    reference = await drained.publish(a_contract())
    old = await late(drained, reference, key="key-1")
    newer = await drained.publish(a_contract(version="3.0"))
    answer = await migrate(ada, old)
    assert (answer.status, answer.body["state"]) == (201, "PLANNED")
    new = answer.body
    assert (new["version"], new["supersedes"]) == ("3.0.0", old["effect_id"])
    assert (new["principal"], new["key"]) == ("admin", "key-1"), "it is the planner's still"
    shown = await drained.show(old)
    assert (shown["state"], shown["superseded_by"]) == ("CANCELLED", new["effect_id"])
    assert shown["outcome"]["decided_by"] == "person:ada"
    assert "still wanted" in shown["outcome"]["reason"]
    again = await migrate(ada, old)
    assert (again.status, again.body["effect_id"]) == (200, new["effect_id"])
    # The caller's names lead to what took its place, whichever version it presents.
    for presented in (reference, newer):
        for names in ({"key": "key-1"}, {}):
            found = await drained.plan(presented, origin="queue", **names)
            assert (found.status, found.body["effect_id"]) == (200, new["effect_id"]), names
    assert not (await drained.dispatch(old)).body["dispatch"]["owned"]
    stale = await drained.plan(reference, key="key-1", dispatch=drained.asking())
    assert stale.refusal == (409, "tool_schema_drift")
    sent = await drained.plan(newer, key="key-1", dispatch=drained.asking())
    assert sent.body["dispatch"]["owned"]
    other = await drained.plan(newer, key="key-1", arguments=ARGUMENTS | {"invoice_id": "x"})
    assert other.code in ("effect_conflict", "invalid_arguments")
    await drained.check_histories()


async def test_a_run_that_was_moved_may_go_on_with_that_version(drained: Api):
    reference = await drained.publish(a_contract())
    planned = (await drained.plan(reference)).body
    newer = await drained.publish(a_contract(version="3.0"))
    mixed = await drained.plan(newer, effect="effect-2")
    assert mixed.refusal == (409, "mixed_versions")
    assert (await migrate(drained, planned)).status == 201
    assert (await drained.plan(newer, effect="effect-2")).status == 201


async def test_what_was_sent_stays_on_its_contract(api: Api, sweep: Sweep):
    effect = await lost(api, sweep, await api.publish(a_contract_of("IDEMPOTENT")))
    await api.publish(a_contract_of("IDEMPOTENT", version="3.0"))
    assert (await migrate(api, effect)).refusal == (409, "illegal_transition")
    await retry(api, effect)
    assert (await migrate(api, effect)).refusal == (409, "illegal_transition"), "retryable or not"
    assert await api.state(effect) == "RETRYABLE"


async def test_only_to_a_version_that_takes_the_call_as_it_is(drained: Api, owner: Owner):
    old = await late(drained, await drained.publish(a_contract()))
    schema = a_contract()["input_schema"]
    wants = {**schema, "required": [*schema.get("required", []), "purpose"]}
    wants["properties"] = {**schema["properties"], "purpose": {"type": "string"}}
    await drained.publish(a_contract(version="3.0", input_schema=wants))
    await drained.publish(
        a_contract(version="4.0", effect_class="UNKNOWN", idempotency=None), **REVIEW
    )
    await drained.publish(a_contract(version="5.0"))
    await owner.suspend(NAME, "5.0.0")
    before = await owner.counts()
    for version, refusal in (
        ("9.9", (404, "tool_contract_not_found")),
        ("2.1", (409, "contract_retired")),
        ("3.0", (422, "invalid_arguments")),
        ("4.0", (409, "effect_class_mismatch")),
        ("5.0", (409, "contract_suspended")),
        ("x", (422, "invalid_request")),
    ):
        assert (await migrate(drained, old, version)).refusal == refusal, version
    assert {k: n for k, n in (await owner.counts()).items() if k not in TRACES} == {
        k: n for k, n in before.items() if k not in TRACES
    }
    assert await drained.state(old) == "QUARANTINED"


async def test_the_gates_are_passed_anew(drained: Api):
    old = await late(drained, await drained.publish(a_contract()))
    await drained.publish(a_contract(version="3.0", approval="always"))
    answer = await migrate(drained, old)
    assert (answer.status, answer.body["state"]) == (201, "PLANNED")
    assert answer.body["approval"]["status"] == "pending"
    assert (await drained.dispatch(answer.body)).refusal == (403, "needs_human")


async def test_of_two_who_move_it_at_once_one_does(drained: Api, ada: Api):
    old = await late(drained, await drained.publish(a_contract()))
    await drained.publish(a_contract(version="3.0"))
    answers = await asyncio.gather(migrate(drained, old), migrate(ada, old))
    assert sorted(one.status for one in answers) == [200, 201]
    assert len({one.body["effect_id"] for one in answers}) == 1


async def test_what_is_sensitive_goes_along_sealed(drained: Api, owner: Owner):
    secret = {"type": "object", "properties": {"card": {"type": "string", "x-sensitive": True}}}
    document = a_contract(input_schema=secret, identity_fields=None, idempotency=None)
    document |= {"effect_class": "UNKNOWN"}
    document = {name: value for name, value in document.items() if value is not None}
    old = await late(drained, await drained.publish(document), arguments={"card": "4711"})
    newer = await drained.publish(document | {"version": "3.0"})
    moved = (await migrate(drained, old)).body
    assert moved["arguments"] == {"card": {"x-redacted": True}}
    sent = await drained.dispatch(moved, tool=newer)
    assert sent.body["dispatch"]["arguments"] == {"card": "4711"}


REVIEW: dict[str, Any] = {"review": {"reviewer": "grace", "reason": "agreed"}}
TRACES = {"gate_refusal", "effect_idem"}

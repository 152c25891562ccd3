"""Retiring a version: what stands in the way, what clears it, and that nothing slips through."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from ledger.judgement import Judgement
from reconciler.sources import Asker, HttpSource
from tallystick.evidence_source import EvidenceQuestion
from tallystick.tool_contract import Contract
from tests.api import Api, moment
from tests.builders import a_contract, http_evidence
from tests.fixtures import Owner, Sweep, sweeper_of
from tests.provider import Provider


@pytest.fixture
async def drained(api: Api) -> Api:
    """The service, with no resolution to wait for."""
    api.app.state.lease_seconds_max = 0
    return api


def blockers(refused: Any) -> list[tuple[str, str | None, int]]:
    assert refused.refusal == (409, "contract_in_use")
    assert refused.body["retryable"]
    assert all(one["clears"] for one in refused.body["facts"]["blockers"])
    return [(one["kind"], one["state"], one["count"]) for one in refused.body["facts"]["blockers"]]


async def state_of(api: Api, version: str = "2.1") -> str:
    return (await api.ask("GET", f"/v1/contracts/billing.send_invoice/{version}")).body["state"]


class Silent(HttpSource):
    """A source that gives no answer until it is let go."""

    def __init__(self) -> None:
        self.has_asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def ask(self, contract: Contract, question: EvidenceQuestion, asker: Asker) -> Judgement:
        self.has_asked.set()
        await self.may_answer.wait()
        raise ConnectionError


async def test_a_version_that_nothing_refers_to_goes_at_once(drained: Api):
    reference = await drained.publish(a_contract())
    for _ in range(2):
        answer = await drained.retire(reference)
        assert answer.body == {
            "name": reference["name"],
            "version": "2.1.0",
            "state": "RETIRED",
        }
    assert (await drained.plan(reference)).refusal == (409, "contract_retired")
    answer = await drained.rollback(reference)
    assert answer.refusal == (409, "contract_retired")
    assert await state_of(drained) == "RETIRED"


async def test_resolutions_that_were_issued_are_waited_for(api: Api):
    reference = await api.publish(a_contract())
    refused = await api.retire(reference)
    assert blockers(refused) == [("leases", None, 1)]
    facts = refused.body["facts"]
    assert facts["state"] == "MIGRATING"
    closed_at = moment(facts["closed_at"])
    assert moment(facts["earliest"]) == closed_at + timedelta(seconds=300)
    assert facts["blockers"][0]["earliest"] == facts["earliest"]
    again = await api.retire(reference)
    assert again.body["facts"] == facts, "asking again does not begin the wait again"
    shown = (await api.ask("GET", "/v1/contracts/billing.send_invoice/2.1")).body
    assert (shown["state"], moment(shown["closed_at"])) == ("MIGRATING", closed_at)
    api.app.state.lease_seconds_max = 0
    assert (await api.retire(reference)).status == 200


async def test_every_open_state_stands_in_the_way_and_says_what_clears_it(
    drained: Api, owner: Owner, provider: Provider, sweep: Sweep
):
    api = drained
    document = a_contract(evidence=http_evidence(provider.port))
    reference = await api.publish(document)

    async def sent(name: str, *, reported: bool = True) -> dict[str, Any]:
        effect = await api.dispatched(reference, effect=name)
        if reported:
            await api.report(effect, "unknown")
        return effect

    retryable, quarantined = await sent("retryable"), await sent("quarantined")
    provider.book(quarantined["effect_id"], amount_cents=1)
    await sweep.once()
    await owner.pass_time(retryable, 2)
    await sweep.once()
    reconciling = await sent("reconciling")
    silent = Silent()
    asked = asyncio.create_task(sweeper_of(api, silent).once())
    await silent.has_asked.wait()
    unknown, dispatched = await sent("unknown"), await sent("dispatched", reported=False)
    planned = (await api.plan(reference, effect="planned", deadline_seconds=60)).body
    later = (await api.plan(reference, effect="later")).body
    body = {"name": reference["name"], "version": "2.1", "holder": "queue", "ttl_seconds": 60}
    pins = [(await api.ask("POST", "/v1/pins", body)).body for _ in range(2)]

    refused = await api.retire(reference)
    assert sorted(blockers(refused), key=str) == sorted(
        [
            ("effects", "PLANNED", 2),
            ("effects", "DISPATCHED", 1),
            ("effects", "UNKNOWN", 1),
            ("effects", "RECONCILING", 1),
            ("effects", "RETRYABLE", 1),
            ("effects", "QUARANTINED", 1),
            ("pins", None, 2),
        ],
        key=str,
    )
    found = {one["state"] or one["kind"]: one for one in refused.body["facts"]["blockers"]}
    assert found["PLANNED"]["earliest"] == planned["due_at"]
    assert found["DISPATCHED"]["earliest"] == dispatched["due_at"]
    assert found["QUARANTINED"]["earliest"] is None
    assert found["pins"]["earliest"] == max(pin["expires_at"] for pin in pins)
    assert refused.body["facts"]["earliest"] is None, "no clock can tell"

    # Each is cleared in the way that is told, and then no longer told.
    silent.may_answer.set()
    await asked
    await owner.run_out(reconciling)
    await api.cancel(planned)
    await api.cancel(later)
    await api.report(dispatched, "succeeded")
    await api.resolve(quarantined, "FAILED")
    again = (await api.dispatch(retryable)).body
    await api.report(again, "failed")
    for effect in (unknown, reconciling):
        provider.book(effect["effect_id"], amount_cents=1250)
        await sweep.until(api, effect, "SUCCEEDED")
    for pin in pins:
        assert blockers(await api.retire(reference))[0][0] == "pins"
        assert (await api.ask("DELETE", f"/v1/pins/{pin['pin_id']}")).status == 204
    assert (await api.retire(reference)).body["state"] == "RETIRED"


async def test_what_is_open_on_another_version_is_no_matter(drained: Api):
    old = await drained.publish(a_contract())
    new = await drained.publish(a_contract(version="3.0"))
    await drained.plan(new)
    assert (await drained.retire(old)).status == 200
    assert blockers(await drained.retire(new)) == [("effects", "PLANNED", 1)]


async def test_a_closed_version_drains(drained: Api):
    reference = await drained.publish(a_contract())
    planned = (await drained.plan(reference)).body
    assert blockers(await drained.retire(reference)) == [("effects", "PLANNED", 1)]
    assert (await drained.plan(reference, effect="effect-2")).code == "contract_migrating"
    sent = (await drained.dispatch(planned)).body
    assert sent["dispatch"]["owned"]
    assert blockers(await drained.retire(reference)) == [("effects", "DISPATCHED", 1)]
    await drained.report(sent, "succeeded")
    assert (await drained.retire(reference)).status == 200


async def test_a_plan_under_a_lease_is_waited_for(api: Api):
    reference = await api.publish(a_contract())
    lease = (await api.ask("POST", "/v1/resolve", reference)).body["lease"]
    await api.retire(reference)
    planned = (await api.plan(reference, lease=lease)).body
    api.app.state.lease_seconds_max = 0
    assert blockers(await api.retire(reference)) == [("effects", "PLANNED", 1)]
    await api.cancel(planned)
    assert (await api.retire(reference)).status == 200


async def test_a_refused_retirement_can_be_taken_back(api: Api):
    reference = await api.publish(a_contract())
    assert (await api.retire(reference)).status == 409
    for _ in range(2):
        answer = await api.rollback(reference)
        assert (answer.status, answer.body["state"]) == (200, "ACTIVE")
    shown = (await api.ask("GET", "/v1/contracts/billing.send_invoice/2.1")).body
    assert (shown["state"], shown["closed_at"]) == ("ACTIVE", None)
    assert (await api.plan(reference)).status == 201
    refused = await api.retire(reference)
    assert blockers(refused) == [("effects", "PLANNED", 1), ("leases", None, 1)]


async def test_pins_hold_a_version_until_they_run_out(drained: Api, owner: Owner):
    reference = await drained.publish(a_contract())
    body = {"name": reference["name"], "version": "2.1", "holder": "queue", "ttl_seconds": 60}
    pin = await drained.ask("POST", "/v1/pins", body)
    assert pin.status == 201
    listed = (await drained.ask("GET", "/v1/pins")).body["pins"]
    assert listed == [
        {
            "pin_id": pin.body["pin_id"],
            "name": reference["name"],
            "version": "2.1.0",
            "holder": "queue",
            "expires_at": pin.body["expires_at"],
        }
    ]
    refused = await drained.retire(reference)
    assert blockers(refused) == [("pins", None, 1)]
    assert refused.body["facts"]["earliest"] == pin.body["expires_at"]
    late = await drained.ask("POST", "/v1/pins", body)
    assert late.refusal == (409, "contract_migrating")
    await owner.rows("UPDATE pin SET expires_at = clock_timestamp()")
    assert (await drained.ask("GET", "/v1/pins")).body == {"pins": []}
    assert (await drained.retire(reference)).status == 200
    for changes, refusal in (
        ({}, (409, "contract_retired")),
        ({"version": "9.9"}, (404, "tool_contract_not_found")),
        ({"version": "x"}, (422, "invalid_request")),
        ({"ttl_seconds": 0}, (422, "invalid_request")),
        ({"ttl_seconds": 31 * 86400}, (422, "invalid_request")),
    ):
        assert (await drained.ask("POST", "/v1/pins", body | changes)).refusal == refusal
    missing = await drained.ask("DELETE", f"/v1/pins/{uuid4()}")
    assert missing.refusal == (404, "not_found")


async def test_what_another_tenant_holds_is_counted_and_not_shown(
    drained: Api, owner: Owner, other: Api
):
    """Who shares a version is not the business of whoever retires it; that someone does, is."""
    reference = await drained.publish(a_contract())
    theirs = (await other.plan(await other.publish(a_contract()))).body
    await owner.rows(
        "INSERT INTO pin (pin_id, tenant_id, contract_id, holder, expires_at)"
        " SELECT gen_random_uuid(), other.tenant_id, contract_id, 'theirs',"
        " clock_timestamp() + interval '1 hour'"
        " FROM contract, tenant AS other"
        " WHERE slug = 'other' AND contract.tenant_id <> other.tenant_id"
    )
    # Their plan came through an adapter from the version that is to be retired.
    await owner.rows(
        "UPDATE effect_open SET presented_contract_id = contract.contract_id"
        " FROM contract WHERE contract.tenant_id <> effect_open.tenant_id"
    )
    refused = await drained.retire(reference)
    assert blockers(refused) == [("effects", "PLANNED", 1), ("pins", None, 1)]
    assert "theirs" not in str(refused.body)
    assert theirs["effect_id"] not in str(refused.body)
    assert (await drained.ask("GET", "/v1/pins")).body == {"pins": []}
    assert await drained.effects() == []
    await other.cancel(theirs)
    await owner.rows("DELETE FROM pin")
    assert (await drained.retire(reference)).status == 200


async def test_late_work_of_a_queue_is_quarantined_and_cannot_run(drained: Api):
    reference = await drained.publish(a_contract())
    assert (await drained.retire(reference)).status == 200
    queued = [
        (await drained.plan(reference, effect=name, origin="queue")).body for name in ("a", "b")
    ]
    assert {one["state"] for one in queued} == {"QUARANTINED"}
    for to in ("RETRYABLE", "SUCCEEDED"):
        answer = await drained.resolve(queued[0], to)
        expected = (409, "effect_not_retryable") if to == "RETRYABLE" else (200, None)
        assert answer.refusal == expected
    assert (await drained.cancel(queued[1])).refusal == (409, "illegal_transition")
    answer = await drained.dispatch(queued[1])
    assert (answer.status, answer.body["dispatch"]["owned"]) == (200, False)
    assert await drained.state(queued[1]) == "QUARANTINED"


@pytest.mark.parametrize("step", ["retire", "rollback"])
async def test_what_is_not_there_cannot_be_retired(api: Api, step: str):
    for path, refusal in (
        ("billing.send_invoice/2.1", (404, "tool_contract_not_found")),
        ("billing.send_invoice/two", (422, "invalid_request")),
    ):
        assert (await api.ask("POST", f"/v1/rollouts/{path}/{step}", {})).refusal == refusal

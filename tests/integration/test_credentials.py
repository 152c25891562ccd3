"""Credentials: rotated, revoked and attested, and what becomes of the work that was planned."""

import asyncio
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection, errors

from tests.api import Answered, Api
from tests.builders import a_contract, a_contract_of
from tests.fixtures import Owner

CHANGED = (409, "credential_policy_changed")
SLOT = "/v1/credentials/billing-api"
ATTEST = "/v1/contracts/billing.send_invoice/2.1/attest"
REASON = {"reason": "seen"}


async def revoke(api: Api, reason: str = "leaked") -> Answered:
    return await api.ask("POST", f"{SLOT}/revoke", {"reason": reason})


async def rotate(api: Api, reason: str = "replaced") -> Answered:
    return await api.ask("POST", f"{SLOT}/rotate", {"reason": reason})


CHANGES = pytest.mark.parametrize("change", [rotate, revoke])


@pytest.fixture
async def tool(api: Api) -> dict[str, Any]:
    return await api.publish(a_contract())


@CHANGES
async def test_a_change_stops_planned_work_at_once(api: Api, tool: dict[str, Any], change: Any):
    planned, resent = [(await api.plan(tool, effect=name)).body for name in ("planned", "resent")]
    await change(api)
    assert (await api.dispatch(planned)).refusal == CHANGED
    again = await api.plan(tool, effect="resent", dispatch=api.asking())
    assert again.refusal == CHANGED
    for effect in (planned, resent):
        shown = await api.show(effect)
        assert (shown["state"], shown["reason"]) == ("REFUSED", "credential_policy_changed")
        assert shown["attempts"] == [], "nothing was sent under it"
    for version in (1, 2):
        newer = tool | {"credential_version": version}
        assert (await api.plan(newer, effect=f"new-{version}")).refusal == CHANGED
        assert (await api.ask("POST", "/v1/resolve", newer)).refusal == CHANGED


@CHANGES
async def test_what_is_under_way_goes_to_its_end_and_not_again(api: Api, change: Any):
    tool = await api.publish(a_contract_of("PURE"))
    done, lost = [await api.dispatched(tool, effect=name) for name in ("done", "lost")]
    assert (await api.report(lost, "unknown")).body["state"] == "RETRYABLE"
    await change(api)
    answer = await api.report(done, "succeeded", result={"invoice_id": "I-1"})
    assert answer.body["state"] == "SUCCEEDED"
    assert (await api.dispatch(lost)).refusal == CHANGED
    assert await api.state(lost) == "QUARANTINED"


@CHANGES
async def test_after_a_review_new_work_goes_on(api: Api, tool: dict[str, Any], change: Any):
    planned = (await api.plan(tool)).body
    await change(api)
    if change is revoke:
        await rotate(api)
    new = tool | {"credential_version": 2}
    assert (await api.plan(new, effect="effect-2")).refusal == CHANGED, "nobody has looked yet"
    attested = await api.ask("POST", ATTEST, REASON)
    assert (attested.status, attested.body["credential_version"]) == (200, 2)
    sent = await api.dispatched(new, effect="effect-2")
    assert (await api.show(sent))["attempts"][0]["credential_version"] == 2
    # What was planned under the old one does not come back with the review.
    assert (await api.dispatch(planned)).refusal == CHANGED
    assert await api.state(planned) == "REFUSED"
    assert (await api.plan(tool, effect="effect-3")).refusal == CHANGED


async def test_a_revoked_credential_serves_nothing_until_it_is_rotated(
    api: Api, tool: dict[str, Any]
):
    before = (await api.ask("GET", "/v1/credentials")).body["credentials"]
    revoked = await revoke(api)
    assert revoked.status == 200
    assert revoked.body["revoked_at"] is not None
    assert [revoked.body | {"revoked_at": None}] == before
    assert await revoke(api, "again") == revoked, "it was revoked when it was"
    assert (await api.ask("GET", "/v1/credentials")).body["credentials"] == [revoked.body]

    resolved = await api.ask("POST", "/v1/resolve", tool)
    assert resolved.refusal == CHANGED
    assert resolved.body["facts"] == {"presented": 1, "bound": 1, "current": None}
    shown = (await api.ask("GET", "/v1/contracts/billing.send_invoice/2.1")).body
    assert (shown["credential_version"], shown["credential_current"]) == (1, None)
    assert (await api.ask("POST", ATTEST, REASON)).refusal == CHANGED
    published = await api.submit(a_contract(version="3.0"))
    assert (published.refusal, published.body["pointer"]) == (
        (422, "invalid_contract"),
        "/credential",
    )
    taken = await api.ask("POST", "/v1/credentials", {"name": "billing-api"})
    assert taken.refusal == (422, "invalid_request"), "its name is not made anew"

    unexplained = await rotate(api, "")
    assert (unexplained.refusal, unexplained.body["pointer"]) == (
        (422, "invalid_request"),
        "/reason",
    )
    rotated = await rotate(api)
    assert (rotated.body["version"], rotated.body["revoked_at"]) == (2, None)
    assert (await api.ask("POST", ATTEST, REASON)).status == 200
    assert (await api.ask("POST", "/v1/resolve", tool | {"credential_version": 2})).status == 200


async def test_what_is_not_there_cannot_be_revoked(api: Api):
    assert (await revoke(api)).refusal == (404, "not_found")
    assert (await rotate(api)).refusal == (404, "not_found")
    assert (await rotate(api, "")).refusal == (404, "not_found")


async def test_each_change_is_an_event(api: Api, owner: Owner, tool: dict[str, Any]):
    assert tool
    for one in (revoke, revoke, rotate):
        await one(api)
    await api.ask("POST", ATTEST, REASON)
    found = await owner.rows(
        "SELECT kind, subject, actor, facts FROM registry_event"
        " WHERE kind LIKE 'credential%%' OR kind = 'contract_attested' ORDER BY at"
    )
    assert found == [
        ("credential_created", "billing-api", "admin", {"version": 1}),
        ("credential_revoked", "billing-api", "admin", {"version": 1, "reason": "leaked"}),
        ("credential_rotated", "billing-api", "admin", {"version": 2, "reason": "replaced"}),
        (
            "contract_attested",
            "billing.send_invoice@2.1.0",
            "admin",
            {"credential_version": 2, "reason": "seen"},
        ),
    ]


async def test_one_revocation_is_nothing_to_another_slot(api: Api, tool: dict[str, Any]):
    other = await api.publish(a_contract(name="billing.refund", credential="refunds"))
    await revoke(api)
    assert (await api.plan(tool)).refusal == CHANGED
    assert (await api.plan(other)).status == 201


@CHANGES
async def test_a_change_awaits_a_dispatch_that_began(
    api: Api, owner: Owner, database_url: str, tool: dict[str, Any], change: Any
):
    """A dispatch holds the credential until its commit: none is sent after the change was told."""
    planned = (await api.plan(tool)).body
    async with await AsyncConnection.connect(database_url) as session:
        await session.execute("SELECT FROM credential FOR SHARE")
        changing = asyncio.create_task(change(api))
        await owner.wait_for_locks()
        await session.rollback()
    assert (await changing).status == 200
    assert (await api.dispatch(planned)).refusal == CHANGED


@CHANGES
async def test_a_dispatch_awaits_a_change_that_began(
    api: Api, owner: Owner, database_url: str, tool: dict[str, Any], change: Any
):
    planned = (await api.plan(tool)).body
    column = "version = 2" if change is rotate else "revoked_at = clock_timestamp()"
    async with await AsyncConnection.connect(database_url) as session:
        await session.execute(f"UPDATE credential SET {column}".encode())
        sent = asyncio.create_task(api.dispatch(planned))
        new = asyncio.create_task(api.plan(tool, effect="effect-2", dispatch=api.asking()))
        await owner.wait_for_locks(2)
        await session.commit()
    assert (await sent).refusal == CHANGED
    assert (await new).refusal == CHANGED
    assert await api.state(planned) == "REFUSED"


@pytest.mark.parametrize(
    ("given", "change"),
    [
        ("version = 2", "version = 1"),
        ("revoked_at = '2026-01-01'", "revoked_at = NULL"),
        ("revoked_at = '2026-01-01'", "revoked_at = '2026-02-01'"),
        ("revoked_at = '2026-01-01', version = 2", "revoked_at = NULL, version = 1"),
    ],
)
async def test_no_old_version_comes_back(
    api: Api, owner: Owner, tool: dict[str, Any], given: str, change: str
):
    """Whatever the code does: the database refuses it its owner too."""
    assert api.token
    assert tool
    await owner.rows(f"UPDATE credential SET {given}")
    with pytest.raises(errors.CheckViolation) as caught:
        await owner.rows(f"UPDATE credential SET {change}")
    assert isinstance(caught.value, psycopg.Error)
    assert caught.value.diag.constraint_name == "credential_goes_on"
    await owner.rows("UPDATE credential SET version = version + 1, revoked_at = NULL")

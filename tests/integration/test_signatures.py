"""Signed contracts: whose signature counts, what a tenant may ask for, and what stops at once."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from registry.store import RegistryStore
from tests.api import Answered, Api, running
from tests.builders import a_contract
from tests.fixtures import Owner
from tests.signers import SMALL_ORDER, UNIVERSAL, Signer, malleated

GRACE, ADA, MALLORY = Signer(1), Signer(2), Signer(3)
SEND = a_contract()
NEXT = a_contract(version="2.2", description="Send an invoice to one customer.")
SEND_PATH = "/v1/contracts/billing.send_invoice/2.1"


@pytest.fixture
async def api(database_url: str, tmp_path: Path) -> AsyncGenerator[Api]:
    """The service with the credential that the contracts name."""
    async with running(database_url, tmp_path / "home") as api:
        await api.credential("billing-api")
        yield api


async def trust(api: Api, signer: Signer, name: str = "grace") -> Answered:
    return await api.ask("POST", "/v1/keys", {"name": name, "public_key": signer.public_key})


async def revoke(api: Api, signer: Signer) -> Answered:
    return await api.ask("POST", f"/v1/keys/{signer.key_id}/revoke", {"reason": "it was lost"})


async def require(api: Api, required: bool = True, **more: Any) -> Answered:
    return await api.ask("POST", "/v1/signature-policy", {"required": required} | more)


async def sign(api: Api, signer: Signer, document: dict[str, Any] = SEND) -> Answered:
    version = document["version"]
    path = f"/v1/contracts/{document['name']}/{version}/signatures"
    return await api.ask("POST", path, signer.sign(document))


async def resolve(api: Api, reference: dict[str, Any]) -> Answered:
    return await api.ask("POST", "/v1/resolve", reference)


async def signatures(api: Api, path: str = SEND_PATH) -> list[tuple[str, str, bool]]:
    shown = (await api.ask("GET", path)).body["signatures"]
    return [(one["key_id"], one["name"], one["is_valid"]) for one in shown]


# --- keys -----------------------------------------------------------------------------------------


async def test_a_key_is_added_once_and_revoked_for_ever(api: Api, owner: Owner):
    added = await trust(api, GRACE)
    assert added.status == 201
    assert added.body["key_id"] == GRACE.key_id
    assert added.body["public_key"] == GRACE.public_key
    assert (added.body["added_by"], added.body["revoked_at"]) == ("admin", None)

    before = await owner.dump()
    again = await trust(api, GRACE)
    assert (again.status, again.body) == (200, added.body)
    assert (await trust(api, GRACE, "mallory")).refusal == (422, "invalid_request")
    assert await owner.dump() == before

    revoked = await revoke(api, GRACE)
    assert revoked.status == 200
    assert revoked.body["revoked_at"] is not None
    assert (revoked.body["revoked_by"], revoked.body["reason"]) == ("admin", "it was lost")
    before = await owner.dump()
    assert await revoke(api, GRACE) == revoked
    assert (await trust(api, GRACE)).refusal == (422, "invalid_request")
    assert await owner.dump() == before

    (listed,) = (await api.ask("GET", "/v1/keys")).body["keys"]
    assert listed == {one: revoked.body[one] for one in listed}
    assert (await revoke(api, ADA)).refusal == (404, "not_found")


UNSOUND = [
    *SMALL_ORDER,
    "ff" * 32,
    "",
    GRACE.public_key[:-2],
    GRACE.public_key + "00",
    GRACE.public_key.upper(),
    GRACE.public_key + "\n",
    GRACE.key_id,
]


async def test_no_unsound_key_is_trusted(api: Api, owner: Owner):
    before = await owner.counts()
    for key in UNSOUND:
        answer = await api.ask("POST", "/v1/keys", {"name": "mallory", "public_key": key})
        assert answer.refusal == (422, "invalid_request"), key
    assert await owner.counts() == before


async def test_two_keys_of_one_publisher(api: Api):
    assert (await trust(api, GRACE)).status == 201
    assert (await trust(api, ADA, "grace")).status == 201
    listed = (await api.ask("GET", "/v1/keys")).body["keys"]
    assert [key["key_id"] for key in listed] == [GRACE.key_id, ADA.key_id]


# --- signatures -----------------------------------------------------------------------------------


async def test_a_signed_contract_tells_by_whom(api: Api, owner: Owner):
    await trust(api, GRACE)
    await trust(api, ADA, "ada")
    assert (await api.submit(SEND, signatures=[GRACE.sign(SEND)])).status == 201
    assert (await sign(api, ADA)).status == 201
    both = [(GRACE.key_id, "grace", True), (ADA.key_id, "ada", True)]
    assert await signatures(api) == both
    before = await owner.dump()
    answer = await sign(api, ADA)
    assert answer.status == 200
    assert answer.body["signatures"] == (await api.ask("GET", SEND_PATH)).body["signatures"]
    assert await owner.dump() == before

    await revoke(api, GRACE)
    (first, second) = (await api.ask("GET", "/v1/contracts")).body["contracts"][0]["signatures"]
    assert (first["key_id"], first["is_valid"]) == (GRACE.key_id, False)
    assert first["revoked_at"] > first["signed_at"]
    assert first["signature"] == GRACE.sign(SEND)["signature"]
    assert (second["is_valid"], second["revoked_at"]) == (True, None)


async def test_publishing_again_adds_a_signature(api: Api):
    await trust(api, GRACE)
    await api.submit(SEND)
    assert await signatures(api) == []
    for _ in range(2):
        answer = await api.submit(SEND, signatures=[GRACE.sign(SEND)])
        assert (answer.status, answer.body["published"]) == (200, False)
        assert await signatures(api) == [(GRACE.key_id, "grace", True)]


def forged(**changes: str) -> dict[str, str]:
    return GRACE.sign(SEND) | changes


GOOD = GRACE.signature(SEND)
FORGED = {
    "of another version": GRACE.sign(NEXT),
    "of another document": GRACE.sign(a_contract(lease_seconds=31)),
    "by another key in this one's name": forged(signature=ADA.signature(SEND).hex()),
    "in another key's name": forged(key_id=ADA.key_id),
    "by a key of nobody's": MALLORY.sign(SEND),
    "of the digest without a context": forged(
        signature=GRACE.private_key.sign(b"sha256:" + b"0" * 64).hex()
    ),
    "malleated": forged(signature=malleated(GOOD).hex()),
    "of a point of small order": forged(signature=UNIVERSAL),
    "nothing": forged(signature="00" * 64),
}
MISWRITTEN = {
    "too short": forged(signature=GOOD.hex()[:-2]),
    "too long": forged(signature=GOOD.hex() + "00"),
    "empty": forged(signature=""),
    "in capitals": forged(signature=GOOD.hex().upper()),
    "with a line's end": forged(signature=GOOD.hex() + "\n"),
    "under a name that is none": forged(key_id="grace"),
}


BAD = [(kind, bad, "signature_invalid") for kind, bad in FORGED.items()]
BAD += [(kind, bad, "invalid_request") for kind, bad in MISWRITTEN.items()]


async def test_a_bad_signature_is_refused_wherever_it_comes(api: Api, owner: Owner):
    await trust(api, GRACE)
    await trust(api, ADA, "ada")
    before = await owner.dump()
    for kind, bad, code in BAD:
        for given in ([bad], [GRACE.sign(SEND), bad]):
            assert (await api.submit(SEND, signatures=given)).refusal == (422, code), kind
    assert await owner.dump() == before
    await api.submit(SEND)
    before = await owner.dump()
    for kind, bad, code in BAD:
        assert (await api.submit(SEND, signatures=[bad])).refusal == (422, code), kind
        answer = await api.ask("POST", f"{SEND_PATH}/signatures", bad)
        assert answer.refusal == (422, code), kind
    assert await owner.dump() == before


async def test_documents_that_were_swapped(api: Api, owner: Owner):
    await trust(api, GRACE)
    before = await owner.dump()
    swapped = ((SEND, NEXT), (NEXT, SEND))
    for document, signed in swapped:
        answer = await api.submit(document, signatures=[GRACE.sign(signed)])
        assert answer.refusal == (422, "signature_invalid")
        assert answer.body["facts"] == {"key_id": GRACE.key_id}
    assert await owner.dump() == before


async def test_a_revoked_key_signs_nothing_more(api: Api, owner: Owner):
    await trust(api, GRACE)
    await api.submit(SEND)
    await revoke(api, GRACE)
    before = await owner.dump()
    assert (await sign(api, GRACE)).refusal == (422, "signature_invalid")
    answer = await api.submit(NEXT, signatures=[GRACE.sign(NEXT)])
    assert answer.refusal == (422, "signature_invalid")
    assert await owner.dump() == before


async def test_a_key_is_one_tenants_own(api: Api, other: Api, owner: Owner):
    await trust(other, MALLORY)
    await api.submit(SEND)
    before = await owner.dump()
    answer = await sign(api, MALLORY)
    assert answer.refusal == (422, "signature_invalid")
    assert "There is no key" in answer.body["detail"], "as for a key of nobody's"
    assert (await revoke(api, MALLORY)).refusal == (404, "not_found")
    assert (await api.ask("GET", "/v1/keys")).body["keys"] == []
    assert await owner.dump() == before

    # The same key under another name, and a signature that speaks of no tenant.
    assert (await trust(api, MALLORY, "ours")).status == 201
    assert (await sign(api, MALLORY)).status == 201
    await revoke(other, MALLORY)
    assert await signatures(api) == [(MALLORY.key_id, "ours", True)]


# --- a tenant that requires signatures ------------------------------------------------------------


async def test_what_would_stop_is_told_before_it_stops(api: Api, owner: Owner):
    await trust(api, GRACE)
    await api.submit(SEND)
    await api.submit(NEXT, signatures=[GRACE.sign(NEXT)])
    told = await api.ask("GET", "/v1/signature-policy")
    assert told.body == {
        "required": False,
        "required_at": None,
        "required_by": None,
        "unsigned": ["billing.send_invoice@2.1.0"],
    }
    before = await owner.dump()
    refused = await require(api)
    assert refused.refusal == (409, "signature_required")
    assert refused.body["facts"] == {"unsigned": ["billing.send_invoice@2.1.0"]}
    assert await owner.dump() == before

    confirmed = await require(api, confirm=True)
    assert (confirmed.status, confirmed.body["required"]) == (200, True)
    assert confirmed.body["unsigned"] == ["billing.send_invoice@2.1.0"]
    assert confirmed.body["required_by"] == "admin"
    before = await owner.dump()
    assert await require(api) == confirmed, "it is so already"
    assert await owner.dump() == before

    await sign(api, GRACE)
    assert (await require(api)).body["unsigned"] == []
    assert (await require(api, required=False)).body["required"] is False
    assert (await require(api)).status == 200


async def test_what_is_retired_stops_nobody(api: Api, owner: Owner):
    await api.submit(SEND)
    await owner.live("billing.send_invoice", "2.1.0", "RETIRED")
    assert (await require(api)).status == 200


async def test_nothing_unsigned_is_published(api: Api, owner: Owner):
    await trust(api, GRACE)
    await require(api)
    before = await owner.dump()
    for given in ({}, {"signatures": []}):
        assert (await api.submit(SEND, **given)).refusal == (409, "signature_required")
    assert (await api.submit(SEND, signatures=[FORGED["malleated"]])).status == 422
    assert await owner.dump() == before
    assert (await api.submit(SEND, signatures=[GRACE.sign(SEND)])).status == 201
    assert (await api.submit(SEND)).status == 200, "it changes nothing"


async def test_nothing_unsigned_runs(api: Api, owner: Owner):
    await trust(api, GRACE)
    tool = await api.publish(SEND)
    planned = (await api.plan(tool, effect="before")).body
    lease = (await resolve(api, tool)).body["lease"]
    await require(api, confirm=True)
    pin = {"name": tool["name"], "version": "2.1", "holder": "queue", "ttl_seconds": 60}
    before = await owner.dump(traces=False)
    for answer in (
        await resolve(api, tool),
        await api.plan(tool),
        await api.plan(tool, dispatch=api.asking()),
        await api.plan(tool, lease=lease),
        await api.dispatch(planned),
        await api.ask("POST", "/v1/pins", pin),
    ):
        assert answer.refusal == (409, "signature_required")
    assert await owner.dump(traces=False) == before
    assert await api.state(planned) == "PLANNED", "it waits, and is not lost"

    assert (await sign(api, GRACE)).status == 201
    assert (await resolve(api, tool)).status == 200
    assert (await api.dispatch(planned)).body["dispatch"]["owned"]


async def test_what_runs_is_settled_whatever_becomes_of_the_key(api: Api):
    await trust(api, GRACE)
    tool = await api.publish(SEND, signatures=[GRACE.sign(SEND)])
    await require(api)
    effect = await api.dispatched(tool)
    await revoke(api, GRACE)
    assert (await api.report(effect, "succeeded", result={"invoice_id": "I-1"})).status == 200
    assert await api.state(effect) == "SUCCEEDED"


async def test_a_revocation_stops_at_once_what_nobody_else_signed(api: Api, owner: Owner):
    await trust(api, GRACE)
    await trust(api, ADA, "ada")
    tool = await api.publish(SEND, signatures=[GRACE.sign(SEND)])
    newer = await api.publish(NEXT, signatures=[GRACE.sign(NEXT), ADA.sign(NEXT)])
    await require(api)
    planned = (await api.plan(tool)).body
    revoked = await revoke(api, GRACE)
    assert (revoked.body["required"], revoked.body["unsigned"]) == (
        True,
        ["billing.send_invoice@2.1.0"],
    )
    for answer in (
        await resolve(api, tool),
        await api.plan(tool, run="run-2"),
        await api.dispatch(planned),
    ):
        assert answer.refusal == (409, "signature_required")
    assert (await resolve(api, newer)).status == 200
    assert await owner.one("SELECT count(*) FROM contract_signature") == 3


async def test_a_rotation_stops_nothing(api: Api):
    await trust(api, GRACE)
    tool = await api.publish(SEND, signatures=[GRACE.sign(SEND)])
    await require(api)
    planned = (await api.plan(tool)).body
    for step in (trust(api, ADA, "grace"), sign(api, ADA), revoke(api, GRACE)):
        assert (await step).status in (200, 201)
        assert (await resolve(api, tool)).status == 200
    assert await signatures(api) == [(GRACE.key_id, "grace", False), (ADA.key_id, "grace", True)]
    assert (await api.dispatch(planned)).body["dispatch"]["owned"]


async def test_a_tenant_asks_for_itself_alone(api: Api, other: Api):
    tool, theirs = await api.publish(SEND), await other.publish(SEND)
    await require(api, confirm=True)
    assert (await resolve(api, tool)).refusal == (409, "signature_required")
    assert (await resolve(other, theirs)).status == 200
    assert (await other.ask("GET", "/v1/signature-policy")).body["required"] is False


async def test_what_is_shared_takes_the_word_of_who_uses_it(api: Api, other: Api):
    await trust(api, GRACE)
    await api.publish(SEND, signatures=[GRACE.sign(SEND)])
    await api.ask("POST", f"{SEND_PATH}/shares", {"tenant": "other"})
    offer = {"owner": "default", "name": SEND["name"], "version": SEND["version"]}
    assert (await other.ask("POST", "/v1/shares/accept", offer)).status == 200
    await other.credential("billing-api")
    await other.ask("POST", f"{SEND_PATH}/attest", {"reason": "looked at"})
    await other.grant("invoice:write:other")
    tool = (await other.ask("GET", SEND_PATH)).body["reference"]
    assert (await resolve(other, tool)).status == 200

    assert (await require(other)).body["facts"] == {"unsigned": ["billing.send_invoice@2.1.0"]}
    await require(other, confirm=True)
    assert (await resolve(other, tool)).refusal == (409, "signature_required")
    assert (await other.plan(tool)).refusal == (409, "signature_required")
    # A key that the owner trusts is nobody's here, until this tenant trusts it as well.
    assert (await sign(other, GRACE)).refusal == (422, "signature_invalid")
    await trust(other, GRACE, "billing's")
    assert (await sign(other, GRACE)).status == 201
    assert (await resolve(other, tool)).status == 200
    assert (await other.plan(tool)).status == 201

    await revoke(api, GRACE)
    assert (await resolve(other, tool)).status == 200
    assert await signatures(api) == [(GRACE.key_id, "grace", False)]
    assert await signatures(other) == [(GRACE.key_id, "billing's", True)]


WAITING = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


async def test_a_revocation_waits_for_what_began_before_it(api: Api, owner: Owner):
    await trust(api, GRACE)
    await api.publish(SEND, signatures=[GRACE.sign(SEND)])
    await require(api)
    contract_id: UUID = await owner.one("SELECT contract_id FROM contract")
    tenant_id: UUID = await owner.one("SELECT tenant_id FROM contract")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def plan(connection: Any) -> bool:
        store = RegistryStore(connection)
        await store.lock(contract_id, [])
        begun.set()
        await go_on.wait()
        return (await store.entry_by_id(contract_id)).is_signed

    planning = asyncio.create_task(api.app.state.database.transact(tenant_id, plan))
    await begun.wait()
    revoking = asyncio.create_task(revoke(api, GRACE))
    while not await owner.one(WAITING):
        assert not revoking.done(), "it did not wait"
        await asyncio.sleep(0.01)
    go_on.set()
    assert await planning, "what it rested on held to its end"
    assert (await revoking).status == 200
    assert await signatures(api) == [(GRACE.key_id, "grace", False)]


async def test_every_change_is_recorded(api: Api, owner: Owner):
    await trust(api, GRACE)
    await api.submit(SEND, signatures=[GRACE.sign(SEND)])
    await require(api)
    await revoke(api, GRACE)
    await require(api, required=False)
    told = await owner.rows(
        "SELECT kind, subject, actor, facts FROM registry_event"
        " WHERE kind ~ 'key|sign' ORDER BY event_id"
    )
    digest = await owner.one("SELECT contract_digest FROM contract")
    assert told == [
        (
            "publisher_key_added",
            GRACE.key_id,
            "admin",
            {"name": "grace", "public_key": GRACE.public_key},
        ),
        (
            "contract_signed",
            "billing.send_invoice@2.1.0",
            "admin",
            {"contract_digest": digest, **GRACE.sign(SEND)},
        ),
        ("signature_policy_changed", "signatures", "admin", {"required": True, "unsigned": 0}),
        (
            "publisher_key_revoked",
            GRACE.key_id,
            "admin",
            {"name": "grace", "reason": "it was lost"},
        ),
        ("signature_policy_changed", "signatures", "admin", {"required": False, "unsigned": 1}),
    ]


async def test_whoever_signs_may_not_say_whose_word_counts(api: Api, owner: Owner):
    await trust(api, GRACE)
    await api.submit(SEND)
    for role in ("runtime", "publisher", "operator", "approver", "auditor"):
        async with api.speaking_for(await owner.token("default", role)).http as http:
            mine = Api(http, api.app)
            for answer in (await trust(mine, ADA), await revoke(mine, GRACE), await require(mine)):
                assert answer.refusal == (403, "forbidden"), role
            signing = await sign(mine, GRACE)
            assert signing.status == (201 if role == "publisher" else 403), role
            for path in ("/v1/keys", "/v1/signature-policy"):
                assert (await mine.ask("GET", path)).status == 200, role

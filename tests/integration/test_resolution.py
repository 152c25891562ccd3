"""Resolution: a tuple stands, or is refused with one code; and what a lease is good for."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import jwt
import pytest

from registry.lease import Lease, sign
from tests.api import Api, moment
from tests.builders import a_contract
from tests.fixtures import Owner

NAME, VERSION = "billing.send_invoice", "2.1.0"
WRITE, READ = "invoice:write:default", "customer:read:default"
TWO = ["invoice:write:{tenant}", "customer:read:{tenant}"]

Fault = Callable[[Api, Owner], Awaitable[dict[str, Any]]]


async def no_such_version(_: Api, __: Owner) -> dict[str, Any]:
    return {"version": "9.9.9"}


async def other_schemas(_: Api, __: Owner) -> dict[str, Any]:
    return {"schema_hash": "sha256:" + "0" * 64}


async def retired(_: Api, owner: Owner) -> dict[str, Any]:
    await owner.live(NAME, VERSION, "RETIRED")
    return {}


async def migrating(_: Api, owner: Owner) -> dict[str, Any]:
    await owner.live(NAME, VERSION, "MIGRATING")
    return {}


async def suspended(_: Api, owner: Owner) -> dict[str, Any]:
    await owner.suspend(NAME, VERSION)
    return {}


async def wider(_: Api, __: Owner) -> dict[str, Any]:
    return {"capabilities": [WRITE, "ledger:write:default"]}


async def other_class(_: Api, __: Owner) -> dict[str, Any]:
    return {"effect_class": "PURE"}


async def rotated(api: Api, _: Owner) -> dict[str, Any]:
    await api.rotate("billing-api")
    return {}


# In the order in which they are told: whoever has several faults is told the first.
FAULTS: list[tuple[Fault, tuple[int, str]]] = [
    (no_such_version, (404, "tool_contract_not_found")),
    (other_schemas, (409, "tool_schema_drift")),
    (retired, (409, "contract_retired")),
    (migrating, (409, "contract_migrating")),
    (suspended, (409, "contract_suspended")),
    (wider, (403, "capability_not_granted")),
    (other_class, (409, "effect_class_mismatch")),
    (rotated, (409, "credential_policy_changed")),
]


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=[code for _, (_, code) in FAULTS])
async def test_of_several_faults_the_most_specific_is_told(api: Api, owner: Owner, number: int):
    presented = await api.publish(a_contract())
    for fault, _ in reversed(FAULTS[number:]):
        presented = presented | await fault(api, owner)
    refusal = FAULTS[number][1]
    planned = {"run": "r", "effect": "e", "tool": presented, "arguments": {}}
    for path, body in (
        ("/v1/resolve", presented),
        ("/v1/effects", planned),
        ("/v1/effects", planned | {"dispatch": api.asking()}),
    ):
        answer = await api.ask("POST", path, body)
        assert answer.refusal == refusal, path
        assert answer.body["retryable"] == (refusal[1] == "contract_suspended")
    assert await owner.one("SELECT count(*) FROM effect") == 0


@pytest.mark.parametrize(("fault", "refusal"), FAULTS, ids=[code for _, (_, code) in FAULTS])
async def test_each_fault_alone_is_told_and_nothing_is_planned(
    api: Api, owner: Owner, fault: Fault, refusal: tuple[int, str]
):
    reference = await api.publish(a_contract())
    presented = reference | await fault(api, owner)
    before = await owner.effects_count()
    assert (await api.ask("POST", "/v1/resolve", presented)).refusal == refusal
    assert (await api.plan(presented, dispatch=api.asking())).refusal == refusal
    assert await owner.effects_count() == before


@pytest.mark.parametrize("lifecycle", ["ACTIVE", "DEPRECATED"])
async def test_an_open_version_resolves_to_its_contract_and_a_lease(
    api: Api, owner: Owner, lifecycle: str
):
    reference = await api.publish(a_contract())
    await owner.live(NAME, VERSION, lifecycle)
    answer = await api.ask("POST", "/v1/resolve", reference)
    assert answer.status == 200
    assert answer.body["contract"]["document"] == a_contract(version=VERSION)
    assert answer.body["contract"]["state"] == lifecycle
    assert answer.body["contract"]["reference"] == reference
    assert answer.body["capabilities"] == reference["capabilities"]
    claims = jwt.decode(answer.body["lease"], options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] == pytest.approx(300, abs=0.001)


async def test_a_capability_is_declared_held_and_of_this_tenant(api: Api):
    await api.publish(a_contract(capabilities=TWO))
    await api.ask("DELETE", f"/v1/grants?principal=admin&capability={READ}")
    reference = (await api.ask("GET", f"/v1/contracts/{NAME}/2.1")).body["reference"]
    assert reference["capabilities"] == [READ, WRITE]
    for presented, facts in (
        ([WRITE], None),
        ([], None),
        ([READ, WRITE], {"not_granted": [READ]}),
        ([READ], {"not_granted": [READ]}),
        ([WRITE, "a:b:c"], {"undeclared": ["a:b:c"]}),
        (["invoice:write:other"], {"undeclared": ["invoice:write:other"]}),
        (["invoice:write:{tenant}"], {"undeclared": ["invoice:write:{tenant}"]}),
    ):
        answer = await api.ask("POST", "/v1/resolve", reference | {"capabilities": presented})
        if facts is None:
            assert (answer.status, answer.body["capabilities"]) == (200, presented)
        else:
            assert answer.refusal == (403, "capability_not_granted")
            assert answer.body["facts"] == facts


async def test_a_grant_is_for_one_principal_and_can_be_taken_back(api: Api):
    await api.submit(a_contract(credential=None))
    reference = (await api.ask("GET", f"/v1/contracts/{NAME}/2.1")).body["reference"]
    body = {"principal": "somebody", "capability": "invoice:write:{tenant}"}
    first = await api.ask("POST", "/v1/grants", body)
    assert (first.status, first.body["capability"]) == (201, WRITE)
    refusal = (403, "capability_not_granted")
    assert (await api.ask("POST", "/v1/resolve", reference)).refusal == refusal
    for expected in (201, 200):
        answer = await api.ask("POST", "/v1/grants", body | {"principal": "admin"})
        assert answer.status == expected
    assert (await api.ask("POST", "/v1/resolve", reference)).status == 200
    listed = (await api.ask("GET", "/v1/grants")).body["grants"]
    assert [(one["principal"], one["capability"]) for one in listed] == [
        ("admin", WRITE),
        ("somebody", WRITE),
    ]
    revoke = "/v1/grants?principal=admin&capability=invoice:write:{tenant}"
    assert (await api.ask("DELETE", revoke)).status == 204
    assert (await api.ask("DELETE", revoke)).refusal == (404, "not_found")
    assert (await api.ask("POST", "/v1/resolve", reference)).refusal == refusal
    assert (await api.ask("GET", "/v1/grants?principal=admin")).body == {"grants": []}


async def test_a_narrower_set_is_recorded_and_the_call_is_held_to_it(api: Api):
    reference = await api.publish(a_contract(capabilities=TWO))
    narrow = reference | {"capabilities": [WRITE]}
    first = (await api.plan(narrow)).body
    second = (await api.plan(narrow, effect="effect-2")).body
    assert first["capabilities"] == [WRITE]
    await api.ask("DELETE", f"/v1/grants?principal=admin&capability={READ}")
    answer = await api.dispatch(first)
    assert answer.body["dispatch"]["owned"], "what it does not use is not asked for"
    await api.ask("DELETE", f"/v1/grants?principal=admin&capability={WRITE}")
    assert (await api.dispatch(second)).refusal == (403, "capability_not_granted")
    assert await api.state(second) == "REFUSED"


async def lease_of(api: Api, reference: dict[str, Any]) -> str:
    return (await api.ask("POST", "/v1/resolve", reference)).body["lease"]


async def test_a_lease_lets_a_plan_begin_on_a_closed_version(api: Api):
    reference = await api.publish(a_contract())
    lease = await lease_of(api, reference)
    assert (await api.retire(reference)).refusal == (409, "contract_in_use")
    assert (await api.plan(reference)).refusal == (409, "contract_migrating")
    assert (await api.ask("POST", "/v1/resolve", reference)).refusal == (409, "contract_migrating")
    planned = await api.plan(reference, lease=lease, dispatch=api.asking())
    assert (planned.status, planned.body["dispatch"]["owned"]) == (201, True)


async def test_a_lease_runs_out(api: Api):
    reference = await api.publish(a_contract())
    api.app.state.lease_seconds_max = 0.001
    lease = await lease_of(api, reference)
    assert (await api.plan(reference, lease=lease)).status == 201, "an open version needs none"
    api.app.state.lease_seconds_max = 300
    assert (await api.retire(reference)).status == 409
    answer = await api.plan(reference, lease=lease, effect="effect-2")
    assert answer.refusal == (409, "contract_migrating")


async def test_a_lease_gives_nothing_but_time(api: Api, owner: Owner):
    reference = await api.publish(a_contract())
    lease = await lease_of(api, reference)
    assert (await api.retire(reference)).status == 409
    await owner.suspend(NAME, VERSION)
    assert (await api.plan(reference, lease=lease)).refusal == (409, "contract_suspended")
    await owner.suspend(NAME, VERSION, suspended=False)
    wide = reference | {"capabilities": [WRITE, "a:b:c"]}
    assert (await api.plan(wide, lease=lease)).refusal == (403, "capability_not_granted")
    await api.rotate("billing-api")
    assert (await api.plan(reference, lease=lease)).refusal == (409, "credential_policy_changed")
    api.app.state.lease_seconds_max = 0
    assert (await api.retire(reference)).status == 200
    assert (await api.plan(reference, lease=lease)).refusal == (409, "contract_retired")


async def facts_of(owner: Owner, version: str = VERSION) -> tuple[UUID, UUID, datetime]:
    ((contract_id, tenant_id, closed_at),) = await owner.rows(
        "SELECT contract_id, contract.tenant_id, closed_at FROM contract"
        " LEFT JOIN contract_closing USING (contract_id) WHERE version = %s",
        version,
    )
    return contract_id, tenant_id, closed_at


async def test_a_lease_is_for_one_version_and_from_before_it_was_closed(api: Api, owner: Owner):
    reference = await api.publish(a_contract())
    newer = await lease_of(api, await api.publish(a_contract(version="3.0")))
    await api.retire(reference)
    contract_id, tenant_id, closed_at = await facts_of(owner)
    keys = api.app.state.keys
    until = closed_at + timedelta(seconds=300)

    def lease(issued_at: datetime, expires_at: datetime = until) -> str:
        return sign(Lease(contract_id, issued_at, expires_at), keys, tenant_id)

    migrating = (409, "contract_migrating")
    assert (await api.plan(reference, lease=newer)).refusal == migrating
    for token in (
        lease(closed_at + timedelta(milliseconds=1)),
        lease(closed_at - timedelta(seconds=9), closed_at),
    ):
        assert (await api.plan(reference, lease=token)).refusal == migrating
    assert (await api.plan(reference, lease=lease(closed_at))).status == 201


async def test_a_lease_that_was_not_issued_here_is_refused(api: Api, owner: Owner):
    reference = await api.publish(a_contract())
    lease = await lease_of(api, reference)
    contract_id, tenant_id, _ = await facts_of(owner)
    now = moment((await api.plan(reference)).body["planned_at"])
    head, claims, signature = lease.split(".")
    held = Lease(contract_id, now, now + timedelta(seconds=300))
    said = {"contract": str(contract_id), "iat": now.timestamp(), "exp": now.timestamp() + 300}
    key = api.app.state.keys.derive("k1", tenant_id, "lease")
    forged = [
        "lease",
        "a.b.c",
        "é.é.é",
        f"{head}.{claims}.",
        f"{head}.{claims}.{signature[:-2]}AA",
        f"{head}.{claims[:-2]}AA.{signature}",
        f"{head}.{signature}.{claims}",
        sign(held, api.app.state.keys, uuid4()),
        jwt.encode(said, "", algorithm="none", headers={"kid": "k1"}),
        jwt.encode(said, "x" * 32, algorithm="HS256", headers={"kid": "k1"}),
        jwt.encode(said, key, algorithm="HS256"),
        jwt.encode(said, key, algorithm="HS256", headers={"kid": "k2"}),
        jwt.encode(said | {"contract": "x"}, key, algorithm="HS256", headers={"kid": "k1"}),
        jwt.encode({"iat": 1}, key, algorithm="HS256", headers={"kid": "k1"}),
    ]
    before = await owner.counts()
    for token in forged:
        answer = await api.plan(reference, lease=token, effect="effect-2")
        assert answer.refusal == (422, "invalid_request"), token
        assert answer.body["pointer"] == "/lease"
    assert await owner.counts() == before
    whole = jwt.encode(said, key, algorithm="HS256", headers={"kid": "k1"})
    assert (await api.plan(reference, lease=whole, effect="effect-2")).status == 201


async def test_a_lease_of_another_tenant_is_refused(api: Api, other: Api):
    reference = await api.publish(a_contract())
    lease = await lease_of(other, await other.publish(a_contract()))
    assert (await api.retire(reference)).status == 409
    assert (await api.plan(reference, lease=lease)).refusal == (422, "invalid_request")

"""Every route asks for one permission, and who lacks it learns nothing else."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import pytest

from kernel.roles import HOLDERS, Permission, Role
from tests.api import Api
from tests.builders import a_contract, a_policy
from tests.fixtures import Owner
from tests.problems import problem_in
from tests.routes import PLACEHOLDERS, places

SIGNED = "/v1/webhooks/{tenant}/{source}"  # no token opens it, see test_webhooks
OPEN = {"/healthz", "/readyz", "/docs", "/openapi.json", "/docs/static", SIGNED}

# The permission that each route asks for, told once more by hand.
ASKED = {
    "read_contracts": """
        GET /v1/contracts
        GET /v1/contracts/{name}/{version}
        GET /v1/credentials
        GET /v1/keys
        GET /v1/policies
        GET /v1/policies/{policy}
        GET /v1/signature-policy
        GET /v1/whoami
        POST /v1/compare
        POST /v1/resolve
    """,
    "publish": """
        POST /v1/contracts
        POST /v1/contracts/{name}/{version}/signatures
    """,
    "use_effects": """
        DELETE /v1/pins/{pin_id}
        POST /v1/effects
        POST /v1/effects/{effect_id}/dispatch
        POST /v1/effects/{effect_id}/outcome
        POST /v1/pins
        PUT /v1/runs/{run:path}
        PUT /v1/workers/{worker_id}/heartbeat
    """,
    "read_effects": """
        GET /v1/approvals
        GET /v1/approvals/{approval_id}
        GET /v1/effects
        GET /v1/effects/{effect_id}
        GET /v1/pins
        GET /v1/quarantine
        GET /v1/quarantine/{effect_id}
        GET /v1/runs/{run:path}
        GET /v1/workers
    """,
    "approve": """
        POST /v1/approvals/{approval_id}/approve
        POST /v1/approvals/{approval_id}/reject
    """,
    "cancel_effects": """
        POST /v1/effects/{effect_id}/cancel
    """,
    "settle_effects": """
        POST /v1/effects/{effect_id}/evidence
        POST /v1/effects/{effect_id}/migrate
        POST /v1/effects/{effect_id}/resolve
        POST /v1/effects/{effect_id}/retry
        POST /v1/effects/{effect_id}/withdraw
    """,
    "manage_rollout": """
        POST /v1/rollouts/{name}/{version}/retire
        POST /v1/rollouts/{name}/{version}/rollback
    """,
    "manage_credentials": """
        POST /v1/contracts/{name}/{version}/attest
        POST /v1/credentials
        POST /v1/credentials/{name}/revoke
        POST /v1/credentials/{name}/rotate
    """,
    "manage_grants": """
        DELETE /v1/grants
        GET /v1/grants
        POST /v1/grants
    """,
    "manage_tokens": """
        GET /v1/tokens
        POST /v1/tokens
        POST /v1/tokens/{token_id}/revoke
        POST /v1/tokens/{token_id}/rotate
    """,
    "manage_sharing": """
        GET /v1/contracts/{name}/{version}/shares
        GET /v1/shares
        POST /v1/contracts/{name}/{version}/shares
        POST /v1/contracts/{name}/{version}/shares/{tenant}/revoke
        POST /v1/shares/accept
        POST /v1/shares/withdraw
    """,
    "manage_keys": """
        POST /v1/keys
        POST /v1/keys/{key_id}/revoke
        POST /v1/signature-policy
    """,
    "manage_policies": """
        DELETE /v1/policies/{policy}/assignments
        POST /v1/policies
        POST /v1/policies/{policy}/assignments
    """,
    "read_metrics": """
        GET /metrics
    """,
    "audit": """
        GET /v1/audit/export
        GET /v1/audit/keys
        GET /v1/audit/seals
    """,
}
LAW = {
    route.strip(): Permission(permission)
    for permission, routes in ASKED.items()
    for route in routes.strip().splitlines()
}


@pytest.fixture
async def holders(api: Api, owner: Owner) -> AsyncGenerator[dict[Role, Api]]:
    """The application as the holder of each one role has it."""
    async with AsyncExitStack() as stack:
        holders = {
            role: api.speaking_for(await owner.token("default", role, principal=f"a-{role}"))
            for role in Role
        }
        for holder in holders.values():
            await stack.enter_async_context(holder.http)
        yield holders


async def test_every_route_is_open_to_those_who_may_and_to_nobody_else(
    api: Api, holders: dict[Role, Api]
):
    routes = {
        f"{place.method} {place.template}": place
        for place in places(api.app)
        if place.template not in OPEN
    }
    assert routes.keys() == LAW.keys(), "a new route says here what it asks for"
    for route, permission in LAW.items():
        place = routes[route]
        allowed: set[Role] = set()
        for role, holder in holders.items():
            response = await holder.http.request(place.method, place.path, json={})
            assert response.status_code < 500, (route, role, response.text)
            if response.status_code == 403 and problem_in(response)["code"] == "forbidden":
                assert permission in problem_in(response)["detail"]
            else:
                allowed.add(role)
        assert allowed == HOLDERS[permission], route


async def test_who_may_not_cannot_tell_what_is_there(api: Api, holders: dict[Role, Api]):
    tool = await api.publish(a_contract())
    pin = {"name": tool["name"], "version": "2.1", "holder": "queue", "ttl_seconds": 60}
    policy = await api.ask("POST", "/v1/policies", {"text": a_policy()})
    asks = await api.publish(a_contract(name="billing.ask", approval="always"))
    real = {
        "{name}": tool["name"],
        "{version}": "2.1",
        "{approval_id}": (await api.plan(asks, effect="asks")).body["effect_id"],
        "{effect_id}": (await api.dispatched(tool))["effect_id"],
        "{pin_id}": (await api.ask("POST", "/v1/pins", pin)).body["pin_id"],
        "{policy}": policy.body["policy"],
        "{run:path}": "run-1",
        "{token_id}": (await api.ask("GET", "/v1/tokens")).body["tokens"][0]["token_id"],
        "{worker_id}": api.worker_id,
    }
    before = [await api.show({"effect_id": real["{effect_id}"]})]
    for route, permission in LAW.items():
        method, template = route.split()
        paths = [template, template]
        for index, names in enumerate((real, PLACEHOLDERS)):
            for name in PLACEHOLDERS:
                paths[index] = paths[index].replace(name, names.get(name, PLACEHOLDERS[name]))
        for role in set(Role) - HOLDERS[permission]:
            for body in ({}, {"reason": "because"}, tool):
                found, missing = [
                    await holders[role].http.request(method, path, json=body) for path in paths
                ]
                assert found.status_code == 403, (route, role)
                assert found.content == missing.content, (route, role)
    assert [await api.show({"effect_id": real["{effect_id}"]})] == before


async def test_a_runtime_works_and_an_operator_settles(api: Api, holders: dict[Role, Api]):
    tool = await api.publish(a_contract(effect_class="NON_RETRYABLE", idempotency=None))
    runtime, operator = holders[Role.RUNTIME], holders[Role.OPERATOR]
    grant = {"principal": "a-runtime", "capability": tool["capabilities"][0]}
    assert (await runtime.ask("POST", "/v1/grants", grant)).refusal == (403, "forbidden")
    assert (await api.ask("POST", "/v1/grants", grant)).status == 201
    effect = await runtime.dispatched(tool)
    assert (await runtime.cancel(effect)).status == 409, "it may ask, and the state says no"
    word = (await runtime.resolve(effect, "FAILED")).refusal
    assert word == (403, "forbidden"), "no runtime settles what it did itself"
    assert (await operator.resolve(effect, "FAILED")).status == 409
    assert (await operator.dispatch(effect)).refusal == (403, "forbidden")
    assert (await runtime.report(effect, "succeeded", result={"invoice_id": "I-1"})).status == 200
    assert (await holders[Role.PUBLISHER].ask("GET", "/v1/effects")).refusal == (403, "forbidden")
    assert len((await holders[Role.AUDITOR].ask("GET", "/v1/effects")).body["effects"]) == 1


async def test_several_roles_add_up(api: Api, owner: Owner):
    both = api.speaking_for(await owner.token("default", "publisher", "operator"))
    async with both.http:
        assert (await both.ask("GET", "/v1/whoami")).body["roles"] == ["operator", "publisher"]
        assert (await both.submit(a_contract())).code == "invalid_contract", "no credential yet"
        await both.credential("billing-api")
        assert (await both.submit(a_contract())).status == 201
        assert (await both.ask("GET", "/v1/grants")).refusal == (403, "forbidden")

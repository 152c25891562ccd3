"""Policies over HTTP: routes and wire models, nothing else."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import Field

from kernel.http import WAS_THERE, ScopeDep, StrictRoute, Wire, allow, in_thread
from kernel.roles import Permission
from kernel.scope import Connection
from kernel.wire import time_text
from registry import service_policies
from registry.http import Name
from registry.policy import PolicyRevision, read_policy
from registry.store import RegistryStore
from registry.store_policies import PolicyStore

router = APIRouter(prefix="/v1", route_class=StrictRoute, tags=["registry"])


class PolicyBody(Wire):
    """A policy as it is written, in YAML or JSON."""

    text: Annotated[str, Field(min_length=1)]


class AssignmentBody(Wire):
    """Whose calls a policy decides of: a principal's, or with `*` everybody's."""

    principal: Name


def _rendered(revision: PolicyRevision) -> dict[str, Any]:
    return {
        "policy": revision.policy,
        "revision": revision.revision,
        "current_revision": revision.current_revision,
        "digest": revision.digest,
        "published_at": time_text(revision.published_at),
        "published_by": revision.published_by,
        "assigned_to": revision.assigned_to,
    }


@router.post(
    "/policies",
    status_code=201,
    responses=WAS_THERE,
    dependencies=[allow(Permission.MANAGE_POLICIES)],
)
async def publish(body: PolicyBody, scope: ScopeDep, response: Response) -> dict[str, Any]:
    """Publish a policy under its id, as the next revision. 200 when it says the same as the last.

    Every fault is told with its line and column, also what can only be a mistake, such as a rule
    about a tool that the policy does not declare. `warnings` are what may not be meant.
    """
    policy, warnings = await in_thread(scope.caller, read_policy, body.text)

    async def work(connection: Connection) -> tuple[PolicyRevision, bool]:
        store, policies = RegistryStore(connection), PolicyStore(connection)
        return await service_policies.publish(store, policies, scope.caller, policy, body.text)

    revision, is_new = await scope.transact(work)
    response.status_code = 201 if is_new else 200
    return _rendered(revision) | {
        "published": is_new,
        "warnings": [each.to_json() for each in warnings],
    }


@router.get("/policies", dependencies=[allow(Permission.READ_CONTRACTS)])
async def policies(
    scope: ScopeDep,
    in_force_for: Annotated[
        str | None, Query(description="Only the policy in force for this principal")
    ] = None,
) -> dict[str, Any]:
    """List the policies, each at the revision that counts, and to whom they are assigned."""
    found = await scope.transact(
        lambda connection: service_policies.listed(PolicyStore(connection), in_force_for)
    )
    return {"policies": [_rendered(each) for each in found]}


@router.get("/policies/{policy}", dependencies=[allow(Permission.READ_CONTRACTS)])
async def policy(
    policy: str, scope: ScopeDep, revision: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None
) -> dict[str, Any]:
    """Show a policy as it was written: the revision that counts, or another one."""

    async def work(connection: Connection) -> tuple[PolicyRevision, str]:
        store = PolicyStore(connection)
        found = await service_policies.find(store, policy, revision)
        return found, await store.source(found.policy, found.revision)

    found, text = await scope.transact(work)
    return _rendered(found) | {"text": text}


@router.post(
    "/policies/{policy}/assignments",
    status_code=201,
    responses=WAS_THERE,
    dependencies=[allow(Permission.MANAGE_POLICIES)],
)
async def assign(
    policy: str, body: AssignmentBody, scope: ScopeDep, response: Response
) -> dict[str, Any]:
    """Let a policy decide of a principal's calls, or with `*` of those of all who have none.

    It takes the place of any other one. 200 when it is so already.
    """

    async def work(connection: Connection) -> bool:
        store, policies = RegistryStore(connection), PolicyStore(connection)
        asked = policy, body.principal
        return await service_policies.assign(store, policies, scope.caller, *asked)

    is_new = await scope.transact(work)
    response.status_code = 201 if is_new else 200
    return {"policy": policy, "principal": body.principal, "assigned": is_new}


@router.delete(
    "/policies/{policy}/assignments",
    status_code=204,
    dependencies=[allow(Permission.MANAGE_POLICIES)],
)
async def unassign(policy: str, principal: str, scope: ScopeDep) -> None:
    """Take a policy back from a principal, or with `*` from everybody."""

    async def work(connection: Connection) -> None:
        store, policies = RegistryStore(connection), PolicyStore(connection)
        await service_policies.unassign(store, policies, scope.caller, policy, principal)

    await scope.transact(work)

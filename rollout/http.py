"""The rollout over HTTP: routes and wire models, nothing else."""

from typing import Any

from fastapi import APIRouter

from kernel.http import ScopeDep, StrictRoute, allow
from kernel.roles import Permission
from kernel.scope import Connection
from registry.entry import Entry
from registry.http import ReasonBody
from registry.store import RegistryStore
from rollout import service
from rollout.store import RolloutStore

router = APIRouter(prefix="/v1/rollouts", route_class=StrictRoute, tags=["rollout"])


def _rendered(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.contract.name,
        "version": str(entry.contract.version),
        "state": entry.state,
    }


@router.post("/{name}/{version}/retire", dependencies=[allow(Permission.MANAGE_ROLLOUT)])
async def retire(name: str, version: str, body: ReasonBody, scope: ScopeDep) -> dict[str, Any]:
    """Retire a version.

    Closes it to new plans; refused with every blocker while something refers to it.
    """

    async def close(connection: Connection) -> Entry:
        store, registry = RolloutStore(connection), RegistryStore(connection)
        return await service.close(store, registry, scope.caller, name, version, body.reason)

    # The closing mark is committed before the references are asked for: a plan that began before it
    # is awaited and seen, one that begins after it is refused.
    entry = await scope.transact(close)

    async def finish(connection: Connection) -> Entry:
        return await service.retire(
            RolloutStore(connection),
            RegistryStore(connection),
            scope.caller,
            entry,
            reason=body.reason,
            lease_seconds_max=scope.lease_seconds_max,
        )

    return _rendered(await scope.transact(finish))


@router.post("/{name}/{version}/rollback", dependencies=[allow(Permission.MANAGE_ROLLOUT)])
async def rollback(name: str, version: str, body: ReasonBody, scope: ScopeDep) -> dict[str, Any]:
    """Reopen a version that was closed, at any time before it is retired."""

    async def work(connection: Connection) -> Entry:
        store, registry = RolloutStore(connection), RegistryStore(connection)
        return await service.reopen(store, registry, scope.caller, name, version, body.reason)

    return _rendered(await scope.transact(work))

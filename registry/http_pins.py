"""Pins over HTTP: routes and wire models, nothing else."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field

from kernel.http import ScopeDep, StrictRoute, Wire, allow
from kernel.roles import Permission
from kernel.wire import time_text
from registry import service
from registry.http import Name
from registry.store import RegistryStore

router = APIRouter(prefix="/v1", route_class=StrictRoute, tags=["registry"])


class PinBody(Wire):
    """A version that an outside queue holds."""

    name: str
    version: str
    holder: Name
    ttl_seconds: Annotated[float, Field(gt=0, le=30 * 86400)]


@router.post("/pins", status_code=201, dependencies=[allow(Permission.USE_EFFECTS)])
async def pin(body: PinBody, scope: ScopeDep) -> dict[str, Any]:
    """Hold a version for an outside queue.

    Until the pin runs out, the version cannot be retired.
    """
    pin_id, expires_at = await scope.transact(
        lambda connection: service.pin(
            RegistryStore(connection),
            scope.caller,
            body.name,
            body.version,
            holder=body.holder,
            ttl_seconds=body.ttl_seconds,
        )
    )
    return {"pin_id": str(pin_id), "expires_at": time_text(expires_at)}


@router.get("/pins", dependencies=[allow(Permission.READ_EFFECTS)])
async def pins(scope: ScopeDep) -> dict[str, Any]:
    """List the pins that hold."""
    found = await scope.transact(lambda connection: RegistryStore(connection).pins())
    return {
        "pins": [
            {
                "pin_id": str(one.pin_id),
                "name": one.name,
                "version": one.version,
                "holder": one.holder,
                "expires_at": time_text(one.expires_at),
            }
            for one in found
        ]
    }


@router.delete("/pins/{pin_id}", status_code=204, dependencies=[allow(Permission.USE_EFFECTS)])
async def unpin(pin_id: UUID, scope: ScopeDep) -> None:
    """Let a pin go."""
    await scope.transact(lambda connection: service.unpin(RegistryStore(connection), pin_id))

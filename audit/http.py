"""The audit over HTTP: routes and wire models, nothing else."""

from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from audit import service
from audit.seal import Seal, Statement, public_keys
from audit.store import AuditStore
from kernel.http import ScopeDep, StrictRoute, allow
from kernel.roles import Permission
from kernel.scope import Connection
from tallystick.canonical import Json

router = APIRouter(prefix="/v1/audit", route_class=StrictRoute, tags=["audit"])


def _rendered(seal: Seal) -> dict[str, Json]:
    statement = Statement.parse(seal.text).to_json()
    return {**statement, "digest": seal.digest, "signature": seal.signature.hex()}


@router.get("/seals", dependencies=[allow(Permission.AUDIT)])
async def list_seals(
    scope: ScopeDep,
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> dict[str, Any]:
    """List the seals, newest first.

    Whoever keeps the digest of the newest one elsewhere can tell later that the chain was not cut
    off or made anew.
    """

    async def work(connection: Connection) -> list[Seal]:
        return await AuditStore(connection).newest_seals(before=before, limit=limit)

    seals = [_rendered(seal) for seal in await scope.transact(work)]
    is_full = len(seals) == limit and seals[-1]["number"] != 1
    return {"seals": seals, "next": seals[-1]["number"] if is_full else None}


@router.get("/keys", dependencies=[allow(Permission.AUDIT)])
async def list_keys(scope: ScopeDep) -> dict[str, Any]:
    """List the public keys that sign this tenant's seals, Ed25519 in hexadecimal."""
    keys = public_keys(scope.keys, scope.caller.tenant_id)
    return {
        "keys": [
            {
                "key_id": key_id,
                "public_key": key.hex(),
                "is_current": key_id == scope.keys.current,
            }
            for key_id, key in keys.items()
        ]
    }


@router.get("/export", response_class=StreamingResponse, dependencies=[allow(Permission.AUDIT)])
async def export(scope: ScopeDep) -> StreamingResponse:
    """Export every seal and every record of this tenant, as lines of JSON.

    `registry audit verify` checks them without the service.
    """
    pieces = service.export(scope.transact, scope.keys, scope.caller.tenant_id)
    # The first is made before the answer begins: an outage can still be told as one.
    first = await anext(pieces)

    async def body() -> AsyncGenerator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    return StreamingResponse(body(), media_type="application/x-ndjson")

"""Sharing over HTTP: routes and wire models, nothing else."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Response
from pydantic import Field

from kernel.http import WAS_THERE, ScopeDep, StrictRoute, Wire, allow
from kernel.roles import Permission
from kernel.scope import Connection
from kernel.wire import time_text
from registry import service_shares
from registry.entry import Offer, Share
from registry.http import Name, ReasonBody
from registry.store import RegistryStore
from registry.store_shares import ShareStore

router = APIRouter(prefix="/v1", route_class=StrictRoute, tags=["registry"])
_OF_A_VERSION: Final = "/contracts/{name}/{version}/shares"


class ShareBody(Wire):
    """The tenant to share a version with, by its slug."""

    tenant: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]


class OfferBody(Wire):
    """A version that another tenant shares, and whose it is."""

    owner: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
    name: Name
    version: Annotated[str, Field(max_length=100)]


class WithdrawalBody(OfferBody, ReasonBody):
    """A version that is not to be used any more, and why."""


def _rendered(share: Share) -> dict[str, Any]:
    return {
        "tenant": share.shared_with,
        "shared_at": time_text(share.shared_at),
        "shared_by": share.shared_by,
        "revoked_at": time_text(share.revoked_at),
    }


@router.post(
    _OF_A_VERSION,
    status_code=201,
    responses=WAS_THERE,
    dependencies=[allow(Permission.MANAGE_SHARING)],
)
async def share(
    name: str, version: str, body: ShareBody, scope: ScopeDep, response: Response
) -> dict[str, Any]:
    """Share a version with another tenant, to use and not to change. 200 when it is shared already.

    The answer is the same whether there is such a tenant or not.
    """

    async def work(connection: Connection) -> tuple[Share, bool]:
        store, registry = ShareStore(connection), RegistryStore(connection)
        return await service_shares.share(store, registry, scope.caller, name, version, body.tenant)

    shared, is_new = await scope.transact(work)
    response.status_code = 201 if is_new else 200
    return _rendered(shared)


@router.get(_OF_A_VERSION, dependencies=[allow(Permission.MANAGE_SHARING)])
async def shares(name: str, version: str, scope: ScopeDep) -> dict[str, Any]:
    """List the tenants that a version is shared with, and those that it was."""

    async def work(connection: Connection) -> list[Share]:
        store, registry = ShareStore(connection), RegistryStore(connection)
        return await service_shares.shares(store, registry, name, version)

    return {"shares": [_rendered(one) for one in await scope.transact(work)]}


@router.post(_OF_A_VERSION + "/{tenant}/revoke", dependencies=[allow(Permission.MANAGE_SHARING)])
async def unshare(
    name: str, version: str, tenant: str, body: ReasonBody, scope: ScopeDep
) -> dict[str, Any]:
    """Share a version with a tenant no longer: it plans nothing new, and what is open drains."""

    async def work(connection: Connection) -> Share:
        store, registry = ShareStore(connection), RegistryStore(connection)
        return await service_shares.unshare(
            store, registry, scope.caller, name, version, tenant, body.reason
        )

    return _rendered(await scope.transact(work))


def _offered(offer: Offer) -> dict[str, Any]:
    return {
        "owner": offer.owner,
        "name": offer.name,
        "version": offer.version,
        "accepted_at": time_text(offer.accepted_at),
        "accepted_by": offer.accepted_by,
        "revoked_at": time_text(offer.revoked_at),
    }


@router.get("/shares", dependencies=[allow(Permission.MANAGE_SHARING)])
async def offers(scope: ScopeDep, owner: str | None = None) -> dict[str, Any]:
    """List what other tenants share with this one, or what one of them does: names, and no texts.

    What is accepted comes first, also where its owner has taken it back. At most 500 are listed.
    """

    async def work(connection: Connection) -> list[Offer]:
        return await ShareStore(connection).offers(owner=owner)

    return {"offers": [_offered(one) for one in await scope.transact(work)]}


@router.post("/shares/accept", dependencies=[allow(Permission.MANAGE_SHARING)])
async def accept(body: OfferBody, scope: ScopeDep) -> dict[str, Any]:
    """Accept a version that another tenant shares. Before that, nothing here leads to it.

    Under one name and version one tenant's is accepted at a time; one's own comes before it.
    """

    async def work(connection: Connection) -> Offer:
        store, registry = ShareStore(connection), RegistryStore(connection)
        asked = body.owner, body.name, body.version
        return await service_shares.accept(store, registry, scope.caller, *asked)

    return _offered(await scope.transact(work))


@router.post("/shares/withdraw", dependencies=[allow(Permission.MANAGE_SHARING)])
async def withdraw(body: WithdrawalBody, scope: ScopeDep) -> dict[str, Any]:
    """Accept a version no longer: nothing new is planned on it, and what is open drains."""

    async def work(connection: Connection) -> Offer:
        store, registry = ShareStore(connection), RegistryStore(connection)
        asked = body.owner, body.name, body.version
        return await service_shares.withdraw(store, registry, scope.caller, *asked, body.reason)

    return _offered(await scope.transact(work))

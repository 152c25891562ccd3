"""Sharing versions with other tenants: who shares one goes on owning it, the others use it.

A share is an offer: nothing of a version is seen by the other tenant before it accepts it. A tenant
is named by its slug, and no answer tells whether there is such a tenant, or what it does with what
is shared with it.
"""

from dataclasses import replace

from kernel.scope import Caller
from registry.entry import Entry, Offer, Share
from registry.service import find_own, normal_version
from registry.store import RegistryStore
from registry.store_shares import ShareStore
from tallystick.canonical import Json
from tallystick.errors import InvalidRequest, NotFound


async def share(
    store: ShareStore,
    registry: RegistryStore,
    caller: Caller,
    name: str,
    version: str,
    tenant: str,
) -> tuple[Share, bool]:
    """Share a version with a tenant; tell whether that is new.

    Raises:
        ToolContractNotFound: The caller's tenant has no such version.
        InvalidRequest: It is that tenant itself.
    """
    entry = await find_own(registry, name, version)
    if tenant == caller.tenant:
        raise InvalidRequest(f"{name}@{version} is your own already.", pointer="/tenant")
    is_new = await store.share(entry.contract_id, tenant, by=caller.principal)
    if is_new:
        await _record(registry, caller, _named(entry), "contract_shared", {"tenant": tenant})
    return await _shared(store, entry, tenant), is_new


async def unshare(
    store: ShareStore,
    registry: RegistryStore,
    caller: Caller,
    name: str,
    version: str,
    tenant: str,
    reason: str,
) -> Share:
    """Share a version with a tenant no longer.

    From now on it plans nothing new there, as on a version that closes; what it has planned may
    still run, and is settled in any case. Again, it stays as it is.

    Raises:
        ToolContractNotFound: The caller's tenant has no such version.
        NotFound: It was never shared with that tenant.
    """
    entry = await find_own(registry, name, version)
    if await store.revoke(entry.contract_id, tenant):
        facts: dict[str, Json] = {"tenant": tenant, "reason": reason}
        await _record(registry, caller, _named(entry), "contract_unshared", facts)
    return await _shared(store, entry, tenant)


async def shares(
    store: ShareStore, registry: RegistryStore, name: str, version: str
) -> list[Share]:
    """Return whom a version is shared with, or was. Raises ToolContractNotFound."""
    entry = await find_own(registry, name, version)
    return await store.shares(entry.contract_id)


async def _shared(store: ShareStore, entry: Entry, tenant: str) -> Share:
    for one in await store.shares(entry.contract_id):
        if one.shared_with == tenant:
            return one
    raise NotFound(f"{_named(entry)} is not shared with {tenant}.")


def _named(entry: Entry) -> str:
    return f"{entry.contract.name}@{entry.contract.version}"


async def accept(
    store: ShareStore, registry: RegistryStore, caller: Caller, owner: str, name: str, version: str
) -> Offer:
    """Accept a version that another tenant shares: from now on it is found here.

    Again, it stays as it is.

    Raises:
        NotFound: That tenant offers no such version, or there is no such tenant.
        InvalidRequest: A version under that name and number is accepted from another tenant.
    """
    await registry.lock_name(name)
    offered = await store.offers(name=name, version=normal_version(version))
    found = [one for one in offered if one.owner == owner]
    if not found:
        raise _not_offered(owner, name, version)
    for one in offered:
        if one.owner != owner and one.accepted_at is not None:
            raise InvalidRequest(
                f"{name}@{version} is accepted from {one.owner}; withdraw that first.",
                pointer="/owner",
            )
    if found[0].accepted_at is None:
        await store.accept(found[0].contract_id, by=caller.principal)
        await _record_of(registry, caller, found[0], "share_accepted", {})
    return (await store.offers(owner=owner, name=name, version=found[0].version))[0]


async def withdraw(
    store: ShareStore,
    registry: RegistryStore,
    caller: Caller,
    owner: str,
    name: str,
    version: str,
    reason: str,
) -> Offer:
    """Accept a version no longer: nothing new is planned on it, and what is open drains.

    Raises NotFound where it is not accepted from that tenant.
    """
    await registry.lock_name(name)
    offered = await store.offers(owner=owner, name=name, version=normal_version(version))
    if not offered or offered[0].accepted_at is None:
        raise _not_offered(owner, name, version)
    await store.withdraw(offered[0].contract_id)
    await _record_of(registry, caller, offered[0], "share_withdrawn", {"reason": reason})
    return replace(offered[0], accepted_at=None, accepted_by=None)


def _not_offered(owner: str, name: str, version: str) -> NotFound:
    return NotFound(f"There is no {name}@{version} of {owner}.")


async def _record_of(
    registry: RegistryStore, caller: Caller, offer: Offer, kind: str, facts: dict[str, Json]
) -> None:
    subject = f"{offer.name}@{offer.version}"
    await _record(registry, caller, subject, kind, {"owner": offer.owner, **facts})


async def _record(
    registry: RegistryStore, caller: Caller, subject: str, kind: str, facts: dict[str, Json]
) -> None:
    await registry.record(kind, subject, actor=caller.principal, facts=facts)

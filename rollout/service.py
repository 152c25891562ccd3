"""What one can ask of the rollout: one use case a function."""

from kernel.scope import Caller
from kernel.wire import time_text
from registry.entry import Entry
from registry.service import find_own
from registry.store import RegistryStore
from rollout.retirement import Blocker, blockers, earliest
from rollout.store import RolloutStore
from tallystick.canonical import Json
from tallystick.errors import ContractInUse, ContractRetired, InvalidRequest
from tallystick.resolution import Lifecycle


async def close(
    store: RolloutStore,
    registry: RegistryStore,
    caller: Caller,
    name: str,
    version: str,
    reason: str,
) -> Entry:
    """Close a version to new plans: the first half of a retirement, and a commit of its own.

    Raises ToolContractNotFound. A version that is closed or retired already stays as it is.
    """
    entry = await find_own(registry, name, version)
    if entry.lifecycle is Lifecycle.RETIRED:
        return entry
    if await store.close(entry.contract_id, by=caller.principal, reason=reason):
        await _record(registry, caller, entry, "contract_closed", reason)
    return await find_own(registry, name, version)


async def retire(
    store: RolloutStore,
    registry: RegistryStore,
    caller: Caller,
    entry: Entry,
    *,
    reason: str,
    lease_seconds_max: float,
) -> Entry:
    """Retire a closed version, if nothing refers to it: the second half.

    The state row is locked first, so that every dispatch that shares it is awaited and seen, and
    none that comes after gets through.

    Raises:
        ContractInUse: Something refers to it. ``facts`` hold each blocker, what would clear it, and
        the
            earliest time at which the version can go. The version stays closed to new plans.
        InvalidRequest: The version was reopened in the meantime.
    """
    if entry.lifecycle is Lifecycle.RETIRED:
        return entry
    await store.lock(entry.contract_id)
    closing = await store.closing(entry.contract_id)
    if closing is None:
        raise InvalidRequest("The version was reopened while it was being retired.")
    closed_at, now = closing
    found = blockers(
        await store.references(entry.contract_id),
        closed_at=closed_at,
        lease_seconds_max=lease_seconds_max,
        now=now,
    )
    if found:
        raise _in_use(entry, found)
    await store.retire(entry.contract_id)
    await _record(registry, caller, entry, "contract_retired", reason)
    return await find_own(registry, entry.contract.name, str(entry.contract.version))


async def reopen(
    store: RolloutStore,
    registry: RegistryStore,
    caller: Caller,
    name: str,
    version: str,
    reason: str,
) -> Entry:
    """Reopen a version that was closed. Raises ContractRetired when it is too late."""
    entry = await find_own(registry, name, version)
    await store.lock(entry.contract_id)
    entry = await find_own(registry, name, version)
    if entry.lifecycle is Lifecycle.RETIRED:
        raise ContractRetired(
            f"{name}@{entry.contract.version} is retired; publish its content under a new version."
        )
    if await store.reopen(entry.contract_id):
        await _record(registry, caller, entry, "contract_reopened", reason)
    return await find_own(registry, name, version)


async def _record(
    registry: RegistryStore, caller: Caller, entry: Entry, kind: str, reason: str
) -> None:
    subject = f"{entry.contract.name}@{entry.contract.version}"
    facts: dict[str, Json] = {"reason": reason}
    await registry.record(kind, subject, actor=caller.principal, facts=facts)


def _in_use(entry: Entry, found: tuple[Blocker, ...]) -> ContractInUse:
    what = ", ".join(_counted(one) for one in found)
    facts: dict[str, Json] = {
        "state": entry.state,
        "closed_at": time_text(entry.closed_at),
        "earliest": time_text(earliest(found)),
        "blockers": [
            {
                "kind": one.kind,
                "state": one.state,
                "count": one.count,
                "clears": one.clears,
                "earliest": time_text(one.earliest),
            }
            for one in found
        ],
    }
    return ContractInUse(
        f"{entry.contract.name}@{entry.contract.version} is still referred to: {what}.", facts=facts
    )


def _counted(one: Blocker) -> str:
    kind = one.kind.removesuffix("s") if one.count == 1 else one.kind
    return f"{one.count} {kind} {one.state}" if one.state else f"{one.count} {kind}"

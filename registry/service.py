"""What one can ask of the registry: one use case a function."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from kernel.keys import KeyRing
from kernel.scope import Caller
from registry import lease as leases
from registry import service_keys
from registry.entry import Credential, Entry, offered_beside, standing_of
from registry.lease import Lease
from registry.publication import (
    Comparisons,
    Review,
    check_version,
    equivalents,
    is_published,
    rivals,
)
from registry.signing import Presented
from registry.store import RegistryStore
from registry.store_keys import KeyStore
from tallystick.canonical import Json
from tallystick.errors import (
    CredentialPolicyChanged,
    InvalidContract,
    InvalidRequest,
    NotFound,
    ToolContractNotFound,
)
from tallystick.resolution import Purpose, check
from tallystick.tool_contract import Contract, ToolReference, Version


@dataclass(frozen=True, slots=True)
class Resolution:
    """A tuple that resolved.

    The contract, what the call is held to, and until when it may be relied on.
    """

    entry: Entry
    capabilities: frozenset[str]
    lease: str
    lease_expires_at: datetime


@dataclass(frozen=True, slots=True)
class Publication:
    """A contract that is published: whether just now, and what it is proven to be equivalent to."""

    entry: Entry
    is_new: bool
    equivalent_to: list[str]


async def publish(
    store: RegistryStore,
    keys: KeyStore,
    caller: Caller,
    contract: Contract,
    review: Review | None,
    signatures: Sequence[Presented],
    comparisons: Comparisons,
) -> Publication | list[Contract]:
    """Publish a contract; the same document again changes nothing but adds signatures.

    Where versions are published that it was not compared with yet, nothing is written, and those
    are the answer: a comparison takes its time, and no lock is held for as long.

    Raises:
        InvalidContract: The contract names a credential that is not there.
        ContractExists: Another document is published under this version.
        SignatureInvalid: A signature is not one of this contract by a key that is trusted now.
        SignatureRequired: The tenant requires a signature, and there is none.
        ReviewRequired: The version rule asks for a new major version or a review.
    """
    await store.lock_name(contract.name)
    published = await store.entries(name=contract.name)
    is_new = not is_published(contract, published)
    await service_keys.verify(keys, contract, signatures)
    if is_new and not signatures:
        await service_keys.publish_unsigned(keys, contract)
    others = rivals(contract, published)
    missing = [other for other in others if other.contract_digest not in comparisons]
    if missing:
        return missing
    if is_new:
        check_version(contract, others, comparisons, review)
        credential = await _named_credential(store, contract)
        contract_id = await store.publish(contract, by=caller.principal, review=review)
        if credential is not None:
            await store.bind(contract_id, credential, by=caller.principal)
        await store.record(
            "contract_published",
            f"{contract.name}@{contract.version}",
            actor=caller.principal,
            facts={
                "contract_digest": contract.contract_digest,
                "credential_version": credential.version if credential else 0,
                "reviewer": review.reviewer if review else None,
                "review_reason": review.reason if review else None,
            },
        )
    entry = await find(store, contract.name, str(contract.version))
    if await service_keys.keep(store, keys, caller, entry, signatures):
        entry = await find(store, contract.name, str(contract.version))
    return Publication(entry, is_new, equivalents(others, comparisons))


async def _named_credential(store: RegistryStore, contract: Contract) -> Credential | None:
    if contract.credential is None:
        return None
    credential = await store.credential(contract.credential)
    if credential is None:
        raise InvalidContract(
            f"There is no credential {contract.credential!r}."
            f" Make it first: registry credentials create {contract.credential}.",
            pointer="/credential",
        )
    if credential.revoked_at is not None:
        raise InvalidContract(
            f"The credential {contract.credential!r} is revoked."
            f" Rotate it first: registry credentials rotate {contract.credential}.",
            pointer="/credential",
        )
    return credential


async def find(store: RegistryStore, name: str, version: str) -> Entry:
    """Return one published version. Raises ToolContractNotFound."""
    entry = await store.entry(name, normal_version(version))
    if entry is None or not entry.is_offered:
        raise _not_found(name, version)
    return entry


async def find_own(store: RegistryStore, name: str, version: str) -> Entry:
    """Return one published version of the tenant's own: what is shared with it, it only uses.

    Raises ToolContractNotFound, in the words of what does not exist.
    """
    entry = await find(store, name, version)
    if entry.owner is not None:
        raise _not_found(name, version)
    return entry


def _not_found(name: str, version: str) -> ToolContractNotFound:
    return ToolContractNotFound(f"There is no contract {name}@{version}.")


async def usable(store: RegistryStore, name: str | None) -> list[Entry]:
    """Return every version, or every one of a name: the tenant's own, and what it is offered."""
    return offered_beside(await store.entries(name=name), await store.offered(name=name))


async def find_named(store: RegistryStore, text: str) -> Entry:
    """Return the version that a text such as `billing.send_invoice@1.0` names.

    Raises:
        InvalidRequest: The text has another form.
        ToolContractNotFound: There is no such version.
    """
    name, at, version = text.partition("@")
    if not (name and at and version):
        raise InvalidRequest("A published version is written NAME@VERSION.")
    return await find(store, name, version)


def normal_version(version: str) -> str:
    """Return a version with three parts. Raises InvalidRequest for what is not a version."""
    try:
        return str(Version.parse(version))
    except InvalidContract as fault:
        raise InvalidRequest(fault.detail, pointer="/version") from fault


async def admit(
    store: RegistryStore,
    caller: Caller,
    reference: ToolReference,
    contract_id: UUID,
    *,
    lease: Lease | None = None,
) -> Entry:
    """Check a tuple for a new plan, and hold what the check rests on until the transaction ends.

    ``contract_id`` is the version that the tuple names.

    Raises one refusal of :func:`tallystick.resolution.check`.
    """
    asked = sorted(reference.capabilities)
    await store.lock(contract_id, asked, caller.principal)
    entry = await store.entry_by_id(contract_id)
    granted = await store.granted(caller.principal, asked)
    under_lease = lease is not None and lease.admits(
        contract_id, closed_at=entry.closed_at, now=entry.read_at
    )
    purpose = Purpose.PLAN_UNDER_LEASE if under_lease else Purpose.PLAN
    check(reference, standing_of(entry, caller.tenant), granted, purpose)
    return entry


async def resolve(
    store: RegistryStore,
    caller: Caller,
    reference: ToolReference,
    keys: KeyRing,
    *,
    lease_seconds: float,
) -> Resolution:
    """Resolve a presented tuple to its contract and a lease on it.

    Raises one refusal of :func:`tallystick.resolution.check`.
    """
    entry = await store.entry(reference.name, reference.version)
    granted = await store.granted(caller.principal, sorted(reference.capabilities))
    check(reference, standing_of(entry, caller.tenant), granted, Purpose.PLAN)
    assert entry is not None, "a tuple without a contract does not pass the check"
    expires_at = entry.read_at + timedelta(seconds=lease_seconds)
    token = leases.sign(Lease(entry.contract_id, entry.read_at, expires_at), keys, caller.tenant_id)
    return Resolution(entry, reference.capabilities, token, expires_at)


async def create_credential(store: RegistryStore, caller: Caller, name: str) -> Credential:
    """Make a credential slot. Raises InvalidRequest when the name is taken."""
    if not await store.create_credential(name):
        raise InvalidRequest(
            f"There is a credential {name!r} already; rotate it instead.", pointer="/name"
        )
    await store.record("credential_created", name, actor=caller.principal, facts={"version": 1})
    credential = await store.credential(name)
    assert credential is not None
    return credential


async def rotate_credential(
    store: RegistryStore, caller: Caller, name: str, reason: str
) -> Credential:
    """Raise a credential's version, which invalidates what was planned under it.

    A revoked credential is back in force under the new version, and needs a reason.

    Raises NotFound, and InvalidRequest where the reason is missing.
    """
    credential = await store.rotate_credential(name, also_revoked=bool(reason))
    if credential is None and await store.credential(name) is not None:
        raise InvalidRequest(
            f"The credential {name!r} is revoked: say why it may be used again.", pointer="/reason"
        )
    if credential is None:
        raise NotFound(f"There is no credential {name!r}.")
    facts: dict[str, Json] = {"version": credential.version, "reason": reason}
    await store.record("credential_rotated", name, actor=caller.principal, facts=facts)
    return credential


async def revoke_credential(
    store: RegistryStore, caller: Caller, name: str, reason: str
) -> Credential:
    """Take a credential out of force: nothing that is bound to it resolves until it is rotated.

    One that is revoked already stays as it is. Raises NotFound.
    """
    is_new = await store.revoke_credential(name)
    credential = await store.credential(name)
    if credential is None:
        raise NotFound(f"There is no credential {name!r}.")
    if is_new:
        facts: dict[str, Json] = {"version": credential.version, "reason": reason}
        await store.record("credential_revoked", name, actor=caller.principal, facts=facts)
    return credential


async def attest(
    store: RegistryStore, caller: Caller, name: str, version: str, reason: str
) -> Entry:
    """Bind a contract to its credential's current version, after a review of the rotation.

    A contract that another tenant shares is bound to the slot of this tenant under that name.

    Raises:
        ToolContractNotFound: There is no such version.
        InvalidRequest: The contract names no credential, or there is no slot under that name.
        CredentialPolicyChanged: The credential is revoked.
    """
    entry = await find(store, name, version)
    if entry.contract.credential is None:
        raise InvalidRequest(
            f"{name}@{version} names no credential, so there is nothing to attest."
        )
    credential = await store.credential(entry.contract.credential)
    if credential is None:
        raise InvalidRequest(
            f"There is no credential {entry.contract.credential!r}."
            f" Make it first: registry credentials create {entry.contract.credential}."
        )
    if credential.revoked_at is not None:
        raise CredentialPolicyChanged(
            f"The credential {credential.name!r} is revoked."
            f" Rotate it first: registry credentials rotate {credential.name}."
        )
    await store.bind(entry.contract_id, credential, by=caller.principal)
    await store.record(
        "contract_attested",
        f"{entry.contract.name}@{entry.contract.version}",
        actor=caller.principal,
        facts={"credential_version": credential.version, "reason": reason},
    )
    return await find(store, name, version)


async def grant(store: RegistryStore, caller: Caller, principal: str, capability: str) -> bool:
    """Grant a capability, the tenant put in for ``{tenant}``. Returns whether it is new."""
    capability = capability.replace("{tenant}", caller.tenant)
    is_new = await store.grant(principal, capability, by=caller.principal)
    if is_new:
        facts: dict[str, Json] = {"capability": capability}
        await store.record("capability_granted", principal, actor=caller.principal, facts=facts)
    return is_new


async def revoke(store: RegistryStore, caller: Caller, principal: str, capability: str) -> None:
    """Take a capability back. Raises NotFound when the principal does not hold it."""
    capability = capability.replace("{tenant}", caller.tenant)
    if not await store.revoke(principal, capability):
        raise NotFound(f"{principal} does not hold {capability}.")
    facts: dict[str, Json] = {"capability": capability}
    await store.record("capability_revoked", principal, actor=caller.principal, facts=facts)


async def pin(
    store: RegistryStore,
    caller: Caller,
    name: str,
    version: str,
    *,
    holder: str,
    ttl_seconds: float,
) -> tuple[UUID, datetime]:
    """Hold a version for an outside queue.

    Raises the refusals of a new plan, but for those of a tuple.
    """
    entry = await find(store, name, version)
    await store.lock(entry.contract_id, ())
    entry = await store.entry_by_id(entry.contract_id)
    check(
        entry.reference(caller.tenant),
        standing_of(entry, caller.tenant),
        entry.contract.capabilities_for(caller.tenant),
        Purpose.PLAN,
    )
    return await store.pin(entry.contract_id, holder=holder, ttl_seconds=ttl_seconds)


async def unpin(store: RegistryStore, pin_id: UUID) -> None:
    """Let a pin go. Raises NotFound."""
    if not await store.unpin(pin_id):
        raise NotFound(f"There is no pin {pin_id}.")

"""What one can ask of publishers' keys and signatures: one use case a function."""

from collections.abc import Sequence

from kernel.scope import Caller
from registry.entry import Entry, offered_beside
from registry.signing import (
    Presented,
    PublisherKey,
    SignaturePolicy,
    check_policy,
    check_signatures,
)
from registry.store import RegistryStore
from registry.store_keys import KeyStore
from tallystick.canonical import Json
from tallystick.errors import InvalidRequest, NotFound, SignatureRequired
from tallystick.resolution import Lifecycle
from tallystick.signing import PublicKey
from tallystick.tool_contract import Contract


async def add_key(
    store: RegistryStore, keys: KeyStore, caller: Caller, name: str, public_key: str
) -> tuple[PublisherKey, bool]:
    """Trust a publisher's key from now on; the same key under the same name changes nothing.

    Returns the key, and whether it is new.

    Raises:
        InvalidRequest: The public key is unsound, or is there under another name or revoked.
    """
    given = PublicKey.parse(public_key)
    is_new = await keys.add(given, name, by=caller.principal)
    key = await keys.key(given.id)
    assert key is not None
    if key.revoked_at is not None:
        raise InvalidRequest(f"The key {key.key_id} is revoked, and does not come back.")
    if (key.public_key, key.name) != (given.encoded, name):
        raise InvalidRequest(f"There is a key {key.key_id} already, of {key.name!r}.")
    if is_new:
        facts: dict[str, Json] = {"name": name, "public_key": public_key}
        await store.record("publisher_key_added", key.key_id, actor=caller.principal, facts=facts)
    return key, is_new


async def revoke_key(
    store: RegistryStore, keys: KeyStore, caller: Caller, key_id: str, reason: str
) -> tuple[PublisherKey, SignaturePolicy]:
    """Stop to trust a key for ever. Its signatures stay, and count no more.

    One that is revoked already stays as it is. Returns the key, and the policy with what it stops.

    Raises NotFound.
    """
    is_new = await keys.revoke(key_id, by=caller.principal, reason=reason)
    key = await keys.key(key_id)
    if key is None:
        raise NotFound(f"There is no key {key_id}.")
    if is_new:
        facts: dict[str, Json] = {"name": key.name, "reason": reason}
        await store.record("publisher_key_revoked", key_id, actor=caller.principal, facts=facts)
    return key, await policy(store, keys)


async def policy(store: RegistryStore, keys: KeyStore) -> SignaturePolicy:
    """Return whether signatures are required, and which versions have none that counts."""
    since, by = await keys.requirement() or (None, None)
    return SignaturePolicy(since, by, await _unsigned(store))


async def set_policy(
    store: RegistryStore, keys: KeyStore, caller: Caller, *, required: bool, confirmed: bool
) -> SignaturePolicy:
    """Require signatures, or require them no more; what holds already changes nothing.

    Raises:
        SignatureRequired: Published versions would stop, and that is not ``confirmed``.
    """
    if required:
        if await keys.requirement() is None:
            check_policy(await _unsigned(store), confirmed=confirmed)
        changed = await keys.require(by=caller.principal)
    else:
        changed = await keys.require_no_more()
    now = await policy(store, keys)
    if changed:
        facts: dict[str, Json] = {"required": required, "unsigned": len(now.unsigned)}
        await store.record(
            "signature_policy_changed", "signatures", actor=caller.principal, facts=facts
        )
    return now


async def _unsigned(store: RegistryStore) -> tuple[str, ...]:
    found = offered_beside(await store.entries(), await store.offered())
    return tuple(
        f"{entry.contract.name}@{entry.contract.version}"
        for entry in found
        if entry.lifecycle is not Lifecycle.RETIRED and not entry.is_signed
    )


async def publish_unsigned(keys: KeyStore, contract: Contract) -> None:
    """Let a contract without a signature be published. Raises SignatureRequired."""
    if await keys.requirement() is not None:
        raise SignatureRequired(
            f"{contract.name}@{contract.version} has no signature, and this tenant requires one.",
            pointer="/signatures",
        )


async def verify(keys: KeyStore, contract: Contract, signatures: Sequence[Presented]) -> None:
    """Verify signatures, and hold their keys as they are until the transaction ends.

    Raises SignatureInvalid.
    """
    known = await keys.held([each.key_id for each in signatures]) if signatures else {}
    check_signatures(contract, signatures, known)


async def keep(
    store: RegistryStore,
    keys: KeyStore,
    caller: Caller,
    entry: Entry,
    signatures: Sequence[Presented],
) -> bool:
    """Keep verified signatures of a version; returns whether any is new."""
    subject = f"{entry.contract.name}@{entry.contract.version}"
    is_new = False
    for each in signatures:
        if await keys.sign(entry.contract_id, each, by=caller.principal):
            is_new = True
            facts: dict[str, Json] = {
                "contract_digest": entry.contract.contract_digest,
                "key_id": each.key_id,
                "signature": each.signature.hex(),
            }
            await store.record("contract_signed", subject, actor=caller.principal, facts=facts)
    return is_new

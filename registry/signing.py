"""Publishers' keys, and the signatures that count. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from tallystick.errors import SignatureInvalid, SignatureRequired
from tallystick.signing import PublicKey
from tallystick.tool_contract import Contract

_TOLD_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class PublisherKey:
    """A key that a tenant trusts, or trusted until it was revoked, and whose it is."""

    key_id: str
    public_key: bytes
    name: str
    added_at: datetime
    added_by: str
    revoked_at: datetime | None
    revoked_by: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Presented:
    """A signature as somebody hands it in, and the key that it is said to be made with."""

    key_id: str
    signature: bytes


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature that was verified and kept. It counts for as long as its key is not revoked."""

    contract_id: UUID
    key_id: str
    name: str
    signature: bytes
    signed_at: datetime
    signed_by: str
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class SignaturePolicy:
    """Whether a tenant requires signatures, since when, and which versions have none that counts.

    Where it does, those versions do not resolve.
    """

    required_at: datetime | None
    required_by: str | None
    unsigned: tuple[str, ...]


def check_signatures(
    contract: Contract, presented: Sequence[Presented], keys: Mapping[str, PublisherKey]
) -> None:
    """Refuse signatures of which one is not good. ``keys`` are the tenant's own, by their ids.

    Raises:
        SignatureInvalid: A key is not known, or revoked, or did not make this signature of this
            document. A tenant is told the same of another's key as of nobody's.
    """
    for each in presented:
        fault = _fault(contract, each, keys.get(each.key_id))
        if fault is not None:
            raise SignatureInvalid(fault, facts={"key_id": each.key_id})


def _fault(contract: Contract, presented: Presented, key: PublisherKey | None) -> str | None:
    if key is None:
        return f"There is no key {presented.key_id}."
    if key.revoked_at is not None:
        return f"The key {key.key_id} is revoked."
    if not PublicKey(key.public_key).verifies(contract.contract_digest, presented.signature):
        return (
            f"The key {key.key_id} made no such signature of"
            f" {contract.name}@{contract.version} with the digest {contract.contract_digest}."
        )
    return None


def check_policy(unsigned: Sequence[str], *, confirmed: bool) -> None:
    """Refuse to require signatures while published versions would stop for it, unless confirmed.

    Raises:
        SignatureRequired: ``facts`` lists the versions.
    """
    if unsigned and not confirmed:
        told = ", ".join(unsigned[:_TOLD_MAX])
        more = f" and {len(unsigned) - _TOLD_MAX} more" if len(unsigned) > _TOLD_MAX else ""
        raise SignatureRequired(
            f"No signature that counts stands for {told}{more}. Sign first what is to resolve"
            " further, or confirm that it may stop.",
            facts={"unsigned": [*unsigned]},
        )

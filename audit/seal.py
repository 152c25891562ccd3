"""A seal: a signed statement of what one batch of records holds, chained to the one before. Pure.

The signature is Ed25519 (RFC 8032) over a line that names the format and the statement's canonical
form (RFC 8785). Its key is derived from the service's key ring, for one tenant.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, Self, cast
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernel.keys import KeyRing
from tallystick.canonical import Json, MalformedJson, canonical_bytes, parse_json

LEAVES_MAX: Final = 5000
"""How many leaves a batch has at most, unless one transaction alone wrote more."""

_SIGNED_AS: Final = b"tallystick-audit-seal-v1\n"

Digest = Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class Statement(BaseModel):
    """What a seal says.

    It covers every record of its tenant that a transaction numbered from ``since`` up to, but not
    including, ``upto`` wrote; on the wire these are ``from`` and ``to``. ``previous`` is the digest
    of the statement before.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, validate_by_name=True)

    format: Literal["tallystick-audit-seal-v1"] = "tallystick-audit-seal-v1"
    tenant: str
    number: Annotated[int, Field(ge=1)]
    previous: Digest | None
    since: Annotated[Count, Field(alias="from")]
    upto: Annotated[Count, Field(alias="to")]
    leaves: Count
    root: Digest
    sealed_at: str
    key_id: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a statement. Raises ValueError for a text that is none."""
        try:
            return cls.model_validate(parse_json(text), by_alias=True, by_name=False)
        except (MalformedJson, ValidationError):
            raise ValueError("not a seal's statement") from None

    def to_json(self) -> dict[str, Json]:
        """Return it as a JSON value."""
        return cast("dict[str, Json]", self.model_dump(by_alias=True))

    def to_text(self) -> str:
        """Return the canonical form, which is what is signed and kept."""
        return canonical_bytes(self.to_json()).decode()


@dataclass(frozen=True, slots=True)
class Seal:
    """A statement as it was signed, its signature, and the hashes of its leaves one after another.

    The hashes are not signed: the root is, and tells whether they are right. They tell which row
    was changed.
    """

    text: str
    signature: bytes
    leaf_hashes: bytes

    @property
    def digest(self) -> str:
        """The name of this seal in the next, and for whoever writes it down elsewhere."""
        return digest_of(self.text)


def digest_of(text: str) -> str:
    """Return the SHA-256 of a statement, as ``sha256:`` and 64 hexadecimal digits."""
    return digest_text(hashlib.sha256(text.encode()).digest())


def digest_text(digest: bytes) -> str:
    """Write a SHA-256 as it stands in statements."""
    return f"sha256:{digest.hex()}"


def next_bound(written: Sequence[tuple[int, int]], *, horizon: int, leaves_max: int) -> int | None:
    """Return the transaction number at which the next batch ends, or None if there is no record.

    Args:
        written: Numbers of transactions, ascending, each with how many records it wrote.
        horizon: The number below which every transaction has ended.
        leaves_max: A batch ends before the transaction that would bring it above this; it holds at
            least one.
    """
    leaves = 0
    for place, (transaction, count) in enumerate(written):
        leaves += count
        if place and leaves > leaves_max:
            return transaction
    return horizon if written else None


def signing_key(keys: KeyRing, key_id: str, tenant_id: UUID) -> Ed25519PrivateKey:
    """Return the key that signs a tenant's seals, derived from one key of the ring."""
    return Ed25519PrivateKey.from_private_bytes(keys.derive(key_id, tenant_id, "audit-seal"))


def public_keys(keys: KeyRing, tenant_id: UUID) -> dict[str, bytes]:
    """Return the public keys of a tenant's seals by their ids, 32 bytes each."""
    return {
        key_id: signing_key(keys, key_id, tenant_id).public_key().public_bytes_raw()
        for key_id in keys.keys
    }


def sign(key: Ed25519PrivateKey, text: str) -> bytes:
    """Return the signature of a statement, 64 bytes."""
    return key.sign(_SIGNED_AS + text.encode())


def is_signed_by(public_key: bytes, text: str, signature: bytes) -> bool:
    """Tell whether the holder of a key signed a statement."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, _SIGNED_AS + text.encode())
    except InvalidSignature:
        return False
    return True

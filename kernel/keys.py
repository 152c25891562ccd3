"""Keys of the service: fingerprints, sealed arguments, lease signatures.

Master keys come from the key file and never reach the database. Every use derives a key of its own
for one tenant and one purpose, so that no value made for one can be replayed as another.
"""

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12
_KEY_BYTES_MIN = 32


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """An HMAC-SHA-256 of something, and the id of the key that made it."""

    key_id: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The service's master keys, oldest first.

    ``current`` makes what is new, the others read what is old.
    """

    current: str
    keys: Mapping[str, bytes] = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse a ring whose current key is missing, or a key that is too short to be one."""
        if self.current not in self.keys:
            raise ValueError(f"The current key {self.current!r} is not in the key ring.")
        if any(len(key) < _KEY_BYTES_MIN for key in self.keys.values()):
            raise ValueError(f"A master key has at least {_KEY_BYTES_MIN} bytes.")

    @property
    def oldest(self) -> str:
        """The id of the first key: what must stay the same for ever is derived from it."""
        return next(iter(self.keys))

    def derive(self, key_id: str, tenant_id: UUID, purpose: str) -> bytes:
        """Return 32 bytes for one tenant and purpose.

        Raises KeyError for a key that is not in the ring.
        """
        info = b"tallystick\0" + purpose.encode() + b"\0" + tenant_id.bytes
        return hmac.digest(self.keys[key_id], info, hashlib.sha256)

    def fingerprint(
        self, tenant_id: UUID, data: bytes, *, key_id: str | None = None
    ) -> Fingerprint:
        """Return the tenant's fingerprint of ``data`` under one key.

        That is the current one if none is named.
        """
        key_id = key_id or self.current
        key = self.derive(key_id, tenant_id, "fingerprint")
        return Fingerprint(key_id, hmac.digest(key, data, hashlib.sha256))

    def identity(self, tenant_id: UUID, data: bytes) -> str:
        """Return 64 hex digits that name ``data`` within the tenant, whatever key is current."""
        key = self.derive(self.oldest, tenant_id, "identity")
        return hmac.digest(key, data, hashlib.sha256).hex()

    def seal(self, tenant_id: UUID, data: bytes, *, bound_to: str) -> tuple[str, bytes]:
        """Encrypt ``data`` (AES-256-GCM); it opens only for the same tenant and ``bound_to``."""
        nonce = os.urandom(_NONCE_BYTES)
        cipher = AESGCM(self.derive(self.current, tenant_id, "seal"))
        return self.current, nonce + cipher.encrypt(nonce, data, bound_to.encode())

    def unseal(self, tenant_id: UUID, key_id: str, sealed: bytes, *, bound_to: str) -> bytes:
        """Open what :meth:`seal` made.

        Raises ``cryptography.exceptions.InvalidTag`` on any change.
        """
        cipher = AESGCM(self.derive(key_id, tenant_id, "seal"))
        return cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound_to.encode())

    def check_value(self, key_id: str) -> bytes:
        """Return what the database keeps to recognise a key by, and learns nothing from."""
        return hmac.digest(self.keys[key_id], b"tallystick\0check", hashlib.sha256)

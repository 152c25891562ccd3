"""What a publisher signs, and how it is verified: Ed25519 (RFC 8032) over a contract's digest.

A signature speaks of a document and of nothing else: no tenant, no time. The `cryptography` library
is loaded on first use, and comes with `tallystick[signing]`.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from tallystick.edwards import has_prime_order
from tallystick.errors import InvalidRequest

PUBLIC_KEY_PATTERN: Final = "^[0-9a-f]{64}$"
SIGNATURE_PATTERN: Final = "^[0-9a-f]{128}$"
KEY_ID_PATTERN: Final = "^ed25519:[0-9a-f]{16}$"

# A key that signs other things too can be given none of them that is a contract's statement.
_CONTEXT: Final = b"tallystick-contract-v1\n"


def statement(contract_digest: str) -> bytes:
    """Return the bytes that are signed for a contract; its digest is `sha256:` and 64 hex digits.

    The digest is that of the whole document, with name and version, so that a signature cannot be
    taken over to another.
    """
    return _CONTEXT + contract_digest.encode("ascii")


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A publisher's public key: 32 bytes. Built by `parse`, which refuses an unsound one."""

    encoded: bytes

    @classmethod
    def parse(cls, text: str) -> "PublicKey":
        """Read 64 hexadecimal digits, in lower case.

        Raises:
            InvalidRequest: The text has another form, or no key pair has such a public key.
        """
        if not re.fullmatch(PUBLIC_KEY_PATTERN, text):
            raise InvalidRequest("An Ed25519 public key is written in 64 hexadecimal digits.")
        encoded = bytes.fromhex(text)
        if not has_prime_order(encoded):
            raise InvalidRequest("No Ed25519 key pair has this public key.")
        return cls(encoded)

    @property
    def id(self) -> str:
        """The short name of the key: `ed25519:` and 16 hexadecimal digits of its SHA-256."""
        return f"ed25519:{hashlib.sha256(self.encoded).hexdigest()[:16]}"

    def verifies(self, contract_digest: str, signature: bytes) -> bool:
        """Tell whether a signature is one of this contract, made with this key."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.encoded).verify(
                signature, statement(contract_digest)
            )
        except InvalidSignature:
            return False
        return True

    def __str__(self) -> str:
        return self.encoded.hex()

"""Publishers that sign, and forgers: what they make is that of the curve, not of our code."""

from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tallystick.signing import PublicKey, statement
from tallystick.tool_contract import Contract

ORDER = 2**252 + 27742317777372353535851937790883648493

# Every point of small order, in every encoding (the base point's multiples have none of them).
SMALL_ORDER = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
]
UNIVERSAL = "01" + "00" * 63
"""With a key that is the neutral point, a signature of every message there is."""


@dataclass(frozen=True)
class Signer:
    """A publisher with a key pair of its own, always the same for one seed."""

    seed: int

    @property
    def private_key(self) -> Ed25519PrivateKey:
        """Return the private key."""
        return Ed25519PrivateKey.from_private_bytes(bytes([self.seed]) * 32)

    @property
    def public_key(self) -> str:
        """Return the public key as it is written."""
        return self.private_key.public_key().public_bytes_raw().hex()

    @property
    def key_id(self) -> str:
        """Return the key's id."""
        return PublicKey.parse(self.public_key).id

    def signature(self, document: dict[str, Any]) -> bytes:
        """Sign a contract's document."""
        return self.private_key.sign(statement(Contract.parse(document).contract_digest))

    def sign(self, document: dict[str, Any]) -> dict[str, str]:
        """Sign a contract's document, as the wire has it."""
        return {"key_id": self.key_id, "signature": self.signature(document).hex()}


def malleated(signature: bytes) -> bytes:
    """Return another form of a signature, with the same point and S + L (RFC 8032, 5.1.7)."""
    scalar = int.from_bytes(signature[32:], "little") + ORDER
    return signature[:32] + scalar.to_bytes(32, "little")

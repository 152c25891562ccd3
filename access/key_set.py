"""An issuer's public keys (RFC 7517), each with the algorithms that it may verify. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import jwt

from tallystick.canonical import Json

_KEYS_MAX: Final = 100
_KEY_ID_CHARS_MAX: Final = 256

# Asymmetric ones alone: whoever can verify with a shared secret can also sign with it.
_ALGORITHMS: Final[Mapping[tuple[Json, Json], frozenset[str]]] = {
    ("RSA", None): frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    ("EC", "P-256"): frozenset({"ES256"}),
    ("EC", "P-384"): frozenset({"ES384"}),
    ("EC", "P-521"): frozenset({"ES512"}),
    ("OKP", "Ed25519"): frozenset({"EdDSA"}),
}
# The public part alone, should an issuer publish more by mistake.
_MEMBERS: Final = ("kty", "crv", "x", "y", "n", "e")


@dataclass(frozen=True, slots=True)
class KeySet:
    """Public keys by key id and algorithm: a token chooses among them, and brings none."""

    keys: Mapping[tuple[str, str], jwt.PyJWK]

    @classmethod
    def empty(cls) -> Self:
        """Return a set that verifies nothing."""
        return cls({})

    @classmethod
    def parse(cls, document: Json) -> Self:
        """Read a key set. A key that cannot verify signatures is passed over (RFC 7517, 5).

        Raises ValueError for what is no key set.
        """
        listed = document.get("keys") if isinstance(document, dict) else None
        if not isinstance(listed, list) or len(listed) > _KEYS_MAX:
            raise ValueError("This is no key set.")
        keys: dict[tuple[str, str], jwt.PyJWK] = {}
        for entry in listed:
            for key_id, key in _usable(entry):
                keys.setdefault((key_id, key.algorithm_name), key)
        return cls(keys)

    def has(self, key_id: str) -> bool:
        """Tell whether there is a key of this id, whatever it verifies."""
        return any(known == key_id for known, _ in self.keys)

    def find(self, key_id: str, algorithm: str) -> jwt.PyJWK | None:
        """Return the key that verifies tokens of this key id and algorithm."""
        return self.keys.get((key_id, algorithm))


def _usable(entry: Json) -> Iterator[tuple[str, jwt.PyJWK]]:
    if not isinstance(entry, dict):
        return
    key_id, use, operations = entry.get("kid"), entry.get("use", "sig"), entry.get("key_ops")
    if not isinstance(key_id, str) or not 0 < len(key_id) <= _KEY_ID_CHARS_MAX or use != "sig":
        return
    if operations is not None and not (isinstance(operations, list) and "verify" in operations):
        return
    kind, curve, declared = entry.get("kty"), entry.get("crv"), entry.get("alg")
    if not isinstance(kind, str) or not isinstance(curve, str | None):
        return
    public: dict[str, Any] = {name: entry[name] for name in _MEMBERS if name in entry}
    for algorithm in sorted(_ALGORITHMS.get((kind, curve), ())):
        if declared in (None, algorithm):
            try:
                yield key_id, jwt.PyJWK(public, algorithm)
            except jwt.PyJWTError:
                return

"""What makes two calls the same effect, and what they are compared by. Pure.

The service mints every id. What a caller sends names an effect within the caller's own run and
tenant; it is never a key by itself, so that no answer tells whether another tenant's id exists.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self
from uuid import UUID

from kernel.keys import Fingerprint, KeyRing
from tallystick.canonical import Json, canonical_bytes
from tallystick.errors import NotFound
from tallystick.tool_contract import Contract

NUMBER_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, order=True)
class EffectId:
    """An effect: a run and a number within it, written ``<run uuid>.<number>``."""

    run_id: UUID
    number: int

    def __str__(self) -> str:
        """Write the id as the wire has it."""
        return f"{self.run_id}.{self.number}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an id. Raises NotFound: a text that is no id names no effect."""
        run, _, number = text.partition(".")
        try:
            effect_id = cls(UUID(run), int(number))
        except ValueError as fault:
            raise NotFound("There is no such effect.") from fault
        if str(effect_id) != text or not 0 < effect_id.number <= NUMBER_MAX:
            raise NotFound("There is no such effect.")
        return effect_id


def identity(
    contract: Contract,
    arguments: Mapping[str, Json],
    *,
    effect: str | None,
    occurrence: int,
    tenant_id: UUID,
    keys: KeyRing,
) -> str:
    """Return what names an effect within its run.

    That is the caller's effect string. Without one it is the tool, the arguments that the contract
    names as identity, and the occurrence. A request id of a transport or of a model is never part
    of it: the same call sent again is the same effect.
    """
    if effect is not None:
        return f"effect:{effect}"
    call: dict[str, Json] = {
        "tool": contract.name,
        "arguments": identifying(contract, arguments),
        "occurrence": occurrence,
    }
    return f"call:{contract.name}:{occurrence}:{keys.identity(tenant_id, canonical_bytes(call))}"


def number_of(name: str) -> int:
    """Return an effect's number in its run.

    It is 63 bits of the SHA-256 of its identity, and never zero.
    """
    return max(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1, 1)


def identifying(contract: Contract, arguments: Mapping[str, Json]) -> dict[str, Json]:
    """Return the arguments that identify an effect: all of them, unless the contract names some."""
    fields = contract.identity_fields
    return {name: value for name, value in arguments.items() if fields is None or name in fields}


def request_fingerprint(
    contract: Contract, arguments: Mapping[str, Json], *, tenant_id: UUID, keys: KeyRing
) -> Fingerprint:
    """Return the fingerprint of a request as it was sent, bound to its version."""
    request: dict[str, Json] = {
        "tool": contract.name,
        "version": str(contract.version),
        "arguments": dict(arguments),
    }
    return keys.fingerprint(tenant_id, canonical_bytes(request))


def operation_fingerprint(
    contract: Contract,
    arguments: Mapping[str, Json],
    *,
    tenant_id: UUID,
    keys: KeyRing,
    key_id: str | None = None,
) -> Fingerprint:
    """Return the fingerprint of the operation.

    It is equal across the versions of a tool that mean the same.
    """
    operation: dict[str, Json] = {
        "tool": contract.name,
        "arguments": identifying(contract, arguments),
    }
    return keys.fingerprint(tenant_id, canonical_bytes(operation), key_id=key_id)


def provider_key(tenant_id: UUID, effect_id: EffectId) -> str:
    """Return the idempotency key for the provider: the same for every attempt of an effect."""
    name = f"tallystick\0provider-key\0{tenant_id}\0{effect_id}"
    return f"ts-{hashlib.sha256(name.encode()).hexdigest()[:40]}"


def with_key(arguments: Mapping[str, Json], pointer: str, key: str) -> dict[str, Json]:
    """Return the arguments with the provider's key at a JSON Pointer (RFC 6901) within them."""
    name, _, rest = pointer.removeprefix("/").partition("/")
    name = name.replace("~1", "/").replace("~0", "~")
    if not rest:
        return {**arguments, name: key}
    inner = arguments.get(name)
    return {**arguments, name: with_key(inner if isinstance(inner, dict) else {}, f"/{rest}", key)}

"""Publishers' keys and signatures over HTTP: routes and wire models, nothing else."""

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import Field

from kernel.http import WAS_THERE, ScopeDep, StrictRoute, Wire, allow
from kernel.roles import Permission
from kernel.scope import Connection
from kernel.wire import time_text
from registry import service, service_keys
from registry.entry import Entry
from registry.signing import Presented, PublisherKey, Signature, SignaturePolicy
from registry.store import RegistryStore
from registry.store_keys import KeyStore
from tallystick.signing import KEY_ID_PATTERN, PUBLIC_KEY_PATTERN, SIGNATURE_PATTERN

router = APIRouter(prefix="/v1", route_class=StrictRoute, tags=["registry"])


class KeyBody(Wire):
    """A public key to trust, in hexadecimal digits, and whose it is."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    public_key: Annotated[str, Field(pattern=PUBLIC_KEY_PATTERN)]


class RevocationBody(Wire):
    """Why a key is trusted no more."""

    reason: Annotated[str, Field(min_length=1, max_length=2000)]


class PolicyBody(Wire):
    """Whether a contract has to be signed, and that versions without a signature may stop."""

    required: bool
    confirm: bool = False


class SignatureBody(Wire):
    """An Ed25519 signature of a contract's digest, in hexadecimal digits."""

    key_id: Annotated[str, Field(pattern=KEY_ID_PATTERN)]
    signature: Annotated[str, Field(pattern=SIGNATURE_PATTERN)]

    def presented(self) -> Presented:
        """Return the signature as a value."""
        return Presented(self.key_id, bytes.fromhex(self.signature))


def signatures_shown(signatures: Iterable[Signature]) -> dict[str, Any]:
    """Render the signatures of one contract, also those that count no more, and since when."""
    return {
        "signatures": [
            {
                "key_id": one.key_id,
                "name": one.name,
                "is_valid": one.revoked_at is None,
                "signature": one.signature.hex(),
                "signed_at": time_text(one.signed_at),
                "signed_by": one.signed_by,
                "revoked_at": time_text(one.revoked_at),
            }
            for one in signatures
        ]
    }


def _key_shown(key: PublisherKey) -> dict[str, Any]:
    return {
        "key_id": key.key_id,
        "name": key.name,
        "public_key": key.public_key.hex(),
        "added_at": time_text(key.added_at),
        "added_by": key.added_by,
        "revoked_at": time_text(key.revoked_at),
        "revoked_by": key.revoked_by,
        "reason": key.reason,
    }


def _policy_shown(policy: SignaturePolicy) -> dict[str, Any]:
    return {
        "required": policy.required_at is not None,
        "required_at": time_text(policy.required_at),
        "required_by": policy.required_by,
        "unsigned": list(policy.unsigned),
    }


@router.post(
    "/keys",
    status_code=201,
    responses=WAS_THERE,
    dependencies=[allow(Permission.MANAGE_KEYS)],
)
async def add_key(body: KeyBody, scope: ScopeDep, response: Response) -> dict[str, Any]:
    """Trust a publisher's public key. 200 when it is trusted already, under this name."""
    key, is_new = await scope.transact(
        lambda connection: service_keys.add_key(
            RegistryStore(connection),
            KeyStore(connection),
            scope.caller,
            body.name,
            body.public_key,
        )
    )
    response.status_code = 201 if is_new else 200
    return _key_shown(key)


@router.get("/keys", dependencies=[allow(Permission.READ_CONTRACTS)])
async def keys(scope: ScopeDep) -> dict[str, Any]:
    """List the publishers' keys, also those that were revoked."""
    found = await scope.transact(lambda connection: KeyStore(connection).keys())
    return {"keys": [_key_shown(key) for key in found]}


@router.post("/keys/{key_id}/revoke", dependencies=[allow(Permission.MANAGE_KEYS)])
async def revoke_key(key_id: str, body: RevocationBody, scope: ScopeDep) -> dict[str, Any]:
    """Stop to trust a key, for ever.

    Its signatures stay, and count no more. Where signatures are required, the versions that have no
    other one stop at once; `unsigned` tells them.
    """
    key, policy = await scope.transact(
        lambda connection: service_keys.revoke_key(
            RegistryStore(connection), KeyStore(connection), scope.caller, key_id, body.reason
        )
    )
    return _key_shown(key) | {
        "required": policy.required_at is not None,
        "unsigned": list(policy.unsigned),
    }


@router.get("/signature-policy", dependencies=[allow(Permission.READ_CONTRACTS)])
async def policy(scope: ScopeDep) -> dict[str, Any]:
    """Tell whether signatures are required, and which versions have none that counts."""
    found = await scope.transact(
        lambda connection: service_keys.policy(RegistryStore(connection), KeyStore(connection))
    )
    return _policy_shown(found)


@router.post("/signature-policy", dependencies=[allow(Permission.MANAGE_KEYS)])
async def set_policy(body: PolicyBody, scope: ScopeDep) -> dict[str, Any]:
    """Require signatures, or require them no more.

    Refused with the published versions that would stop for want of one, unless `confirm` is given.
    """
    found = await scope.transact(
        lambda connection: service_keys.set_policy(
            RegistryStore(connection),
            KeyStore(connection),
            scope.caller,
            required=body.required,
            confirmed=body.confirm,
        )
    )
    return _policy_shown(found)


@router.post(
    "/contracts/{name}/{version}/signatures",
    status_code=201,
    responses=WAS_THERE,
    dependencies=[allow(Permission.PUBLISH)],
)
async def sign(
    name: str, version: str, body: SignatureBody, scope: ScopeDep, response: Response
) -> dict[str, Any]:
    """Add a signature to a published version. 200 when it has one by this key already."""

    async def work(connection: Connection) -> tuple[Entry, bool, list[Signature]]:
        store, keys = RegistryStore(connection), KeyStore(connection)
        entry = await service.find(store, name, version)
        given = [body.presented()]
        await service_keys.verify(keys, entry.contract, given)
        is_new = await service_keys.keep(store, keys, scope.caller, entry, given)
        return entry, is_new, (await keys.signatures([entry.contract_id]))[entry.contract_id]

    entry, is_new, signatures = await scope.transact(work)
    response.status_code = 201 if is_new else 200
    return {
        "name": entry.contract.name,
        "version": str(entry.contract.version),
        "contract_digest": entry.contract.contract_digest,
        **signatures_shown(signatures),
    }

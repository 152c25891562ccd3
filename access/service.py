"""What one can ask of a tenant's tokens: one use case a function."""

from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from access.store import AccessStore
from access.token import ApiToken, Draft, TokenState, new_token
from kernel.roles import Role
from kernel.scope import Caller
from kernel.wire import time_text
from tallystick.errors import NotFound, TokenConflict


@dataclass(frozen=True, slots=True)
class Issued:
    """A new token: what is shown of it for ever, and itself, which is shown once."""

    token: ApiToken
    secret: str = field(repr=False)


async def create(store: AccessStore, caller: Caller, draft: Draft) -> Issued:
    """Make a token of the caller's tenant."""
    secret = new_token()
    made = await store.add(secret, draft, by=caller.principal)
    await store.record(
        "token_created",
        made.token_id,
        actor=caller.principal,
        facts={
            "name": made.name,
            "principal": made.principal,
            "roles": [str(role) for role in sorted(made.roles)],
            "expires_at": time_text(made.expires_at),
            "replaces": str(made.replaces) if made.replaces else None,
        },
    )
    return Issued(made, secret)


async def revoke(store: AccessStore, caller: Caller, token_id: UUID) -> ApiToken:
    """End a token; one that was revoked before stays so.

    Raises:
        NotFound: The tenant has no such token.
        TokenConflict: It is the last one in force that can administer the tenant.
    """
    # All of them are held, so that two that revoke each other do not both find the other in force.
    administrators = await store.lock_administrators()
    token = await _found(store, token_id)
    if token.state is TokenState.REVOKED:
        return token
    if [one.token_id for one in administrators] == [token_id]:
        raise TokenConflict(
            f"{token.name} is the tenant's last admin token in force. Make another one first."
        )
    await store.revoke(token_id)
    await store.record(
        "token_revoked", token_id, actor=caller.principal, facts={"name": token.name}
    )
    return await _found(store, token_id)


async def rotate(
    store: AccessStore, caller: Caller, token_id: UUID, *, overlap: timedelta
) -> Issued:
    """Make a token's successor for the same principal and roles, and let the old one expire.

    The successor lives as long from now on as the old one was to live when it was made.

    Raises:
        NotFound: The tenant has no such token.
        TokenConflict: The token is not in force, or was rotated before.
    """
    await store.lock(token_id)
    old = await _found(store, token_id)
    if old.state is not TokenState.ACTIVE:
        raise TokenConflict(f"{old.name} is {old.state}. Make a new token instead.")
    successor = await store.successor(token_id)
    if successor is not None:
        raise TokenConflict(
            f"{old.name} was rotated already. Rotate its successor {successor.token_id} instead."
        )
    lifetime = old.expires_at - old.created_at if old.expires_at else None
    draft = Draft(old.name, old.principal, old.roles, lifetime, replaces=token_id)
    issued = await create(store, caller, draft)
    await store.expire(token_id, overlap)
    return issued


async def _found(store: AccessStore, token_id: UUID) -> ApiToken:
    token = await store.token(token_id)
    if token is None:
        raise NotFound(f"There is no token {token_id}.")
    return token


def draft_of(
    name: str, principal: str | None, roles: list[Role], lifetime_seconds: float | None
) -> Draft:
    """Return a token to be made: it speaks for a principal of its own name if none is said."""
    lifetime = timedelta(seconds=lifetime_seconds) if lifetime_seconds is not None else None
    return Draft(name, principal or name, frozenset(roles), lifetime)

"""Turns what a request presents into who asks."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from access.oidc import Issuer
from access.store import AccessStore
from access.token import Known, bearer_token, is_assertion, token_hash, unknown
from kernel.scope import Caller, Connection, Transact
from tallystick.errors import Forbidden

BELIEF_SECONDS: Final = 5.0
_TOKENS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Belief:
    caller: Caller
    until: float
    token_id: UUID | None


class Authenticator:
    """Turns a bearer token into a caller. What a token said is believed for a few seconds."""

    def __init__(
        self,
        transact: Transact,
        issuer: Issuer | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the way to the database, the issuer if one is trusted, and a clock in seconds."""
        self._transact = transact
        self._issuer = issuer
        self._clock = clock
        self._beliefs: dict[bytes, _Belief] = {}
        self._forgotten = 0

    async def caller(self, authorization: str | None) -> Caller:
        """Return who asks.

        Raises:
            Unauthenticated: With the same words whatever is wrong with a token.
            Forbidden: The issuer's token gives no role that is known here.
            RegistryUnavailable: The database or the issuer is needed and cannot be asked.
        """
        token = bearer_token(authorization)
        presented = token_hash(token)
        held = self._beliefs.get(presented)
        if held is not None and self._clock() < held.until:
            return held.caller
        forgotten = self._forgotten
        if self._issuer is not None and is_assertion(token):
            belief = await self._by_issuer(token, self._issuer)
        else:
            belief = await self._by_database(token)
        if forgotten == self._forgotten:  # else it may be what was revoked while we asked
            if len(self._beliefs) >= _TOKENS_MAX:
                self._beliefs.clear()
            self._beliefs[presented] = belief
        return belief.caller

    def forget(self, token_id: UUID) -> None:
        """Believe a token no longer: it was revoked, or its expiry has changed."""
        self._forgotten += 1
        self._beliefs = {
            presented: belief
            for presented, belief in self._beliefs.items()
            if belief.token_id != token_id
        }

    async def _by_database(self, token: str) -> _Belief:
        async def ask(connection: Connection) -> Known | None:
            return await AccessStore(connection).authenticate(token)

        asked_at = self._clock()
        known = await self._transact(None, ask)
        if known is None:
            raise unknown()
        if known.is_use_due:
            await self._transact(
                known.tenant_id,
                lambda connection: AccessStore(connection).note_use(known.token_id),
            )
        caller = Caller(known.tenant_id, known.tenant, known.principal, known.roles)
        return _Belief(caller, asked_at + min(BELIEF_SECONDS, known.seconds_left), known.token_id)

    async def _by_issuer(self, token: str, issuer: Issuer) -> _Belief:
        asked_at = self._clock()
        identity = await issuer.identify(token)

        async def ask(connection: Connection) -> UUID | None:
            return await AccessStore(connection).tenant_named(identity.tenant)

        tenant_id = await self._transact(None, ask)
        if tenant_id is None:
            raise unknown()
        if not identity.roles:
            raise Forbidden("The token gives none of the roles that are known here.")
        caller = Caller(tenant_id, identity.tenant, identity.principal, identity.roles)
        return _Belief(caller, asked_at + BELIEF_SECONDS, None)

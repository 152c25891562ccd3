"""The scope of a request: who asks, and the one way to the database.

Only the server commits. A route hands its work to :meth:`Scope.transact` and answers after it, so
that no answer leaves before the commit that it speaks of.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from uuid import UUID

from psycopg import AsyncConnection

from kernel.keys import KeyRing
from kernel.roles import Role

Result = TypeVar("Result")
Connection = AsyncConnection[tuple[Any, ...]]
Work = Callable[[Connection], Awaitable[Result]]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as the token says: never taken from a body."""

    tenant_id: UUID
    tenant: str
    principal: str
    roles: frozenset[Role]


class Transact(Protocol):
    """Runs work in one transaction of a tenant, commits it, and returns its result."""

    async def __call__(self, tenant_id: UUID | None, work: Work[Result]) -> Result:
        """Run ``work``; it may run again after a deadlock or a serialisation failure.

        Raises ``RegistryUnavailable`` when the database cannot be reached or the commit was not
        confirmed as durable: then nothing may be built on it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Scope:
    """One request: its caller, its way to the database, and the keys and limits of the service."""

    caller: Caller
    transaction: Transact = field(repr=False)
    keys: KeyRing = field(repr=False)
    lease_seconds_max: float
    approval_seconds: float

    async def transact(self, work: Work[Result]) -> Result:
        """Run ``work`` in one transaction of the caller's tenant and commit it."""
        return await self.transaction(self.caller.tenant_id, work)

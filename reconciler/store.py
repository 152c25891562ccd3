"""The reconciler's SQL: where there is work.

What is done to an effect, the ledger's store writes.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from kernel.scope import Connection

_TENANTS_MAX = 1000
_CONTRACTS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Due:
    """A contract with an effect in doubt that may be asked about now, in a tenant's ledger."""

    tenant_id: UUID
    tenant: str
    contract_id: UUID


async def tenants_due(connection: Connection) -> list[tuple[UUID, str]]:
    """Return the tenants that have an effect for which time alone decides now."""
    cursor = await connection.execute(
        "SELECT tenant_id, tenant FROM tenants_due(%s)", (_TENANTS_MAX,)
    )
    rows: list[Any] = await cursor.fetchall()
    return [(row[0], row[1]) for row in rows]


async def contracts_due(connection: Connection) -> list[Due]:
    """Return the contracts whose effects may be asked about now, the longest due first."""
    async with connection.cursor(row_factory=class_row(Due)) as cursor:
        await cursor.execute(
            "SELECT tenant_id, tenant, contract_id FROM contracts_due(%s)", (_CONTRACTS_MAX,)
        )
        return await cursor.fetchall()


async def current_timeline(connection: Connection) -> int | None:
    """Return the database's timeline, which counts up when a standby takes over.

    None where the database does not tell.
    """
    cursor = await connection.execute("SELECT current_timeline()")
    row: Any = await cursor.fetchone()
    return row[0]


async def tenants_left_behind(connection: Connection) -> list[tuple[UUID, str]]:
    """Return the tenants that have an effect under way from another timeline. It reads them all."""
    cursor = await connection.execute(
        "SELECT tenant_id, tenant FROM tenants_left_behind(%s)", (_TENANTS_MAX,)
    )
    rows: list[Any] = await cursor.fetchall()
    return [(row[0], row[1]) for row in rows]


async def keep_partitions(connection: Connection, *, months_ahead: int) -> int:
    """Make the partitions of the months to come; returns how many were missing."""
    cursor = await connection.execute("SELECT ensure_partitions(%s)", (months_ahead,))
    row: Any = await cursor.fetchone()
    return row[0]

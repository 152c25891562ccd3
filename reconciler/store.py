"""The reconciler's SQL: where there is work.

What is done to an effect, the ledger's store writes.
"""

from typing import Any
from uuid import UUID

from kernel.scope import Connection

_TENANTS_MAX = 1000


async def tenants_due(connection: Connection) -> list[tuple[UUID, str]]:
    """Return the tenants that have an effect whose time has come."""
    cursor = await connection.execute(
        "SELECT tenant_id, tenant FROM tenants_due(%s)", (_TENANTS_MAX,)
    )
    rows: list[Any] = await cursor.fetchall()
    return [(row[0], row[1]) for row in rows]


async def keep_partitions(connection: Connection, *, months_ahead: int) -> int:
    """Make the partitions of the months to come; returns how many were missing."""
    cursor = await connection.execute("SELECT ensure_partitions(%s)", (months_ahead,))
    row: Any = await cursor.fetchone()
    return row[0]

"""Every SQL statement of the rollout: rows in, values out."""

from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from kernel.scope import Connection
from rollout.retirement import References


class RolloutStore:
    """The state of versions on their way out, within one transaction of one tenant."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def close(self, contract_id: UUID, *, by: str, reason: str) -> bool:
        """Put up the closing mark that new plans read and refuse; False when it stands already.

        It is a row of its own: changing the state row would wait behind every dispatch that shares
        it.
        """
        made = await self._connection.execute(
            """
            INSERT INTO contract_closing (contract_id, tenant_id, closed_by, reason)
            VALUES (%s, current_tenant(), %s, %s)
                ON CONFLICT DO NOTHING
            """,
            (contract_id, by, reason),
        )
        return made.rowcount == 1

    async def reopen(self, contract_id: UUID) -> bool:
        """Take the closing mark down; False when there is none."""
        gone = await self._connection.execute(
            "DELETE FROM contract_closing WHERE contract_id = %s", (contract_id,)
        )
        return gone.rowcount == 1

    async def lock(self, contract_id: UUID) -> None:
        """Wait for every dispatch that shares the state row.

        Further ones are kept out until the transaction ends.
        """
        await self._connection.execute(
            "SELECT FROM contract_state WHERE contract_id = %s FOR UPDATE", (contract_id,)
        )

    async def references(self, contract_id: UUID) -> list[References]:
        """Count what refers to a version, in every tenant.

        A new statement, so it sees what was awaited.
        """
        async with self._connection.cursor(row_factory=class_row(References)) as cursor:
            await cursor.execute(
                "SELECT kind, state, many, earliest FROM contract_references(%s)", (contract_id,)
            )
            return await cursor.fetchall()

    async def closing(self, contract_id: UUID) -> tuple[datetime, datetime] | None:
        """Return when a version was closed and the database's time now, or None for an open one."""
        cursor = await self._connection.execute(
            "SELECT closed_at, clock_timestamp() FROM contract_closing WHERE contract_id = %s",
            (contract_id,),
        )
        row: Any = await cursor.fetchone()
        return (row[0], row[1]) if row else None

    async def retire(self, contract_id: UUID) -> None:
        """Write that a version is retired: its last state."""
        await self._connection.execute(
            """
            UPDATE contract_state
               SET lifecycle = 'RETIRED', changed_at = clock_timestamp()
             WHERE contract_id = %s
            """,
            (contract_id,),
        )

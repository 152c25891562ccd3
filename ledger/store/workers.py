"""The worker processes that were heard of: one row a process, one heartbeat a process."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from kernel.scope import Connection


@dataclass(frozen=True, slots=True)
class WorkerSession:
    """A worker process: its own id, what it calls itself, and when it was heard."""

    worker_id: UUID
    label: str
    started_at: datetime
    heartbeat_at: datetime


async def heartbeat(connection: Connection, worker_id: UUID, label: str) -> datetime:
    """Note that a worker process is alive; returns the database's time."""
    cursor = await connection.execute(
        """
        INSERT INTO worker_session (tenant_id, worker_id, label)
        VALUES (current_tenant(), %s, %s)
            ON CONFLICT (tenant_id, worker_id) DO UPDATE
           SET heartbeat_at = clock_timestamp(), label = excluded.label
        RETURNING heartbeat_at
        """,
        (worker_id, label),
    )
    row = await cursor.fetchone()
    assert row is not None
    return row[0]


async def workers(connection: Connection) -> list[WorkerSession]:
    """Return the worker processes that were heard of, the latest heard first."""
    async with connection.cursor(row_factory=class_row(WorkerSession)) as cursor:
        await cursor.execute(
            """
            SELECT worker_id, label, started_at, heartbeat_at
              FROM worker_session
             WHERE tenant_id = current_tenant()
             ORDER BY heartbeat_at DESC
             LIMIT 1000
            """
        )
        return await cursor.fetchall()

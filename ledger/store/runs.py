"""The trace of a run: its effects and what its gates refused, in the order in which they came."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from kernel.scope import Connection


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One line of a trace: an effect, by its number, or else a refusal."""

    at: datetime
    kind: str
    key: str
    number: int | None
    tool: str
    version: str
    gate: str | None
    code: str | None
    true_code: str | None
    message: str | None
    rule: str | None
    policy: str | None
    policy_revision: int | None
    principal: str | None


@dataclass(frozen=True, slots=True)
class Trace:
    """Which part of a run's trace to read: what follows an entry, or from the beginning."""

    run_id: UUID
    after: tuple[datetime, str, str] | None = None
    limit: int = 50


class TraceStore:
    """The traces of runs, within one transaction of one tenant."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def read(self, asked: Trace) -> list[TraceEntry]:
        """Return a part of a run's trace, oldest first."""
        at, kind, key = asked.after or (None, None, None)
        values: dict[str, Any] = {
            "run_id": asked.run_id,
            "at": at,
            "kind": kind,
            "key": key,
            "limit": asked.limit,
        }
        async with self._connection.cursor(row_factory=class_row(TraceEntry)) as cursor:
            await cursor.execute(
                """
                SELECT at, kind, key, number, tool, version, gate, code, true_code, message, rule,
                       policy, policy_revision, principal
                  FROM (SELECT effect.planned_at AS at, 'effect' AS kind,
                               effect.number::text AS key, effect.number, effect.tool,
                               contract.version, NULL AS gate,
                               NULL AS code, NULL AS true_code, NULL AS message, NULL AS rule,
                               effect.policy, effect.policy_revision, effect.principal
                          FROM effect
                          JOIN contract USING (contract_id)
                         WHERE run_id = %(run_id)s
                         UNION ALL
                        SELECT refused_at, 'refusal', refusal_id::text, number, tool, version, gate,
                               code, true_code, message, rule, policy, policy_revision, principal
                          FROM gate_refusal
                         WHERE run_id = %(run_id)s) AS entry
                 WHERE %(at)s::timestamptz IS NULL
                    OR (at, kind, key) > (%(at)s::timestamptz, %(kind)s::text, %(key)s::text)
                 ORDER BY at, kind, key
                 LIMIT %(limit)s
                """,
                values,
            )
            return await cursor.fetchall()

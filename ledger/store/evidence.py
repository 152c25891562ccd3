"""What was said of effects: how it is kept and read, and who is woken by it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from kernel.ids import new_uuid7
from kernel.scope import Connection
from ledger.effect import Evidence
from ledger.identity import EffectId
from ledger.listing import Found, KnownRun
from ledger.store.rows import key_of


class EvidenceRows:
    """The evidence on effects, within one transaction of one tenant."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def evidence(self, effect_id: EffectId) -> list[Evidence]:
        """Return every answer about an effect, oldest first."""
        async with self._connection.cursor(row_factory=class_row(Evidence)) as cursor:
            await cursor.execute(
                """
                SELECT evidence_id, fence, source, answer, provider_reference, observed_at,
                received_at, detail
                  FROM effect_evidence
                 WHERE run_id = %s AND number = %s
                 ORDER BY received_at, evidence_id
                """,
                key_of(effect_id),
            )
            return await cursor.fetchall()

    async def keep(
        self,
        effect_id: EffectId,
        *,
        fence: int,
        source: str,
        answer: str,
        observed_at: datetime,
        detail: str,
        provider_reference: str | None,
        evidence_id: UUID | None = None,
    ) -> UUID:
        """Keep one answer about an effect; returns its id."""
        evidence_id = evidence_id or new_uuid7()
        await self._connection.execute(
            """
            INSERT INTO effect_evidence (
                run_id, number, evidence_id, tenant_id, fence, source, answer, provider_reference,
                observed_at, received_at, detail)
            VALUES (%s, %s, %s, current_tenant(), %s, %s, %s, %s, %s, clock_timestamp(), %s)
            """,
            (
                *key_of(effect_id),
                evidence_id,
                fence,
                source,
                answer,
                provider_reference,
                observed_at,
                detail,
            ),
        )
        return evidence_id

    async def wake(self, effect_id: EffectId) -> None:
        """Let the reconciler look at an UNKNOWN effect at once."""
        await self._connection.execute(
            """
            UPDATE effect_open
               SET due_at = least(due_at, clock_timestamp())
             WHERE run_id = %s AND number = %s AND state = 'UNKNOWN'
            """,
            key_of(effect_id),
        )

    async def hold_closed(self, effect_id: EffectId) -> None:
        """Keep others from opening a closed effect until the transaction ends.

        It has no row of its own that could be locked.
        """
        await self._connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
            (f"tallystick.effect {effect_id}",),
        )

    async def known_run(self, run_id: UUID, tool: str) -> KnownRun:
        """Return what is known of the run of an effect that is not recorded.

        Whether another tenant has the run is for the ledger alone to know.
        """
        cursor = await self._connection.execute(
            """
            SELECT run_standing(%(run_id)s),
                   (SELECT run FROM effect WHERE run_id = %(run_id)s AND run IS NOT NULL LIMIT 1),
                   (SELECT contract_id FROM run_tool WHERE run_id = %(run_id)s AND tool = %(tool)s)
            """,
            {"run_id": run_id, "tool": tool},
        )
        row: Any = await cursor.fetchone()
        return KnownRun(Found(row[0]) if row[0] else None, row[1], row[2])

    async def orphans_waiting(self, contract_ids: Sequence[UUID], most: int) -> int:
        """Return how many orphans of some versions wait for a person, as far as ``most``."""
        cursor = await self._connection.execute(
            """
            SELECT count(*)
              FROM (SELECT
                      FROM effect_open AS open
                      JOIN effect USING (run_id, number)
                     WHERE open.contract_id = ANY (%s) AND effect.origin = 'listing'
                     LIMIT %s) AS orphan
            """,
            (list(contract_ids), most),
        )
        row: Any = await cursor.fetchone()
        return row[0]


@dataclass(frozen=True, slots=True)
class Standing:
    """How many effects are in a state, and since when the oldest of them was in doubt."""

    state: str
    many: int
    unknown_since: datetime | None


async def standings(connection: Connection) -> list[Standing]:
    """Return how many effects are open, of all tenants, by their state."""
    async with connection.cursor(row_factory=class_row(Standing)) as cursor:
        await cursor.execute("SELECT state, many, unknown_since FROM effects_open()")
        return await cursor.fetchall()

"""What is quarantined, what people said of it, and what took its place."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from psycopg.rows import dict_row

from kernel.scope import Connection
from ledger.effect import Event
from ledger.identity import EffectId
from ledger.quarantine import Resolution, Status, Word
from ledger.state import State
from ledger.store.rows import key_of

_WORDS: Final[LiteralString] = """
    SELECT step, fence, from_status, to_status, to_state, principal, proposed_by, reason, evidence,
           at
      FROM resolution_event
     WHERE run_id = %s AND number = %s
     ORDER BY step
"""


@dataclass(frozen=True, slots=True)
class QuarantineSearch:
    """Which quarantined effects to list, the longest quarantined first."""

    tool: str | None = None
    version: str | None = None
    after: EffectId | None = None
    limit: int = 50


class QuarantineStore:
    """What is quarantined, within one transaction of one tenant."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def search(self, search: QuarantineSearch) -> list[EffectId]:
        """Return the quarantined effects that match, the longest quarantined first."""
        cursor = await self._connection.execute(
            """
            SELECT open.run_id, open.number
              FROM effect_open AS open
              JOIN effect USING (run_id, number)
              JOIN contract ON contract.contract_id = open.contract_id
              JOIN event ON event.run_id = open.run_id AND event.number = open.number
                        AND event.fence = open.fence
             WHERE open.tenant_id = current_tenant() AND open.state = 'QUARANTINED'
               AND (%(tool)s::text IS NULL OR effect.tool = %(tool)s)
               AND (%(version)s::text IS NULL OR contract.version = %(version)s)
               AND (%(run_id)s::uuid IS NULL
                    OR (event.at, open.run_id, open.number) >
                       (SELECT at, run_id, number
                          FROM event
                         WHERE run_id = %(run_id)s AND number = %(number)s
                           AND to_state = 'QUARANTINED'
                         ORDER BY fence DESC
                         LIMIT 1))
             ORDER BY event.at, open.run_id, open.number
             LIMIT %(limit)s
            """,
            {
                "tool": search.tool,
                "version": search.version,
                "run_id": search.after.run_id if search.after else None,
                "number": search.after.number if search.after else None,
                "limit": search.limit,
            },
        )
        rows: list[Any] = await cursor.fetchall()
        return [EffectId(run_id, number) for run_id, number in rows]

    async def since(self, effect_id: EffectId) -> tuple[Event, datetime]:
        """Return the step that quarantined an effect that is, and the database's time."""
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(
                """
                SELECT clock_timestamp() AS read_at, fence, transition, from_state, to_state,
                       attempt, actor, reason, at
                  FROM event
                 WHERE run_id = %s AND number = %s AND to_state = 'QUARANTINED'
                 ORDER BY fence DESC
                 LIMIT 1
                """,
                key_of(effect_id),
            )
            row = await cursor.fetchone()
        assert row is not None, "a quarantined effect has the step that quarantined it"
        read_at = row.pop("read_at")
        return Event(**row), read_at

    # --- people's words -------------------------------------------------------------------------

    async def words(self, effect_id: EffectId) -> list[Word]:
        """Return what people said of an effect, oldest first."""
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_WORDS, key_of(effect_id))
            return [_word_of(row) for row in await cursor.fetchall()]

    async def last_word(self, effect_id: EffectId) -> Word | None:
        """Return the last thing that a person said of an effect, or None."""
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_WORDS + " DESC LIMIT 1", key_of(effect_id))
            row = await cursor.fetchone()
        return _word_of(row) if row else None

    async def append(self, effect_id: EffectId, word: Word) -> None:
        """Write what a person says of an effect, whose open row is held."""
        said = word.resolution
        await self._connection.execute(
            """
            INSERT INTO resolution_event (run_id, number, step, tenant_id, fence, previous_step,
                                          from_status, to_status, to_state, principal, proposed_by,
                                          reason, evidence, at)
            VALUES (%s, %s, %s, current_tenant(), %s, nullif(%s - 1, 0), %s, %s, %s, %s, %s, %s, %s,
                    %s)
            """,
            (
                *key_of(effect_id),
                word.step,
                word.fence,
                word.step,
                word.from_status,
                word.status,
                said.to_state,
                said.by,
                word.proposed_by,
                said.reason,
                said.evidence,
                word.at,
            ),
        )

    # --- what took another one's place ----------------------------------------------------------

    async def successor(self, effect_id: EffectId) -> EffectId | None:
        """Return the effect that took the place of one, or None."""
        cursor = await self._connection.execute(
            "SELECT number FROM effect WHERE run_id = %s AND supersedes = %s", key_of(effect_id)
        )
        row: Any = await cursor.fetchone()
        return EffectId(effect_id.run_id, row[0]) if row else None

    async def was_migrated(self, run_id: UUID, contract_id: UUID) -> bool:
        """Tell whether a person moved work of a run to a version."""
        cursor = await self._connection.execute(
            """
            SELECT EXISTS (SELECT FROM effect
                            WHERE run_id = %s AND supersedes IS NOT NULL AND contract_id = %s)
            """,
            (run_id, contract_id),
        )
        row: Any = await cursor.fetchone()
        return bool(row[0])


def _word_of(row: dict[str, Any]) -> Word:
    said = Resolution(State(row["to_state"]), row["reason"], row["evidence"], row["principal"])
    status = Status(row["to_status"])
    return Word(
        *(row["step"], row["fence"], row["from_status"], status, said, row["proposed_by"]),
        at=row["at"],
    )

"""The approvals: one row of an effect, and an append-only event for each of its steps."""

from dataclasses import dataclass
from typing import Any, Final, LiteralString

from psycopg.rows import class_row, dict_row

from kernel.scope import Connection
from ledger.approval import Approval, ApprovalEvent, ApprovalStep, Status
from ledger.effect import Effect
from ledger.identity import EffectId
from ledger.store.rows import key_of
from tallystick.errors import FenceStale

_COLUMNS: Final[LiteralString] = """
    step, status, question, rule, requested_at, expires_at, decided_by, decided_at, reason
"""
_ONE: Final[LiteralString] = f"SELECT {_COLUMNS} FROM approval WHERE run_id = %s AND number = %s"


@dataclass(frozen=True, slots=True)
class ApprovalSearch:
    """Which approvals to list, the longest waiting first."""

    status: Status | None = None
    after: EffectId | None = None
    limit: int = 50


class ApprovalStore:
    """The approvals' tables, within one transaction of one tenant."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def hold(self, effect_id: EffectId) -> Approval | None:
        """Lock an effect's approval until the transaction ends, and return it, or None.

        Everyone holds the effect's open row before.
        """
        return await self._one(_ONE + " FOR UPDATE", effect_id)

    async def look(self, effect_id: EffectId) -> Approval | None:
        """Read an effect's approval without a lock."""
        return await self._one(_ONE, effect_id)

    async def _one(self, statement: LiteralString, effect_id: EffectId) -> Approval | None:
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(statement, key_of(effect_id))
            row = await cursor.fetchone()
        return _approval_of(row) if row else None

    async def search(self, search: ApprovalSearch) -> dict[EffectId, Approval]:
        """Return the approvals that match, each by its effect, the longest waiting first.

        What has run out counts as expired, whether or not a sweep has come by.
        """
        statement = (
            "SELECT clock_timestamp() AS read_at, run_id, number,"
            + _COLUMNS
            + """
              FROM approval
             WHERE tenant_id = current_tenant()
               AND (%(status)s::text IS NULL
                    OR CASE WHEN status IN ('pending', 'approved')
                                 AND expires_at <= clock_timestamp()
                            THEN 'expired' ELSE status END = %(status)s)
               AND (%(status)s::text IS NULL OR status = %(status)s
                    OR %(status)s = 'expired' AND status IN ('pending', 'approved'))
               AND (%(run_id)s::uuid IS NULL
                    OR (requested_at, run_id, number) >
                       (SELECT requested_at, run_id, number
                          FROM approval
                         WHERE run_id = %(run_id)s AND number = %(number)s))
             ORDER BY requested_at, run_id, number
             LIMIT %(limit)s
            """
        )
        values = {
            "status": search.status,
            "run_id": search.after.run_id if search.after else None,
            "number": search.after.number if search.after else None,
            "limit": search.limit,
        }
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(statement, values)
            rows = await cursor.fetchall()
        found: dict[EffectId, Approval] = {}
        for row in rows:
            read_at, effect_id = row.pop("read_at"), EffectId(row.pop("run_id"), row.pop("number"))
            found[effect_id] = _approval_of(row).at(read_at)
        return found

    async def events(self, effect_id: EffectId) -> list[ApprovalEvent]:
        """Return every step of an approval, oldest first."""
        async with self._connection.cursor(row_factory=class_row(ApprovalEvent)) as cursor:
            await cursor.execute(
                """
                SELECT step, from_status, to_status, actor, reason, at
                  FROM approval_event
                 WHERE run_id = %s AND number = %s
                 ORDER BY step
                """,
                key_of(effect_id),
            )
            return await cursor.fetchall()

    async def begin(self, effect: Effect, step: ApprovalStep) -> None:
        """Write a new approval of an effect, bound to what that was recorded with."""
        after = step.after
        await self._connection.execute(
            """
            INSERT INTO approval (run_id, number, tenant_id, question, rule, contract_digest,
                                  fingerprint, credential_version, policy, policy_revision,
                                  requested_by, requested_at, expires_at)
            VALUES (%s, %s, current_tenant(), %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
            """,
            (
                *key_of(effect.id),
                after.question,
                after.rule,
                effect.contract_digest,
                effect.request_fingerprint,
                effect.credential_version,
                effect.policy,
                effect.policy_revision,
                effect.principal,
                after.requested_at,
                after.expires_at,
            ),
        )
        await self._append(effect.id, step.event)

    async def advance(self, effect_id: EffectId, step: ApprovalStep) -> None:
        """Write one step of an approval. Raises FenceStale when it has moved on."""
        after = step.after
        moved = await self._connection.execute(
            """
            UPDATE approval
               SET step = %s, status = %s, decided_by = %s, decided_at = %s, reason = %s
             WHERE run_id = %s AND number = %s AND step = %s - 1
            """,
            (
                after.step,
                after.status,
                after.decided_by,
                after.decided_at,
                after.reason,
                *key_of(effect_id),
                after.step,
            ),
        )
        if moved.rowcount != 1:
            raise FenceStale(f"The approval of effect {effect_id} has moved on.")
        await self._append(effect_id, step.event)

    async def _append(self, effect_id: EffectId, event: ApprovalEvent) -> None:
        await self._connection.execute(
            """
            INSERT INTO approval_event (run_id, number, step, tenant_id, previous_step,
                                        from_status, to_status, actor, reason, at)
            VALUES (%s, %s, %s, current_tenant(), nullif(%s - 1, -1), %s, %s, %s, %s, %s)
            """,
            (
                *key_of(effect_id),
                event.step,
                event.step,
                event.from_status,
                event.to_status,
                event.actor,
                event.reason,
                event.at,
            ),
        )


def _approval_of(row: dict[str, Any]) -> Approval:
    row["status"] = Status(row["status"])
    return Approval(**row)

"""The effects: how they are read and written, the hot statements pipelined.

A step is written by compare-and-set on the fence, whatever locks are held.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import class_row, dict_row

from kernel.ids import new_uuid7
from ledger.effect import Attempt, Effect, Ending, Event, OpenEffect, Outcome, Step
from ledger.identity import EffectId
from ledger.state import CLOSED, State
from ledger.store.evidence import EvidenceRows
from ledger.store.rows import (
    effect_of,
    effect_values,
    key_of,
    open_of,
    open_values,
    outcome_of,
    outcome_values,
    step_values,
)
from ledger.store.statements import (
    DELETE_OPEN,
    EFFECT_COLUMNS,
    INSERT_ATTEMPT,
    INSERT_EFFECT,
    INSERT_EVENT,
    INSERT_OPEN,
    INSERT_OUTCOME,
    OPEN_COLUMNS,
    UPDATE_OPEN,
)
from tallystick.errors import FenceStale


@dataclass(frozen=True, slots=True)
class Held:
    """An open effect as it was read, and the database's time when it was."""

    open: OpenEffect | None
    read_at: datetime


@dataclass(frozen=True, slots=True)
class Search:
    """Which effects to list, newest first: every field that is given narrows the list."""

    state: State | None = None
    open_only: bool = False
    run: str | None = None
    tool: str | None = None
    after: EffectId | None = None
    limit: int = 50


class LedgerStore(EvidenceRows):
    """The ledger's tables, within one transaction of one tenant."""

    # --- names ----------------------------------------------------------------------------------

    async def run_id(self, run: str) -> UUID:
        """Return the id of the caller's run, making one at its first use."""
        made = await self._name("run", run, new_uuid7(), None)
        return made.run_id

    async def known_run_id(self, run: str) -> UUID | None:
        """Return the id of the caller's run, or None where it was never used."""
        found = await self._read_name("run", run)
        return found.run_id if found else None

    async def effect_of_key(self, key: str, wanted: EffectId) -> EffectId:
        """Return the effect that the caller's key leads to: ``wanted``, if the key was free."""
        return await self._name("key", key, wanted.run_id, wanted.number)

    async def _name(self, kind: str, name: str, run_id: UUID, number: int | None) -> EffectId:
        # A concurrent first use waits here for the other's commit, and then finds its row.
        found = await self._read_name(kind, name)
        if found is None:
            await self._connection.execute(
                """
                INSERT INTO effect_idem (tenant_id, kind, name, run_id, number)
                VALUES (current_tenant(), %s, %s, %s, %s)
                    ON CONFLICT DO NOTHING
                """,
                (kind, name, run_id, number),
            )
            found = await self._read_name(kind, name)
        assert found is not None, "a name that was just written can be read"
        return found

    async def _read_name(self, kind: str, name: str) -> EffectId | None:
        cursor = await self._connection.execute(
            """
            SELECT run_id, coalesce(number, 0)
              FROM effect_idem
             WHERE tenant_id = current_tenant() AND kind = %s AND name = %s
            """,
            (kind, name),
        )
        row: Any = await cursor.fetchone()
        return EffectId(row[0], row[1]) if row else None

    async def tool_version(self, run_id: UUID, tool: str, contract_id: UUID) -> UUID:
        """Return the version of a tool that a run uses.

        It is ``contract_id`` at the tool's first use.
        """
        for _ in range(2):
            cursor = await self._connection.execute(
                "SELECT contract_id FROM run_tool WHERE run_id = %s AND tool = %s", (run_id, tool)
            )
            row: Any = await cursor.fetchone()
            if row is not None:
                return row[0]
            await self._connection.execute(
                """
                INSERT INTO run_tool (run_id, tool, tenant_id, contract_id)
                VALUES (%s, %s, current_tenant(), %s)
                    ON CONFLICT DO NOTHING
                """,
                (run_id, tool, contract_id),
            )
        return contract_id

    # --- reading --------------------------------------------------------------------------------

    async def effect(self, effect_id: EffectId) -> Effect | None:
        """Return what an effect is, or None."""
        found = await self._effects(
            "WHERE effect.run_id = %s AND effect.number = %s", key_of(effect_id)
        )
        return found[0] if found else None

    async def effects(self, effect_ids: Collection[EffectId]) -> list[Effect]:
        """Return what effects are, of those that there are, in the order of their ids."""
        return await self._effects(
            """
              JOIN unnest(%s::uuid[], %s::bigint[]) AS asked (run_id, number)
                ON effect.run_id = asked.run_id AND effect.number = asked.number
             ORDER BY effect.run_id, effect.number
            """,
            ([one.run_id for one in effect_ids], [one.number for one in effect_ids]),
        )

    async def search(self, search: Search) -> list[Effect]:
        """Return the effects that match, newest run first."""
        values = {
            "state": search.state,
            "open_only": search.open_only,
            "is_closed": search.state in CLOSED,
            "run": search.run,
            "tool": search.tool,
            "run_id": search.after.run_id if search.after else None,
            "number": search.after.number if search.after else None,
            "limit": search.limit,
        }
        return await self._effects(
            """
              LEFT JOIN effect_open AS open USING (run_id, number)
             WHERE (%(run)s::text IS NULL OR effect.run = %(run)s)
               AND (%(tool)s::text IS NULL OR effect.tool = %(tool)s)
               AND (NOT %(open_only)s OR open.state IS NOT NULL)
               AND (%(state)s::text IS NULL OR open.state = %(state)s
                    OR %(is_closed)s AND open.state IS NULL AND %(state)s = (
                       SELECT status FROM effect_outcome AS outcome
                        WHERE outcome.run_id = effect.run_id AND outcome.number = effect.number
                        ORDER BY revision DESC LIMIT 1))
               AND (%(run_id)s::uuid IS NULL
                    OR (effect.run_id, effect.number) < (%(run_id)s::uuid, %(number)s::bigint))
             ORDER BY effect.run_id DESC, effect.number DESC
             LIMIT %(limit)s
            """,
            values,
        )

    async def _effects(self, where: LiteralString, values: Any) -> list[Effect]:  # noqa: ANN401 - psycopg's
        statement = (
            "SELECT "
            + EFFECT_COLUMNS
            + " FROM effect JOIN contract ON contract.contract_id = effect.contract_id "
        )
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(statement + where, values)
            rows = await cursor.fetchall()
        return [effect_of(row) for row in rows]

    async def hold(self, effect_id: EffectId) -> Held:
        """Lock an effect's open row until the transaction ends.

        ``open`` is None for a closed effect.
        """
        await self._connection.execute(
            "SELECT FROM effect_open WHERE run_id = %s AND number = %s FOR UPDATE",
            key_of(effect_id),
        )
        return await self.look(effect_id)

    async def look(self, effect_id: EffectId) -> Held:
        """Read an effect's open row without a lock."""
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(
                "SELECT clock_timestamp() AS read_at, "
                + OPEN_COLUMNS
                + """
                  FROM (VALUES (%s::uuid, %s::bigint)) AS asked (run_id, number)
                  LEFT JOIN effect_open AS open USING (run_id, number)
                """,
                key_of(effect_id),
            )
            row = await cursor.fetchone()
        assert row is not None
        read_at = row.pop("read_at")
        return Held(open_of(row) if row["state"] is not None else None, read_at)

    async def wait_until(self, effect_id: EffectId, due_at: datetime) -> None:
        """Let something be done about a planned effect by a time, if nothing happens before."""
        await self._connection.execute(
            """
            UPDATE effect_open
               SET due_at = least(due_at, %s)
             WHERE run_id = %s AND number = %s AND state = 'PLANNED'
            """,
            (due_at, *key_of(effect_id)),
        )

    async def overdue(self, limit: int) -> list[tuple[Effect, Held]]:
        """Lock and return effects for which time alone decides now, the longest due first.

        What another transaction has locked is passed over.
        """
        return await self._locked(
            """
            SELECT open.run_id, open.number
              FROM effect_open AS open
             WHERE open.tenant_id = current_tenant() AND open.due_at <= statement_timestamp()
               AND open.state <> 'UNKNOWN'
             ORDER BY open.due_at
             LIMIT %(limit)s
               FOR UPDATE SKIP LOCKED
            """,
            {"limit": limit},
        )

    async def in_doubt(self, contract_id: UUID, limit: int) -> list[tuple[Effect, Held]]:
        """Lock and return a contract's effects that may be asked about now, the longest due first.

        What another transaction has locked is passed over.
        """
        return await self._locked(
            """
            SELECT open.run_id, open.number
              FROM effect_open AS open
             WHERE open.tenant_id = current_tenant() AND open.due_at <= statement_timestamp()
               AND open.state = 'UNKNOWN' AND open.contract_id = %(contract_id)s
             ORDER BY open.due_at
             LIMIT %(limit)s
               FOR UPDATE SKIP LOCKED
            """,
            {"contract_id": contract_id, "limit": limit},
        )

    async def left_behind(self, limit: int) -> list[tuple[Effect, Held]]:
        """Lock and return effects that were dispatched in another timeline of the database.

        What another transaction has locked is passed over.
        """
        return await self._locked(
            """
            SELECT open.run_id, open.number
              FROM effect_open AS open
             WHERE open.tenant_id = current_tenant() AND open.state = 'DISPATCHED'
               AND (SELECT attempt.timeline
                      FROM effect_attempt AS attempt
                     WHERE attempt.run_id = open.run_id AND attempt.number = open.number
                       AND attempt.attempt = open.attempt) <> (SELECT current_timeline())
             LIMIT %(limit)s
               FOR UPDATE SKIP LOCKED
            """,
            {"limit": limit},
        )

    async def _locked(
        self, statement: LiteralString, values: dict[str, Any]
    ) -> list[tuple[Effect, Held]]:
        # What is due is so as of the statement's time, which stands still: the index then ends the
        # search. And in its order, which has no second column: many may be due since one moment.
        async with self._connection.cursor(row_factory=class_row(EffectId)) as cursor:
            await cursor.execute(statement, values)
            effect_ids = await cursor.fetchall()
        found: list[tuple[Effect, Held]] = []
        for effect_id in effect_ids:
            effect = await self.effect(effect_id)
            assert effect is not None, "an open row has its effect"
            found.append((effect, await self.look(effect_id)))
        return found

    async def outcomes(self, effect_id: EffectId) -> list[Outcome]:
        """Return how an effect ended, the current outcome last."""
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(
                """
                SELECT revision, status, fence, result, invalid_result, error_code, error_message,
                       provider_reference, evidence_id, decided_by, reason, finished_at
                  FROM effect_outcome
                 WHERE run_id = %s AND number = %s
                 ORDER BY revision
                """,
                key_of(effect_id),
            )
            rows = await cursor.fetchall()
        return [outcome_of(row) for row in rows]

    async def events(self, effect_id: EffectId) -> list[Event]:
        """Return an effect's whole history, oldest first."""
        async with self._connection.cursor(row_factory=class_row(Event)) as cursor:
            await cursor.execute(
                """
                SELECT fence, transition, from_state, to_state, attempt, actor, reason, at
                  FROM event
                 WHERE run_id = %s AND number = %s
                 ORDER BY fence
                """,
                key_of(effect_id),
            )
            return await cursor.fetchall()

    async def event(self, effect_id: EffectId, fence: int) -> Event | None:
        """Return one event of an effect, or None."""
        async with self._connection.cursor(row_factory=class_row(Event)) as cursor:
            await cursor.execute(
                """
                SELECT fence, transition, from_state, to_state, attempt, actor, reason, at
                  FROM event
                 WHERE run_id = %s AND number = %s AND fence = %s
                """,
                (*key_of(effect_id), fence),
            )
            return await cursor.fetchone()

    async def attempts(self, effect_id: EffectId) -> list[Attempt]:
        """Return every time that a worker was allowed to send, oldest first."""
        async with self._connection.cursor(row_factory=class_row(Attempt)) as cursor:
            await cursor.execute(
                """
                SELECT attempt, fence, worker_id, credential_version, dispatched_at, lease_until
                  FROM effect_attempt
                 WHERE run_id = %s AND number = %s
                 ORDER BY attempt
                """,
                key_of(effect_id),
            )
            return await cursor.fetchall()

    async def sealed(self, effect_id: EffectId) -> tuple[str, bytes] | None:
        """Return the key id and the encrypted arguments that a new attempt needs, or None."""
        cursor = await self._connection.execute(
            "SELECT key_id, sealed FROM effect_payload WHERE run_id = %s AND number = %s",
            key_of(effect_id),
        )
        row: Any = await cursor.fetchone()
        return (row[0], bytes(row[1])) if row else None

    # --- writing --------------------------------------------------------------------------------

    async def record(self, effect: Effect) -> bool:
        """Write what a new effect is; False when another transaction was first."""
        cursor = await self._connection.execute(INSERT_EFFECT, effect_values(effect))
        return cursor.rowcount == 1

    async def begin(
        self, effect: Effect, steps: Sequence[Step], sealed: tuple[str, bytes] | None
    ) -> None:
        """Write the first steps of an effect that was just recorded."""
        after = steps[-1].after
        assert isinstance(after, OpenEffect), "an effect begins open"
        key = {"run_id": effect.id.run_id, "number": effect.id.number}
        async with self._connection.pipeline():
            for step in steps:
                await self._connection.execute(INSERT_EVENT, key | step_values(step))
            values = key | _contract_of(effect) | open_values(after)
            await self._connection.execute(INSERT_OPEN, values)
            await self._write_attempt(effect, steps[-1])
            if sealed is not None:
                await self._connection.execute(
                    """
                    INSERT INTO effect_payload (run_id, number, tenant_id, key_id, sealed)
                    VALUES (%s, %s, current_tenant(), %s, %s)
                    """,
                    (*key_of(effect.id), *sealed),
                )

    async def advance(self, effect: Effect, step: Step) -> None:
        """Write one step of an effect.

        Raises FenceStale when the effect is no longer where it starts from.
        """
        key = {"run_id": effect.id.run_id, "number": effect.id.number}
        after = step.after
        if isinstance(after, OpenEffect) and not State(step.from_state).is_open:
            values = key | _contract_of(effect) | open_values(after)
            moved = await self._connection.execute(INSERT_OPEN, values)
        elif isinstance(after, OpenEffect):
            values = key | open_values(after) | {"from_state": step.from_state}
            moved = await self._connection.execute(UPDATE_OPEN, values)
        else:
            moved = await self._connection.execute(DELETE_OPEN, key | step_values(step))
        if moved.rowcount != 1:
            raise FenceStale(f"Effect {effect.id} has moved on.")
        async with self._connection.pipeline():
            await self._connection.execute(INSERT_EVENT, key | step_values(step))
            if isinstance(after, Ending):
                await self._connection.execute(INSERT_OUTCOME, key | outcome_values(step, after))
                await self._connection.execute(
                    "DELETE FROM effect_payload WHERE run_id = %s AND number = %s",
                    key_of(effect.id),
                )
            else:
                await self._write_attempt(effect, step)

    async def _write_attempt(self, effect: Effect, step: Step) -> None:
        if step.to_state is not State.DISPATCHED:
            return
        assert isinstance(step.after, OpenEffect)
        values = {
            "run_id": effect.id.run_id,
            "number": effect.id.number,
            "contract_id": effect.contract_id,
            "effect_class": effect.effect_class,
            "credential_version": effect.credential_version,
            "at": step.at,
        }
        await self._connection.execute(INSERT_ATTEMPT, values | open_values(step.after))


def _contract_of(effect: Effect) -> dict[str, object]:
    return {
        "contract_id": effect.contract_id,
        "presented_contract_id": effect.presented_contract_id,
        "effect_class": effect.effect_class,
    }

"""What the gates of a run rest on: its subject, its results, tallies and facts, and its trace."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from psycopg.types.json import Jsonb

from kernel.ids import new_uuid7
from kernel.scope import Connection
from ledger.identity import EffectId
from ledger.refused import GateRefusal
from tallystick.canonical import (
    INTEGER_MAX,
    Json,
    canonical_bytes,
    parse_json,
    pointer_split,
)
from tallystick.gates.permission import Question
from tallystick.identifiers import Identifier, Returned
from tallystick.policy import CapturedFact, Tally

# The results of a run that count: an effect's current outcome, and only one that its contract
# allows. What is sensitive in them is not there, so it vouches for nothing. They are texts in
# canonical form, so that one in which an identifier does not occur as it is written there need not
# be read as JSON: that is some hundred times as slow.
_RESULTS: Final[LiteralString] = """
    WITH result AS MATERIALIZED (
        SELECT effect.tool, effect.arguments, outcome.result AS value, outcome.finished_at
          FROM effect
          JOIN LATERAL (SELECT status, result, invalid_result, finished_at
                          FROM effect_outcome AS latest
                         WHERE latest.run_id = effect.run_id AND latest.number = effect.number
                         ORDER BY revision DESC
                         LIMIT 1) AS outcome ON true
         WHERE effect.run_id = %(run_id)s
           AND (%(tools)s::text[] IS NULL OR effect.tool = ANY (%(tools)s))
           AND (%(looked_up)s OR effect.origin <> 'look_up')
           AND outcome.status = 'SUCCEEDED'
           AND outcome.result IS NOT NULL AND outcome.invalid_result IS NULL)
"""
_RETURNED: Final[LiteralString] = (
    _RESULTS
    + """
    SELECT asked.place
      FROM jsonb_to_recordset(%(asked)s)
           AS asked (place integer, identifier jsonb, written text, tools jsonb)
     WHERE EXISTS (SELECT FROM result
                    WHERE (asked.tools IS NULL OR asked.tools ? result.tool)
                      AND CASE WHEN strpos(result.value, asked.written) > 0 THEN
                               jsonb_path_exists(
                                   result.value::jsonb, '$.** ? (@ == $named)',
                                   jsonb_build_object('named', asked.identifier))
                               OR jsonb_path_exists(
                                   result.value::jsonb,
                                   '$.** ? (@.type() == "object").keyvalue().key ? (@ == $named)',
                                   jsonb_build_object('named', asked.identifier))
                          END)
    """
)
_OWNERS: Final[LiteralString] = (
    _RESULTS
    + """
    SELECT asked.place,
           (SELECT result.value::jsonb #> asked.owner
              FROM result
             WHERE result.tool = asked.tool
               AND CASE WHEN strpos(result.arguments, asked.written) > 0
                        THEN result.arguments::jsonb #> asked.at = asked.identifier END
             ORDER BY finished_at DESC
             LIMIT 1)
      FROM jsonb_to_recordset(%(asked)s)
           AS asked (place integer, identifier jsonb, written text, tool text, at text[],
                     owner text[])
    """
)


@dataclass(frozen=True, slots=True)
class RunSubject:
    """On whose behalf a run acts, and who said so."""

    subject: Mapping[str, Json]
    set_by: str
    set_at: datetime


class GateStore:
    """What the gates read and write, within one transaction of one tenant."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # --- permission -----------------------------------------------------------------------------

    async def subject(self, run_id: UUID) -> RunSubject | None:
        """Return on whose behalf a run acts, or None."""
        cursor = await self._connection.execute(
            "SELECT subject, set_by, set_at FROM run_subject WHERE run_id = %s", (run_id,)
        )
        row: Any = await cursor.fetchone()
        if row is None:
            return None
        subject = parse_json(row[0])
        assert isinstance(subject, dict)
        return RunSubject(subject, row[1], row[2])

    async def set_subject(self, run_id: UUID, subject: Mapping[str, Json], *, by: str) -> bool:
        """Say on whose behalf a run acts; False when that was said before."""
        made = await self._connection.execute(
            """
            INSERT INTO run_subject (run_id, tenant_id, subject, set_by)
            VALUES (%s, current_tenant(), %s, %s)
                ON CONFLICT (run_id) DO NOTHING
            """,
            (run_id, canonical_bytes(dict(subject)).decode(), by),
        )
        return made.rowcount == 1

    async def returned(
        self, run_id: UUID, asked: Sequence[tuple[Returned, Identifier]]
    ) -> frozenset[tuple[Returned, Identifier]]:
        """Return those identifiers that a tool has returned in the run, anywhere in its result."""
        rows: list[dict[str, Any]] = [
            {
                "place": place,
                "identifier": identifier,
                "written": _written(identifier),
                "tools": sorted(source.tools) if source.tools is not None else None,
            }
            for place, (source, identifier) in enumerate(asked)
        ]
        named = [source.tools for source, _ in asked if source.tools is not None]
        tools = sorted(frozenset[str]().union(*named)) if len(named) == len(asked) else None
        cursor = await self._connection.execute(
            _RETURNED,
            {"run_id": run_id, "tools": tools, "looked_up": False, "asked": Jsonb(rows)},
        )
        places = {int(row[0]) for row in await cursor.fetchall()}
        return frozenset(one for place, one in enumerate(asked) if place in places)

    async def owners(self, run_id: UUID, asked: Sequence[Question]) -> list[Json]:
        """Return who owns each object, as the tool of each question said last in the run.

        It is None for what that tool did not tell.
        """
        rows: list[dict[str, Any]] = [
            {
                "place": place,
                "identifier": each.identifier,
                "written": _written(each.identifier),
                "tool": each.ownership.tool,
                "at": list(pointer_split(each.ownership.asked or "")),
                "owner": list(pointer_split(each.ownership.owner or "")),
            }
            for place, each in enumerate(asked)
        ]
        tools = sorted({each.ownership.tool for each in asked if each.ownership.tool})
        cursor = await self._connection.execute(
            _OWNERS,
            {"run_id": run_id, "tools": tools, "looked_up": True, "asked": Jsonb(rows)},
        )
        found: list[Any] = await cursor.fetchall()
        owners: dict[int, Json] = dict(found)
        return [owners[place] for place in range(len(rows))]

    # --- policy ---------------------------------------------------------------------------------

    async def hold_run(self, run_id: UUID) -> None:
        """Let one decision of a run follow another, until the transaction ends."""
        count = "UPDATE run_state SET decisions = decisions + 1 WHERE run_id = %s"
        if (await self._connection.execute(count, (run_id,))).rowcount == 0:
            await self._connection.execute(
                """
                INSERT INTO run_state (run_id, tenant_id)
                VALUES (%s, current_tenant())
                    ON CONFLICT (run_id) DO NOTHING
                """,
                (run_id,),
            )
            await self._connection.execute(count, (run_id,))

    async def done(
        self, run_id: UUID, policy: str, revision: int
    ) -> tuple[dict[str, Tally], dict[tuple[str, str], Json]]:
        """Return how often the run called each tool under a policy, and a revision's facts."""
        async with self._connection.pipeline():
            tallied = await self._connection.execute(
                "SELECT tool, dispatched, succeeded FROM run_tally WHERE run_id = %s", (run_id,)
            )
            known = await self._connection.execute(
                """
                SELECT name, key, value
                  FROM run_fact
                 WHERE run_id = %s AND policy = %s AND policy_revision = %s
                """,
                (run_id, policy, revision),
            )
            tallies: list[Any] = await tallied.fetchall()
            facts: list[Any] = await known.fetchall()
        return (
            {tool: Tally(dispatched, succeeded) for tool, dispatched, succeeded in tallies},
            {(name, key): parse_json(value) for name, key, value in facts},
        )

    async def count_dispatched(self, run_id: UUID, tool: str) -> None:
        """Count one more dispatch of a tool. The run is held."""
        await self._count(run_id, tool, 1, 0)

    async def count_succeeded(self, run_id: UUID, tool: str) -> None:
        """Count one more success of a tool. The run is held."""
        await self._count(run_id, tool, 0, 1)

    async def _count(self, run_id: UUID, tool: str, dispatched: int, succeeded: int) -> None:
        await self._connection.execute(
            """
            INSERT INTO run_tally (run_id, tool, tenant_id, dispatched, succeeded)
            VALUES (%s, %s, current_tenant(), %s, %s)
                ON CONFLICT (run_id, tool) DO UPDATE
               SET dispatched = run_tally.dispatched + excluded.dispatched,
                   succeeded = run_tally.succeeded + excluded.succeeded
            """,
            (run_id, tool, dispatched, succeeded),
        )

    async def keep_facts(
        self,
        effect_id: EffectId,
        policy: str,
        revision: int,
        facts: Iterable[CapturedFact],
        captured_at: datetime,
    ) -> None:
        """Write the facts that an effect's result gave. The run is held; the last one counts."""
        for fact in facts:
            await self._connection.execute(
                """
                INSERT INTO run_fact (run_id, policy, policy_revision, name, key, tenant_id,
                                      value, number, captured_at)
                VALUES (%s, %s, %s, %s, %s, current_tenant(), %s, %s, %s)
                    ON CONFLICT (run_id, policy, policy_revision, name, key) DO UPDATE
                   SET value = excluded.value, number = excluded.number,
                       captured_at = excluded.captured_at
                """,
                (
                    effect_id.run_id,
                    policy,
                    revision,
                    fact.name,
                    fact.key,
                    canonical_bytes(fact.value).decode(),
                    effect_id.number,
                    captured_at,
                ),
            )

    # --- the trace ------------------------------------------------------------------------------

    async def refuse(self, run_id: UUID, line: GateRefusal, *, principal: str) -> None:
        """Write what a gate refused into the trace of a run.

        An effect that is refused again for the same reason, as often as a worker asks, is there
        already.
        """
        denial = line.denial
        values: dict[str, Any] = {
            "run_id": run_id,
            "refusal_id": new_uuid7(),
            "number": line.number,
            "tool": line.tool,
            "version": line.version,
            "gate": denial.gate,
            "code": denial.refusal.code,
            "true_code": denial.true_code,
            "message": denial.refusal.detail,
            "rule": denial.rule,
            "policy": line.policy,
            "policy_revision": line.policy_revision,
            "principal": principal,
        }
        await self._connection.execute(
            """
            INSERT INTO gate_refusal (run_id, refusal_id, tenant_id, number, tool, version, gate,
                                      code, true_code, message, rule, policy, policy_revision,
                                      principal)
            SELECT %(run_id)s, %(refusal_id)s, current_tenant(), %(number)s, %(tool)s, %(version)s,
                   %(gate)s, %(code)s, %(true_code)s, %(message)s, %(rule)s, %(policy)s,
                   %(policy_revision)s, %(principal)s
             WHERE NOT EXISTS (
                   SELECT FROM gate_refusal
                    WHERE run_id = %(run_id)s AND number = %(number)s AND gate = %(gate)s
                      AND (code, true_code, rule) IS NOT DISTINCT FROM
                          (%(code)s, %(true_code)s, %(rule)s))
            """,
            values,
        )


def _written(identifier: Identifier) -> str:
    """Write an identifier as it stands in canonical form, if it is there at all."""
    is_large = isinstance(identifier, int) and abs(identifier) > INTEGER_MAX
    # A number so large has come as a float, and is exact as one.
    return canonical_bytes(float(identifier) if is_large else identifier).decode()

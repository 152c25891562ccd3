"""Every SQL statement of the audit: rows in, values out."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from audit.record import SEALED, WRITTEN_IN, Record
from audit.seal import Seal, Statement
from kernel.scope import Connection

_FETCHED_AT_ONCE: Final = 50

# Values are hashed as text: these settings are part of the format, and never change.
_TEXT_FORM: Final[LiteralString] = """
    SELECT set_config('TimeZone', 'UTC', true),
           set_config('DateStyle', 'ISO, MDY', true),
           set_config('IntervalStyle', 'postgres', true),
           set_config('bytea_output', 'hex', true),
           set_config('extra_float_digits', '1', true)
"""
_COLUMNS: Final[LiteralString] = """
    SELECT relname::text, array_agg(attname::text ORDER BY attname)
      FROM pg_class AS class
      JOIN pg_attribute ON attrelid = class.oid AND attnum > 0 AND NOT attisdropped
     WHERE relnamespace = 'public'::regnamespace AND relname = ANY (%s)
     GROUP BY relname
"""
# The bounds stand in each branch too: there they find the block ranges of its index.
_OF_TABLE: Final[LiteralString] = """
    SELECT {table} COLLATE "C" AS kept, ARRAY[{key}]::text[] COLLATE "C" AS key, {written_in},
           jsonb_strip_nulls(jsonb_object(ARRAY[{names}]::text[], ARRAY[{values}]::text[])) AS row
      FROM {name}
     WHERE tenant_id = current_tenant()
       AND (%(since)s::bigint IS NULL OR {written_in} >= %(since)s)
       AND (%(upto)s::bigint IS NULL OR {written_in} < %(upto)s)
"""
_RECORDS: Final[LiteralString] = """
    SELECT span.number, record.kept, record.key, record.row
      FROM unnest(%(numbers)s::bigint[], %(sinces)s::bigint[], %(uptos)s::bigint[])
           AS span (number, since, upto)
      JOIN ({records}) AS record
        ON (span.since IS NULL OR record.written_in >= span.since)
       AND (span.upto IS NULL OR record.written_in < span.upto)
     WHERE %(after)s::bigint IS NULL
        OR (span.number, record.kept, record.key)
            > (%(after)s::bigint, %(after_table)s, %(after_key)s::text[])
     ORDER BY span.number, record.kept, record.key
"""
_SEALS: Final[LiteralString] = """
    SELECT number, since, upto, statement, signature, leaf_hashes FROM audit_seal
"""


@dataclass(frozen=True, slots=True)
class Due:
    """A tenant whose records from ``since`` up to ``horizon`` are not all sealed."""

    tenant_id: UUID
    tenant: str
    since: int
    horizon: int


@dataclass(frozen=True, slots=True)
class Position:
    """Where the database's transactions are.

    Every transaction with a number below ``horizon`` has ended, so that nothing can be written
    under such a number any more; none with ``upcoming`` or above has begun.
    """

    horizon: int
    upcoming: int
    now: datetime


@dataclass(frozen=True, slots=True)
class Span:
    """A range of transaction numbers; None is without a bound. ``number`` is its seal's."""

    number: int
    since: int | None
    upto: int | None


@dataclass(frozen=True, slots=True)
class Placed:
    """A record, and where it stands: in the order of span, table and key, as text."""

    number: int
    key: tuple[str, ...]
    record: Record


class AuditStore:
    """The seals and the sealed tables, within one transaction of one tenant."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def position(self) -> Position:
        """Return where the database's transactions are."""
        cursor = await self._connection.execute(
            """
            SELECT audit_position(pg_snapshot_xmin(pg_current_snapshot())),
                   audit_position(pg_snapshot_xmax(pg_current_snapshot())),
                   clock_timestamp()
            """
        )
        row: Any = await cursor.fetchone()
        return Position(*row)

    async def last_seal(self) -> Seal | None:
        """Return the newest seal, or None."""
        found = await self.newest_seals(before=None, limit=1)
        return found[0] if found else None

    async def newest_seals(self, *, before: int | None, limit: int) -> list[Seal]:
        """Return seals, newest first, those with a number below ``before``."""
        found = await self._seals(
            " WHERE tenant_id = current_tenant() AND (%s::bigint IS NULL OR number < %s)"
            " ORDER BY number DESC LIMIT %s",
            (before, before, limit),
        )
        return [seal for _, seal in found]

    async def next_seals(
        self, *, after: int, leaves_max: int, limit: int
    ) -> list[tuple[Span, Seal]]:
        """Return the seals that follow a number, as far as they have so many leaves together.

        Number and span are those that the database goes by; a statement may have been changed.
        """
        return await self._seals(
            """
              JOIN (SELECT number, sum(length(leaf_hashes)) OVER (ORDER BY number) AS bytes
                      FROM (SELECT number, leaf_hashes
                              FROM audit_seal
                             WHERE tenant_id = current_tenant() AND number > %s
                             ORDER BY number
                             LIMIT %s) AS following) AS following
             USING (number)
             WHERE tenant_id = current_tenant()
               AND (bytes <= 32 * %s::bigint
                    OR number = (SELECT min(number) FROM audit_seal
                                  WHERE tenant_id = current_tenant() AND number > %s))
             ORDER BY number
            """,
            (after, limit, leaves_max, after),
        )

    async def _seals(
        self, where: LiteralString, values: tuple[object, ...]
    ) -> list[tuple[Span, Seal]]:
        cursor = await self._connection.execute(_SEALS + where, values)
        rows: list[Any] = await cursor.fetchall()
        return [
            (Span(number, since, upto), Seal(text, bytes(signature), bytes(hashes)))
            for number, since, upto, text, signature, hashes in rows
        ]

    async def written(self, since: int, before: int, limit: int) -> list[tuple[int, int]]:
        """Return the numbers of transactions that wrote records, ascending, and how many."""
        parts = [
            SQL(
                "SELECT written_in FROM {} WHERE tenant_id = current_tenant()"
                " AND written_in >= %(since)s AND written_in < %(before)s"
            ).format(Identifier(table))
            for table in SEALED
        ]
        statement = SQL(
            "SELECT written_in, count(*) FROM ({}) AS record"
            " GROUP BY written_in ORDER BY written_in LIMIT %(limit)s"
        ).format(SQL(" UNION ALL ").join(parts))
        values = {"since": since, "before": before, "limit": limit}
        cursor = await self._connection.execute(statement, values)
        rows: list[Any] = await cursor.fetchall()
        return [(row[0], row[1]) for row in rows]

    async def records(
        self, spans: Sequence[Span], *, after: Placed | None = None
    ) -> AsyncGenerator[Placed]:
        """Give the records of some spans, or those that follow one of them, a few at a time."""
        await self._connection.execute(_TEXT_FORM)
        sinces, uptos = [span.since for span in spans], [span.upto for span in spans]
        values = {
            "numbers": [span.number for span in spans],
            "sinces": sinces,
            "uptos": uptos,
            "since": None if None in sinces else min(filter(None, sinces), default=0),
            "upto": None if None in uptos else max(filter(None, uptos), default=0),
            "after": after.number if after else None,
            "after_table": after.record.table if after else None,
            "after_key": list(after.key) if after else None,
        }
        statement = SQL(_RECORDS).format(records=_union(await self._columns()))
        async with self._connection.cursor(name="audit_records") as cursor:
            cursor.itersize = _FETCHED_AT_ONCE
            await cursor.execute(statement, values)
            found: Any
            async for found in cursor:
                number, table, key, row = found
                yield Placed(number, tuple(key), Record(table, row))

    async def _columns(self) -> dict[str, list[str]]:
        cursor = await self._connection.execute(_COLUMNS, (list(SEALED),))
        rows: list[Any] = await cursor.fetchall()
        return {row[0]: row[1] for row in rows}

    async def keep(self, tenant_id: UUID, statement: Statement, seal: Seal) -> bool:
        """Write a seal; False when another transaction has written the one of this number."""
        cursor = await self._connection.execute(
            """
            INSERT INTO audit_seal (
                tenant_id, number, previous_number, previous, since, upto, digest, statement,
                signature, leaf_hashes)
            VALUES (%s, %s, nullif(%s - 1, 0), %s, %s, %s, %s, %s, %s, %s)
                ON CONFLICT (tenant_id, number) DO NOTHING
            """,
            (
                tenant_id,
                statement.number,
                statement.number,
                statement.previous,
                statement.since,
                statement.upto,
                seal.digest,
                seal.text,
                seal.signature,
                seal.leaf_hashes,
            ),
        )
        return cursor.rowcount == 1


async def tenants_to_seal(connection: Connection) -> list[Due]:
    """Return the tenants that have records which may not be sealed."""
    cursor = await connection.execute(
        "SELECT tenant_id, tenant, since, horizon FROM tenants_to_seal()"
    )
    rows: list[Any] = await cursor.fetchall()
    return [Due(*row) for row in rows]


async def note_progress(connection: Connection) -> None:
    """Note how far the records of every tenant are sealed: the seals say it, and no one else."""
    await connection.execute("SELECT note_sealed()")


def _union(columns: Mapping[str, Sequence[str]]) -> Composed:
    return SQL(" UNION ALL ").join(_of_table(table, columns[table]) for table in SEALED)


def _of_table(table: str, columns: Sequence[str]) -> Composed:
    def listed(parts: Sequence[Composable]) -> Composed:
        return SQL(", ").join(parts)

    def text(column: str) -> Composed:
        return SQL("{}::text").format(Identifier(column))

    return SQL(_OF_TABLE).format(
        table=Literal(table),
        key=listed([text(column) for column in SEALED[table]]),
        written_in=Identifier(WRITTEN_IN),
        names=listed([Literal(column) for column in columns]),
        values=listed([text(column) for column in columns]),
        name=Identifier(table),
    )

"""The reconciler's SQL: where there is work, and how far the listings have been read.

What is done to an effect, the ledger's store writes.
"""

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from psycopg.rows import class_row, dict_row

from kernel.scope import Connection
from ledger.listing import first_since
from reconciler.progress import Advance, Listing, Progress

_TENANTS_MAX = 1000
_CONTRACTS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Due:
    """A contract with an effect in doubt that may be asked about now, in a tenant's ledger."""

    tenant_id: UUID
    tenant: str
    contract_id: UUID


async def tenants_due(connection: Connection) -> list[tuple[UUID, str]]:
    """Return the tenants that have an effect for which time alone decides now."""
    cursor = await connection.execute(
        "SELECT tenant_id, tenant FROM tenants_due(%s)", (_TENANTS_MAX,)
    )
    rows: list[Any] = await cursor.fetchall()
    return [(row[0], row[1]) for row in rows]


async def contracts_due(connection: Connection) -> list[Due]:
    """Return the contracts whose effects may be asked about now, the longest due first."""
    async with connection.cursor(row_factory=class_row(Due)) as cursor:
        await cursor.execute(
            "SELECT tenant_id, tenant, contract_id FROM contracts_due(%s)", (_CONTRACTS_MAX,)
        )
        return await cursor.fetchall()


async def current_timeline(connection: Connection) -> int | None:
    """Return the database's timeline, which counts up when a standby takes over.

    None where the database does not tell.
    """
    cursor = await connection.execute("SELECT current_timeline()")
    row: Any = await cursor.fetchone()
    return row[0]


async def tenants_left_behind(connection: Connection) -> list[tuple[UUID, str]]:
    """Return the tenants that have an effect under way from another timeline. It reads them all."""
    cursor = await connection.execute(
        "SELECT tenant_id, tenant FROM tenants_left_behind(%s)", (_TENANTS_MAX,)
    )
    rows: list[Any] = await cursor.fetchall()
    return [(row[0], row[1]) for row in rows]


async def keep_partitions(connection: Connection, *, months_ahead: int) -> int:
    """Make the partitions of the months to come; returns how many were missing."""
    cursor = await connection.execute("SELECT ensure_partitions(%s)", (months_ahead,))
    row: Any = await cursor.fetchone()
    return row[0]


# --- listings -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reach:
    """How many items were listed so far, of all tenants, and until when everything was read."""

    listed: int
    orphans: int
    ignored: int
    until: datetime | None


async def tenants_listing(connection: Connection) -> list[tuple[UUID, str]]:
    """Return the tenants that use a contract which may have a listing."""
    cursor = await connection.execute("SELECT tenant_id, tenant FROM tenants_listing()")
    rows: list[Any] = await cursor.fetchall()
    return [(row[0], row[1]) for row in rows]


async def reach(connection: Connection) -> Reach:
    """Return how far the listings have been read."""
    async with connection.cursor(row_factory=class_row(Reach)) as cursor:
        await cursor.execute("SELECT listed, orphans, ignored, until FROM listings_read()")
        row = await cursor.fetchone()
    assert row is not None
    return row


async def listings_due(connection: Connection) -> list[Listing]:
    """Return the tenant's listings whose time has come, the longest due first.

    Those of new contracts are noted, and due at once.
    """
    named = await _listings(connection)
    await connection.execute(
        """
        INSERT INTO listing_progress (tenant_id, listing, since)
        SELECT current_tenant(), listing, since
          FROM unnest(%s::text[], %s::timestamptz[]) AS named (listing, since)
            ON CONFLICT DO NOTHING
        """,
        (list(named), [first_since(listing.published_at) for listing in named.values()]),
    )
    cursor = await connection.execute(
        """
        SELECT listing
          FROM listing_progress
         WHERE tenant_id = current_tenant() AND listing = ANY (%s)
           AND due_at <= clock_timestamp()
         ORDER BY due_at, listing
        """,
        (list(named),),
    )
    rows: list[Any] = await cursor.fetchall()
    return [named[row[0]] for row in rows]


async def _listings(connection: Connection) -> dict[str, Listing]:
    """Return every listing of the tenant's contracts, and of those that it accepted, by its key.

    Versions that say the same of it have one.
    """
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            """
            SELECT contract.name AS tool, share.owner,
                   content.document::jsonb #>> '{evidence,listing}' AS listing,
                   content.document::jsonb #>> '{evidence,lag_seconds}' AS lag_seconds,
                   array_agg(contract.contract_id
                             ORDER BY contract.published_at DESC, contract.contract_id)
                       AS contract_ids,
                   min(contract.published_at) AS published_at
              FROM contract
              JOIN contract_content AS content USING (tenant_id, contract_digest)
              LEFT JOIN LATERAL share_of(CASE WHEN contract.tenant_id <> current_tenant()
                                              THEN contract.contract_id END) AS share ON true
             WHERE content.document LIKE '%"listing":%'
               AND content.document::jsonb #> '{evidence,listing}' IS NOT NULL
             GROUP BY 1, 2, 3, 4
            """
        )
        rows = await cursor.fetchall()
    found: dict[str, Listing] = {}
    for row in rows:
        said = [row["tool"], row["owner"] or "", row["listing"], row["lag_seconds"] or ""]
        key = f"sha256:{sha256(chr(0).join(said).encode()).hexdigest()}"
        ids, published_at = row["contract_ids"], row["published_at"]
        found[key] = Listing(key, row["tool"], row["owner"] is None, ids, published_at)
    return found


async def claim(connection: Connection, listing: Listing, lease_seconds: float) -> Progress | None:
    """Take a listing that is due for one lease; None where another reconciler has it."""
    async with connection.cursor(row_factory=class_row(Progress)) as cursor:
        await cursor.execute(
            """
            UPDATE listing_progress
               SET fence = fence + 1, due_at = clock_timestamp() + make_interval(secs => %s),
                   began_at = coalesce(began_at, clock_timestamp())
             WHERE tenant_id = current_tenant() AND listing = %s AND due_at <= clock_timestamp()
            RETURNING fence, since, began_at, cursor, failures, clock_timestamp() AS asked_at
            """,
            (lease_seconds, listing.key),
        )
        return await cursor.fetchone()


async def advance(
    connection: Connection, listing: Listing, fence: int, step: Advance
) -> datetime | None:
    """Note how far a listing has been read; None where another reconciler has it by now.

    Returns the database's time.
    """
    cursor = await connection.execute(
        """
        UPDATE listing_progress
           SET since = %s, began_at = %s, cursor = %s, failures = %s,
               due_at = clock_timestamp() + make_interval(secs => %s),
               listed = listed + %s, orphans = orphans + %s, ignored = ignored + %s
         WHERE tenant_id = current_tenant() AND listing = %s AND fence = %s
        RETURNING clock_timestamp()
        """,
        (
            *(step.since, step.began_at, step.cursor, step.failures, step.wait_seconds),
            *(step.listed, step.orphans, step.ignored),
            *(listing.key, fence),
        ),
    )
    row: Any = await cursor.fetchone()
    return row[0] if row else None

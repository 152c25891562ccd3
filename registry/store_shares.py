"""Every SQL statement of sharing: what a tenant shares, and what it accepts of others'."""

from typing import Final, LiteralString
from uuid import UUID

from psycopg.rows import class_row

from kernel.scope import Connection
from registry.entry import Offer, Share

OFFERS_MAX: Final = 500
"""How many offers are listed; anybody may make more."""

_OFFERS: Final[LiteralString] = """
    SELECT offer.contract_id, offer.owner, offer.name, offer.version, offer.revoked_at,
           acceptance.accepted_at, acceptance.accepted_by
      FROM shares_offered() AS offer
      LEFT JOIN contract_share_acceptance AS acceptance
             ON acceptance.tenant_id = current_tenant()
            AND acceptance.contract_id = offer.contract_id
            AND acceptance.withdrawn_at IS NULL
     WHERE (%(owner)s::text IS NULL OR offer.owner = %(owner)s)
       AND (%(name)s::text IS NULL OR offer.name = %(name)s)
       AND (%(version)s::text IS NULL OR offer.version = %(version)s)
       AND (offer.revoked_at IS NULL OR acceptance.accepted_at IS NOT NULL)
     ORDER BY acceptance.accepted_at IS NULL, offer.owner, offer.name, offer.contract_id
     LIMIT %(most)s
"""


class ShareStore:
    """What a tenant shares, and what it accepts, within one transaction of it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def share(self, contract_id: UUID, tenant: str, *, by: str) -> bool:
        """Share a version with a tenant, by its slug; False when it is shared with it already.

        Nothing asks whether there is such a tenant.
        """
        made = await self._connection.execute(
            """
            INSERT INTO contract_share (tenant_id, contract_id, shared_with, shared_by)
            VALUES (current_tenant(), %s, %s, %s)
                ON CONFLICT (contract_id, shared_with) DO UPDATE
               SET shared_at = clock_timestamp(), shared_by = excluded.shared_by, revoked_at = NULL
             WHERE contract_share.revoked_at IS NOT NULL
            """,
            (contract_id, tenant, by),
        )
        return made.rowcount == 1

    async def revoke(self, contract_id: UUID, tenant: str) -> bool:
        """Share a version with a tenant no longer; False when it is not shared with it."""
        taken = await self._connection.execute(
            """
            UPDATE contract_share
               SET revoked_at = clock_timestamp()
             WHERE contract_id = %s AND shared_with = %s AND revoked_at IS NULL
            """,
            (contract_id, tenant),
        )
        return taken.rowcount == 1

    async def shares(self, contract_id: UUID) -> list[Share]:
        """Return whom a version is shared with, or was, by slug."""
        async with self._connection.cursor(row_factory=class_row(Share)) as cursor:
            await cursor.execute(
                """
                SELECT shared_with, shared_at, shared_by, revoked_at
                  FROM contract_share
                 WHERE contract_id = %s
                 ORDER BY shared_with
                """,
                (contract_id,),
            )
            return await cursor.fetchall()

    async def offers(
        self, *, owner: str | None = None, name: str | None = None, version: str | None = None
    ) -> list[Offer]:
        """Return what is offered to the tenant, what it accepted first: at most `OFFERS_MAX`.

        What it accepted is there, too, when its owner has taken it back.
        """
        asked = {"owner": owner, "name": name, "version": version, "most": OFFERS_MAX}
        async with self._connection.cursor(row_factory=class_row(Offer)) as cursor:
            await cursor.execute(_OFFERS, asked)
            return await cursor.fetchall()

    async def accept(self, contract_id: UUID, *, by: str) -> None:
        """Accept what is offered."""
        await self._connection.execute(
            """
            INSERT INTO contract_share_acceptance (tenant_id, contract_id, accepted_by)
            VALUES (current_tenant(), %s, %s)
                ON CONFLICT (tenant_id, contract_id) DO UPDATE
               SET accepted_at = clock_timestamp(), accepted_by = excluded.accepted_by,
                   withdrawn_at = NULL
            """,
            (contract_id, by),
        )

    async def withdraw(self, contract_id: UUID) -> None:
        """Accept it no longer."""
        await self._connection.execute(
            """
            UPDATE contract_share_acceptance
               SET withdrawn_at = clock_timestamp()
             WHERE tenant_id = current_tenant() AND contract_id = %s AND withdrawn_at IS NULL
            """,
            (contract_id,),
        )

"""Every SQL statement about publishers' keys and signatures: rows in, values out."""

from collections.abc import Sequence
from typing import Any, Final, LiteralString
from uuid import UUID

from psycopg.rows import class_row

from kernel.scope import Connection
from registry.signing import Presented, PublisherKey, Signature
from tallystick.signing import PublicKey

_KEY: Final[LiteralString] = """
    SELECT key_id, public_key, name, added_at, added_by, revoked_at, revoked_by, reason
      FROM publisher_key
     WHERE tenant_id = current_tenant()
"""


class KeyStore:
    """The registry's keys and signatures, within one transaction of one tenant."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # --- keys -----------------------------------------------------------------------------------

    async def add(self, key: PublicKey, name: str, *, by: str) -> bool:
        """Add a key; False when there is one of its id already."""
        made = await self._connection.execute(
            """
            INSERT INTO publisher_key (tenant_id, key_id, public_key, name, added_by)
            VALUES (current_tenant(), %s, %s, %s, %s)
                ON CONFLICT DO NOTHING
            """,
            (key.id, key.encoded, name, by),
        )
        return made.rowcount == 1

    async def revoke(self, key_id: str, *, by: str, reason: str) -> bool:
        """Revoke a key for ever; False when there is none, or it is revoked already."""
        # Dated after what it waited for: stamped once the row is held, in a statement of its own.
        await self._connection.execute(
            """
            SELECT FROM publisher_key
             WHERE tenant_id = current_tenant() AND key_id = %s
               FOR NO KEY UPDATE
            """,
            (key_id,),
        )
        done = await self._connection.execute(
            """
            UPDATE publisher_key
               SET revoked_at = clock_timestamp(), revoked_by = %s, reason = %s
             WHERE tenant_id = current_tenant() AND key_id = %s AND revoked_at IS NULL
            """,
            (by, reason, key_id),
        )
        return done.rowcount == 1

    async def key(self, key_id: str) -> PublisherKey | None:
        """Return one key, or None."""
        found = await self._keys(_KEY + " AND key_id = %s", (key_id,))
        return found[0] if found else None

    async def keys(self) -> list[PublisherKey]:
        """Return every key, also the revoked ones, in the order in which they were added."""
        return await self._keys(_KEY + " ORDER BY added_at, key_id")

    async def held(self, key_ids: Sequence[str]) -> dict[str, PublisherKey]:
        """Return those of the keys that are there, and hold them until the transaction ends."""
        statement = _KEY + " AND key_id = ANY (%s) ORDER BY key_id FOR SHARE"
        return {key.key_id: key for key in await self._keys(statement, (list(key_ids),))}

    async def _keys(self, statement: LiteralString, values: Any = None) -> list[PublisherKey]:  # noqa: ANN401 - psycopg's
        async with self._connection.cursor(row_factory=class_row(PublisherKey)) as cursor:
            await cursor.execute(statement, values)
            return await cursor.fetchall()

    # --- signatures -----------------------------------------------------------------------------

    async def sign(self, contract_id: UUID, presented: Presented, *, by: str) -> bool:
        """Keep a verified signature; False when the contract has one by this key already."""
        made = await self._connection.execute(
            """
            INSERT INTO contract_signature (tenant_id, contract_id, key_id, signature, signed_by)
            VALUES (current_tenant(), %s, %s, %s, %s)
                ON CONFLICT DO NOTHING
            """,
            (contract_id, presented.key_id, presented.signature, by),
        )
        return made.rowcount == 1

    async def signatures(self, contract_ids: Sequence[UUID]) -> dict[UUID, list[Signature]]:
        """Return the signatures of contracts, also those of revoked keys, oldest first."""
        found: dict[UUID, list[Signature]] = {each: [] for each in contract_ids}
        async with self._connection.cursor(row_factory=class_row(Signature)) as cursor:
            await cursor.execute(
                """
                SELECT contract_id, key_id, name, signature, signed_at, signed_by, revoked_at
                  FROM contract_signature
                  JOIN publisher_key USING (tenant_id, key_id)
                 WHERE tenant_id = current_tenant() AND contract_id = ANY (%s)
                 ORDER BY signed_at, key_id
                """,
                (list(contract_ids),),
            )
            async for signature in cursor:
                found[signature.contract_id].append(signature)
        return found

    # --- the policy -----------------------------------------------------------------------------

    async def require(self, *, by: str) -> bool:
        """Require signatures from now on; False when they are required already."""
        made = await self._connection.execute(
            """
            INSERT INTO signature_requirement (tenant_id, required_by)
            VALUES (current_tenant(), %s)
                ON CONFLICT DO NOTHING
            """,
            (by,),
        )
        return made.rowcount == 1

    async def require_no_more(self) -> bool:
        """Require no signatures from now on; False when none are required."""
        gone = await self._connection.execute(
            "DELETE FROM signature_requirement WHERE tenant_id = current_tenant()"
        )
        return gone.rowcount == 1

    async def requirement(self) -> tuple[Any, Any] | None:
        """Return since when signatures are required and by whose word, or None."""
        cursor = await self._connection.execute(
            """
            SELECT required_at, required_by
              FROM signature_requirement
             WHERE tenant_id = current_tenant()
            """
        )
        row = await cursor.fetchone()
        return (row[0], row[1]) if row else None

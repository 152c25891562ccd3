"""Every SQL statement of the registry: rows in, values out.

Row-level security shows each transaction one tenant's rows; the statements name the tenant again,
so that the keys that begin with it are used.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final, LiteralString
from uuid import UUID

from psycopg.rows import class_row, dict_row
from psycopg.types.json import Jsonb

from kernel.ids import new_uuid7
from kernel.scope import Connection
from registry.entry import Credential, Entry, Grant, Pin
from registry.publication import Review
from tallystick.canonical import Json, canonical_bytes, parse_json
from tallystick.resolution import Lifecycle
from tallystick.tool_contract import Contract

_ENTRY: Final[LiteralString] = """
    SELECT contract.contract_id, content.document, contract.published_at, contract.published_by,
           state.lifecycle, state.suspended, closing.closed_at,
           coalesce(binding.version, 0) AS credential_bound,
           coalesce(credential.version, 0) AS credential_current,
           clock_timestamp() AS read_at
      FROM contract
      JOIN contract_content AS content USING (tenant_id, contract_digest)
      JOIN contract_state AS state USING (contract_id)
      LEFT JOIN contract_closing AS closing USING (contract_id)
      LEFT JOIN credential_binding AS binding USING (contract_id)
      LEFT JOIN credential ON credential.tenant_id = binding.tenant_id
                          AND credential.name = binding.credential
     WHERE contract.tenant_id = current_tenant()
"""

# Everyone takes these locks in this order. FOR SHARE, because FOR KEY SHARE (which a foreign key
# takes) does not stop a retirement that runs at the same time.
_LOCK_STATE: Final[LiteralString] = """
    SELECT FROM contract_state AS state
      JOIN contract USING (contract_id)
     WHERE contract.tenant_id = current_tenant()
       AND contract.name = %(name)s AND contract.version = %(version)s
       FOR SHARE OF state
"""
_LOCK_CREDENTIAL: Final[LiteralString] = """
    SELECT FROM credential
      JOIN credential_binding AS binding
        ON binding.tenant_id = credential.tenant_id AND binding.credential = credential.name
      JOIN contract USING (contract_id)
     WHERE contract.tenant_id = current_tenant()
       AND contract.name = %(name)s AND contract.version = %(version)s
       FOR SHARE OF credential, binding
"""
_LOCK_GRANTS: Final[LiteralString] = """
    SELECT FROM capability_grant
     WHERE tenant_id = current_tenant()
       AND principal = %(principal)s AND capability = ANY (%(capabilities)s)
     ORDER BY capability
       FOR SHARE
"""


@lru_cache(maxsize=1024)
def _contract(document: str) -> Contract:
    # Content never changes, so a parsed contract serves for as long as it is asked for.
    return Contract.parse(parse_json(document))


class RegistryStore:
    """The registry's tables, within one transaction of one tenant."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # --- contracts ------------------------------------------------------------------------------

    async def lock(
        self, name: str, version: str, principal: str, capabilities: Sequence[str]
    ) -> None:
        """Hold a version's state, credential and grants as they are until the transaction ends."""
        names = {"name": name, "version": version}
        asked = {"principal": principal, "capabilities": list(capabilities)}
        async with self._connection.pipeline():
            await self._connection.execute(_LOCK_STATE, names)
            await self._connection.execute(_LOCK_CREDENTIAL, names)
            await self._connection.execute(_LOCK_GRANTS, asked)

    async def lock_name(self, name: str) -> None:
        """Let one publication of a name follow another."""
        await self._connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(current_tenant()::text || %s, 0))",
            (name,),
        )

    async def entry(self, name: str, version: str) -> Entry | None:
        """Return one version, or None."""
        statement = _ENTRY + " AND contract.name = %s AND contract.version = %s"
        found = await self._entries(statement, (name, version))
        return found[0] if found else None

    async def entry_by_id(self, contract_id: UUID) -> Entry:
        """Return a version that is known to exist."""
        found = await self._entries(_ENTRY + " AND contract.contract_id = %s", (contract_id,))
        assert found, "a ledger row names a contract that the registry does not hold"
        return found[0]

    async def entries(self, *, name: str | None = None) -> list[Entry]:
        """Return every version, or every version of one name, in publishing order."""
        statement = _ENTRY + " AND (%(name)s::text IS NULL OR contract.name = %(name)s)"
        return await self._entries(
            statement + " ORDER BY contract.name, contract.published_at", {"name": name}
        )

    async def _entries(self, statement: LiteralString, values: object) -> list[Entry]:
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(statement, values)  # type: ignore[arg-type]
            rows = await cursor.fetchall()
        for row in rows:
            row["contract"] = _contract(row.pop("document"))
            row["lifecycle"] = Lifecycle(row["lifecycle"])
        return [Entry(**row) for row in rows]

    async def publish(self, contract: Contract, *, by: str, review: Review | None) -> UUID:
        """Insert a publication, its state, and its content if that is new."""
        contract_id = new_uuid7()
        document = canonical_bytes(dict(contract.document)).decode()
        await self._connection.execute(
            """
            INSERT INTO contract_content (tenant_id, contract_digest, schema_hash, prompt_hash,
            document) VALUES (current_tenant(), %s, %s, %s, %s)
                ON CONFLICT DO NOTHING
            """,
            (contract.contract_digest, contract.schema_hash, contract.prompt_hash, document),
        )
        await self._connection.execute(
            """
            INSERT INTO contract (tenant_id, contract_id, name, version, contract_digest,
                                  reviewer, review_reason, published_by)
            VALUES (current_tenant(), %s, %s, %s, %s, %s, %s, %s)
            """,
            (
                contract_id,
                contract.name,
                str(contract.version),
                contract.contract_digest,
                review.reviewer if review else None,
                review.reason if review else None,
                by,
            ),
        )
        await self._connection.execute(
            "INSERT INTO contract_state (contract_id, tenant_id) VALUES (%s, current_tenant())",
            (contract_id,),
        )
        return contract_id

    # --- credentials ----------------------------------------------------------------------------

    async def create_credential(self, name: str) -> bool:
        """Make a credential slot at version 1; False when the name is taken."""
        made = await self._connection.execute(
            """
            INSERT INTO credential (tenant_id, name)
            VALUES (current_tenant(), %s)
                ON CONFLICT DO NOTHING
            """,
            (name,),
        )
        return made.rowcount == 1

    async def rotate_credential(self, name: str) -> Credential | None:
        """Raise a credential's version.

        Work that was planned under the old one is refused from now on.
        """
        return await self._one_credential(
            """
            UPDATE credential
               SET version = version + 1, rotated_at = clock_timestamp()
             WHERE tenant_id = current_tenant() AND name = %s
            RETURNING name, version, rotated_at
            """,
            name,
        )

    async def credential(self, name: str) -> Credential | None:
        """Return a credential and hold its version until the transaction ends, or None."""
        return await self._one_credential(
            """
            SELECT name, version, rotated_at
              FROM credential
             WHERE tenant_id = current_tenant() AND name = %s
               FOR SHARE
            """,
            name,
        )

    async def _one_credential(self, statement: LiteralString, name: str) -> Credential | None:
        async with self._connection.cursor(row_factory=class_row(Credential)) as cursor:
            await cursor.execute(statement, (name,))
            return await cursor.fetchone()

    async def credentials(self) -> list[Credential]:
        """Return every credential slot by name."""
        async with self._connection.cursor(row_factory=class_row(Credential)) as cursor:
            await cursor.execute(
                """
                SELECT name, version, rotated_at
                  FROM credential
                 WHERE tenant_id = current_tenant()
                 ORDER BY name
                """
            )
            return await cursor.fetchall()

    async def bind(self, contract_id: UUID, credential: Credential, *, by: str) -> None:
        """Attest a contract for a credential's version."""
        await self._connection.execute(
            """
            INSERT INTO credential_binding (contract_id, tenant_id, credential, version,
            attested_by) VALUES (%s, current_tenant(), %s, %s, %s)
                ON CONFLICT (contract_id) DO UPDATE
               SET version = excluded.version, attested_at = clock_timestamp(), attested_by =
               excluded.attested_by
            """,
            (contract_id, credential.name, credential.version, by),
        )

    # --- grants ---------------------------------------------------------------------------------

    async def grant(self, principal: str, capability: str, *, by: str) -> bool:
        """Grant a capability; False when it was granted already."""
        made = await self._connection.execute(
            """
            INSERT INTO capability_grant (tenant_id, principal, capability, granted_by)
            VALUES (current_tenant(), %s, %s, %s)
                ON CONFLICT (tenant_id, principal, capability) DO UPDATE
               SET granted_at = clock_timestamp(), granted_by = excluded.granted_by, revoked_at =
               NULL
             WHERE capability_grant.revoked_at IS NOT NULL
            """,
            (principal, capability, by),
        )
        return made.rowcount == 1

    async def revoke(self, principal: str, capability: str) -> bool:
        """Take a capability back; False when it was not granted."""
        taken = await self._connection.execute(
            """
            UPDATE capability_grant
               SET revoked_at = clock_timestamp()
             WHERE tenant_id = current_tenant() AND principal = %s AND capability = %s AND
             revoked_at IS NULL
            """,
            (principal, capability),
        )
        return taken.rowcount == 1

    async def grants(self, *, principal: str | None = None) -> list[Grant]:
        """Return every grant that holds, or those of one principal."""
        async with self._connection.cursor(row_factory=class_row(Grant)) as cursor:
            await cursor.execute(
                """
                SELECT principal, capability, granted_at, granted_by
                  FROM capability_grant
                 WHERE tenant_id = current_tenant() AND revoked_at IS NULL
                   AND (%(principal)s::text IS NULL OR principal = %(principal)s)
                 ORDER BY principal, capability
                """,
                {"principal": principal},
            )
            return await cursor.fetchall()

    async def granted(self, principal: str, capabilities: Sequence[str]) -> frozenset[str]:
        """Return those of the capabilities that the principal holds."""
        found = await self._connection.execute(
            """
            SELECT capability
              FROM capability_grant
             WHERE tenant_id = current_tenant() AND principal = %s AND capability = ANY (%s)
               AND revoked_at IS NULL
            """,
            (principal, list(capabilities)),
        )
        return frozenset(str(row[0]) for row in await found.fetchall())

    # --- pins -----------------------------------------------------------------------------------

    async def pin(
        self, contract_id: UUID, *, holder: str, ttl_seconds: float
    ) -> tuple[UUID, datetime]:
        """Hold a version for a while; returns the pin's id and the time at which it runs out."""
        pin_id = new_uuid7()
        made = await self._connection.execute(
            """
            INSERT INTO pin (pin_id, tenant_id, contract_id, holder, expires_at)
            VALUES (%s, current_tenant(), %s, %s, clock_timestamp() + make_interval(secs => %s))
            RETURNING expires_at
            """,
            (pin_id, contract_id, holder, ttl_seconds),
        )
        row = await made.fetchone()
        assert row is not None
        return pin_id, row[0]

    async def unpin(self, pin_id: UUID) -> bool:
        """Let a pin go; False when there is none."""
        gone = await self._connection.execute(
            "DELETE FROM pin WHERE tenant_id = current_tenant() AND pin_id = %s", (pin_id,)
        )
        return gone.rowcount == 1

    async def pins(self) -> list[Pin]:
        """Return every pin that holds."""
        async with self._connection.cursor(row_factory=class_row(Pin)) as cursor:
            await cursor.execute(
                """
                SELECT pin.pin_id, contract.name, contract.version, pin.holder, pin.expires_at
                  FROM pin
                  JOIN contract USING (contract_id)
                 WHERE pin.tenant_id = current_tenant() AND pin.expires_at > clock_timestamp()
                 ORDER BY pin.expires_at
                """
            )
            return await cursor.fetchall()

    # --- events ---------------------------------------------------------------------------------

    async def record(self, kind: str, subject: str, *, actor: str, facts: dict[str, Json]) -> None:
        """Append what was changed, by whom, in the transaction that changes it."""
        await self._connection.execute(
            """
            INSERT INTO registry_event (tenant_id, event_id, kind, subject, actor, facts)
            VALUES (current_tenant(), %s, %s, %s, %s, %s)
            """,
            (new_uuid7(), kind, subject, actor, Jsonb(facts)),
        )

"""Every SQL statement of the registry: rows in, values out.

Row-level security shows each transaction one tenant's rows, and those of the contracts that it
accepted from others; the statements name the tenant again, so that the keys that begin with it are
used.
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
           EXISTS (SELECT FROM contract_signature AS signature
                     JOIN publisher_key AS key USING (tenant_id, key_id)
                    WHERE signature.tenant_id = current_tenant()
                      AND signature.contract_id = contract.contract_id
                      AND key.revoked_at IS NULL) AS is_signed,
           EXISTS (SELECT FROM signature_requirement WHERE tenant_id = current_tenant())
               AS signature_required,
           coalesce(binding.version, 0) AS credential_bound,
           CASE WHEN credential.revoked_at IS NULL THEN credential.version END
               AS credential_current,
           share.owner, share.revoked_at AS withdrawn_at,
           clock_timestamp() AS read_at
      FROM contract
      JOIN contract_content AS content USING (tenant_id, contract_digest)
      JOIN contract_state AS state USING (contract_id)
      LEFT JOIN contract_closing AS closing USING (contract_id)
      LEFT JOIN credential_binding AS binding ON binding.tenant_id = current_tenant()
                                             AND binding.contract_id = contract.contract_id
      LEFT JOIN credential ON credential.tenant_id = binding.tenant_id
                          AND credential.name = binding.credential
      LEFT JOIN LATERAL share_of(CASE WHEN contract.tenant_id <> current_tenant()
                                      THEN contract.contract_id END) AS share ON true
"""
# A tenant's own version comes before any that is shared with it, and of those one at a time is
# accepted: nobody can put another in its place.
_NAMED: Final[LiteralString] = """
     WHERE contract.contract_id = (SELECT coalesce(
               (SELECT contract_id
                  FROM contract
                 WHERE tenant_id = current_tenant()
                   AND name = %(name)s AND version = %(version)s),
               (SELECT contract_id
                  FROM shared_contracts(%(name)s, %(version)s)
                 ORDER BY revoked_at IS NOT NULL, shared_at, contract_id
                 LIMIT 1)))
"""
_OWN: Final[LiteralString] = """
     WHERE contract.tenant_id = current_tenant()
       AND (%(name)s::text IS NULL OR contract.name = %(name)s)
     ORDER BY contract.name, contract.published_at
"""
_OFFERED: Final[LiteralString] = """
     WHERE contract.contract_id IN (
               SELECT contract_id FROM shared_contracts(%(name)s, NULL) WHERE revoked_at IS NULL)
     ORDER BY share.shared_at, contract.contract_id
"""

# Everyone takes these locks in this order. FOR SHARE, because FOR KEY SHARE (which a foreign key
# takes) does not stop a retirement that runs at the same time.
_LOCK_STATE: Final[LiteralString] = """
    SELECT FROM contract_state WHERE contract_id = %s FOR SHARE
"""
_LOCK_CREDENTIAL: Final[LiteralString] = """
    SELECT FROM credential
      JOIN credential_binding AS binding
        ON binding.tenant_id = credential.tenant_id AND binding.credential = credential.name
     WHERE binding.tenant_id = current_tenant() AND binding.contract_id = %s
       FOR SHARE OF credential, binding
"""
_LOCK_GRANTS: Final[LiteralString] = """
    SELECT FROM capability_grant
     WHERE tenant_id = current_tenant()
       AND principal = ANY (%(principals)s) AND capability = ANY (%(capabilities)s)
     ORDER BY principal, capability
       FOR SHARE
"""


# A revocation waits for what began before it. Nothing is held where no signature is asked for.
_LOCK_KEYS: Final[LiteralString] = """
    SELECT FROM publisher_key AS key
      JOIN contract_signature AS signature USING (tenant_id, key_id)
     WHERE key.tenant_id = current_tenant() AND key.revoked_at IS NULL
       AND signature.contract_id = %s
       AND EXISTS (SELECT FROM signature_requirement WHERE tenant_id = current_tenant())
     ORDER BY key.key_id
       FOR SHARE OF key
"""


@lru_cache(maxsize=1024)
def _contract(document: str) -> Contract:
    # Content never changes, so a parsed contract serves for as long as it is asked for.
    return Contract.parse(parse_json(document))


class RegistryStore:
    """The registry's tables, within one transaction of one tenant."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._contracts: dict[UUID, Contract] = {}

    # --- contracts ------------------------------------------------------------------------------

    async def lock(self, contract_id: UUID, capabilities: Sequence[str], *principals: str) -> None:
        """Hold a version's state, credential and signers, and grants, until the transaction ends.

        The grants are those of the capabilities to any of the principals.
        """
        asked = {"principals": list(principals), "capabilities": list(capabilities)}
        async with self._connection.pipeline():
            await self._connection.execute(_LOCK_STATE, (contract_id,))
            await self._connection.execute(_LOCK_CREDENTIAL, (contract_id,))
            await self._connection.execute(_LOCK_GRANTS, asked)
            await self._connection.execute(_LOCK_KEYS, (contract_id,))

    async def lock_name(self, name: str) -> None:
        """Let one publication of a name follow another."""
        await self._connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(current_tenant()::text || %s, 0))",
            (name,),
        )

    async def entry(self, name: str, version: str) -> Entry | None:
        """Return one version, or None: the tenant's own, or else the one that it accepted.

        One that is not offered any more is found too, where there is no other.
        """
        found = await self._entries(_ENTRY + _NAMED, {"name": name, "version": version})
        return found[0] if found else None

    async def entry_by_id(self, contract_id: UUID) -> Entry:
        """Return a version that is known to exist."""
        found = await self._entries(_ENTRY + " WHERE contract.contract_id = %s", (contract_id,))
        assert found, "a ledger row names a contract that the registry does not hold"
        return found[0]

    async def contract(self, contract_id: UUID) -> Contract:
        """Return the contract of a version that is known to exist.

        It never changes, as its standing does: so it is read once in a transaction.
        """
        if contract_id not in self._contracts:
            await self.entry_by_id(contract_id)
        return self._contracts[contract_id]

    async def entries(self, *, name: str | None = None) -> list[Entry]:
        """Return the tenant's own versions, or those of one name, in publishing order."""
        return await self._entries(_ENTRY + _OWN, {"name": name})

    async def offered(self, *, name: str | None = None) -> list[Entry]:
        """Return what the tenant accepted of what is shared with it, or that of one name."""
        return await self._entries(_ENTRY + _OFFERED, {"name": name})

    async def _entries(self, statement: LiteralString, values: object) -> list[Entry]:
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(statement, values)  # type: ignore[arg-type]
            rows = await cursor.fetchall()
        for row in rows:
            row["contract"] = contract = _contract(row.pop("document"))
            self._contracts[row["contract_id"]] = contract
            if contract.credential is None:
                row["credential_current"] = 0
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

    async def rotate_credential(self, name: str, *, also_revoked: bool) -> Credential | None:
        """Raise a credential's version; None where there is none, or it is revoked.

        Work that was planned under the old one is refused from now on. With ``also_revoked`` a
        revoked one is in force again.
        """
        await self._hold_credential(name)
        return await self._one_credential(
            """
            UPDATE credential
               SET version = version + 1, rotated_at = clock_timestamp(), revoked_at = NULL
             WHERE tenant_id = current_tenant() AND name = %s AND (%s OR revoked_at IS NULL)
            RETURNING name, version, rotated_at, revoked_at
            """,
            name,
            also_revoked,
        )

    async def revoke_credential(self, name: str) -> bool:
        """Take a credential out of force; False where none is in force under that name."""
        await self._hold_credential(name)
        taken = await self._connection.execute(
            """
            UPDATE credential
               SET revoked_at = clock_timestamp()
             WHERE tenant_id = current_tenant() AND name = %s AND revoked_at IS NULL
            """,
            (name,),
        )
        return taken.rowcount == 1

    async def _hold_credential(self, name: str) -> None:
        # What waits is dated after what it waited for: a change is stamped once its row is held,
        # in a statement of its own.
        await self._connection.execute(
            """
            SELECT FROM credential
             WHERE tenant_id = current_tenant() AND name = %s
               FOR NO KEY UPDATE
            """,
            (name,),
        )

    async def credential(self, name: str) -> Credential | None:
        """Return a credential and hold its version until the transaction ends, or None."""
        return await self._one_credential(
            """
            SELECT name, version, rotated_at, revoked_at
              FROM credential
             WHERE tenant_id = current_tenant() AND name = %s
               FOR SHARE
            """,
            name,
        )

    async def _one_credential(self, statement: LiteralString, *values: object) -> Credential | None:
        async with self._connection.cursor(row_factory=class_row(Credential)) as cursor:
            await cursor.execute(statement, values)
            return await cursor.fetchone()

    async def credentials(self) -> list[Credential]:
        """Return every credential slot by name."""
        async with self._connection.cursor(row_factory=class_row(Credential)) as cursor:
            await cursor.execute(
                """
                SELECT name, version, rotated_at, revoked_at
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
                ON CONFLICT (tenant_id, contract_id) DO UPDATE
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
        # As of a credential: stamped once the row is held.
        await self._connection.execute(
            """
            SELECT FROM capability_grant
             WHERE tenant_id = current_tenant() AND principal = %s AND capability = %s
               FOR NO KEY UPDATE
            """,
            (principal, capability),
        )
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

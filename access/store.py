"""Every SQL statement of access: rows in, values out."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, LiteralString
from uuid import UUID

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from access.token import ApiToken, Draft, Known, TokenState, prefix_of, token_hash
from kernel.ids import new_uuid7
from kernel.roles import Role
from kernel.scope import Connection
from tallystick.canonical import Json

_TOKEN: Final[LiteralString] = """
    SELECT token_id, name, prefix, principal, roles, created_at, created_by, expires_at,
           last_used_at, revoked_at, replaces,
           CASE WHEN revoked_at IS NOT NULL THEN 'revoked'
                WHEN expires_at <= clock_timestamp() THEN 'expired'
                ELSE 'active'
            END AS state
      FROM api_token
     WHERE tenant_id = current_tenant()
"""


class AccessStore:
    """The tokens of one transaction's tenant."""

    def __init__(self, connection: Connection) -> None:
        """Take the connection that a transaction runs on."""
        self._connection = connection

    async def authenticate(self, token: str) -> Known | None:
        """Return what is known of a token that is in force, of whichever tenant; else None."""
        cursor = self._connection.cursor(row_factory=dict_row)
        await cursor.execute("SELECT * FROM authenticate(%s)", (token_hash(token),))
        row = await cursor.fetchone()
        if row is None:
            return None
        values: dict[str, Any] = {**row, "roles": _roles(row)}
        return Known(**values)

    async def tenant_named(self, slug: str) -> UUID | None:
        """Return which tenant a slug names, or None."""
        cursor = await self._connection.execute("SELECT tenant_named(%s)", (slug,))
        row = await cursor.fetchone()
        return row[0] if row else None

    async def note_use(self, token_id: UUID) -> None:
        """Note that a token is in use, unless somebody else is noting it at this moment."""
        await self._connection.execute(
            """
            UPDATE api_token SET last_used_at = clock_timestamp()
             WHERE (tenant_id, token_id) IN (
                SELECT tenant_id, token_id FROM api_token
                 WHERE tenant_id = current_tenant() AND token_id = %s
                   FOR UPDATE SKIP LOCKED)
            """,
            (token_id,),
        )

    async def tokens(self, *, everything: bool) -> list[ApiToken]:
        """Return the tokens, oldest first: those in force, or all that ever were."""
        found = await self._tokens(_TOKEN + " ORDER BY token_id", ())
        return [one for one in found if everything or one.state is TokenState.ACTIVE]

    async def token(self, token_id: UUID) -> ApiToken | None:
        """Return one token."""
        found = await self._tokens(_TOKEN + " AND token_id = %s", (token_id,))
        return found[0] if found else None

    async def successor(self, token_id: UUID) -> ApiToken | None:
        """Return the token that one was rotated to."""
        found = await self._tokens(_TOKEN + " AND replaces = %s", (token_id,))
        return found[0] if found else None

    async def lock(self, token_id: UUID) -> None:
        """Hold a token until the transaction ends."""
        await self._tokens(_TOKEN + " AND token_id = %s FOR UPDATE", (token_id,))

    async def lock_administrators(self) -> list[ApiToken]:
        """Hold the tokens that can administer the tenant, and return those that are in force."""
        statement = _TOKEN + " AND 'admin' = ANY (roles) AND revoked_at IS NULL"
        found = await self._tokens(statement + " ORDER BY token_id FOR UPDATE", ())
        return [one for one in found if one.state is TokenState.ACTIVE]

    async def add(self, token: str, draft: Draft, *, by: str) -> ApiToken:
        """Keep a new token's hash."""
        token_id = new_uuid7()
        await self._connection.execute(
            """
            INSERT INTO api_token (tenant_id, token_id, token_hash, name, prefix, principal, roles,
                                   created_by, expires_at, replaces)
            VALUES (current_tenant(), %s, %s, %s, %s, %s, %s, %s, now() + %s, %s)
            """,
            (
                token_id,
                token_hash(token),
                draft.name,
                prefix_of(token),
                draft.principal,
                sorted(draft.roles),
                by,
                draft.lifetime,
                draft.replaces,
            ),
        )
        made = await self.token(token_id)
        assert made is not None
        return made

    async def revoke(self, token_id: UUID) -> None:
        """End a token."""
        await self._connection.execute(
            """
            UPDATE api_token SET revoked_at = clock_timestamp()
             WHERE tenant_id = current_tenant() AND token_id = %s
            """,
            (token_id,),
        )

    async def expire(self, token_id: UUID, after: timedelta) -> None:
        """Let a token expire after a time, or when it would have anyhow."""
        await self._connection.execute(
            """
            UPDATE api_token SET expires_at = least(expires_at, clock_timestamp() + %s)
             WHERE tenant_id = current_tenant() AND token_id = %s
            """,
            (after, token_id),
        )

    async def record(
        self, kind: str, token_id: UUID, *, actor: str, facts: Mapping[str, Json]
    ) -> None:
        """Append what was changed, by whom, in the transaction that changes it."""
        await self._connection.execute(
            """
            INSERT INTO registry_event (tenant_id, event_id, kind, subject, actor, facts)
            VALUES (current_tenant(), %s, %s, %s, %s, %s)
            """,
            (new_uuid7(), kind, str(token_id), actor, Jsonb(facts)),
        )

    async def _tokens(self, statement: LiteralString, values: tuple[object, ...]) -> list[ApiToken]:
        cursor = self._connection.cursor(row_factory=dict_row)
        await cursor.execute(statement, values)
        return [_token(row) for row in await cursor.fetchall()]


def _token(row: Mapping[str, Any]) -> ApiToken:
    values: dict[str, Any] = {**row, "roles": _roles(row), "state": TokenState(row["state"])}
    return ApiToken(**values)


def _roles(row: Mapping[str, Any]) -> frozenset[Role]:
    return frozenset(map(Role, row["roles"]))

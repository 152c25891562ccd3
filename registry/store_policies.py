"""Every SQL statement about policies: rows in, values out."""

from collections.abc import Sequence
from typing import Final, LiteralString

from psycopg.rows import class_row

from kernel.scope import Connection
from registry.policy import EVERYBODY, PolicyInForce, PolicyRevision
from tallystick.canonical import Json, canonical_bytes, parse_json
from tallystick.policy import Policy

_REVISION: Final[LiteralString] = """
    SELECT policy, revision.revision, revision.digest, revision.published_at, revision.published_by,
           head.revision AS current_revision,
           ARRAY(SELECT principal
                   FROM policy_assignment AS assignment
                  WHERE assignment.tenant_id = current_tenant()
                    AND assignment.policy = head.policy
                  ORDER BY principal) AS assigned_to
      FROM policy_head AS head
      JOIN policy_revision AS revision USING (tenant_id, policy)
     WHERE tenant_id = current_tenant()
"""
_OF_PRINCIPAL: Final[LiteralString] = """
    SELECT policy
      FROM policy_assignment
     WHERE tenant_id = current_tenant() AND principal IN (%(principal)s, %(everybody)s)
     ORDER BY principal = %(everybody)s
     LIMIT 1
"""
_IN_FORCE: Final[LiteralString] = f"""
    SELECT policy, revision, revision.digest
      FROM policy_head AS head
      JOIN policy_revision AS revision USING (tenant_id, policy, revision)
     WHERE tenant_id = current_tenant() AND policy = ({_OF_PRINCIPAL})
"""

# Dispatches share a policy's lock, and who changes what it decides takes it alone. It is no lock of
# the head's row: those who share a row go before whoever waits to change it, so that a busy policy
# could never be changed. Here they stand in line.
_LOCK: Final[LiteralString] = "hashtextextended(current_tenant()::text || ' policy ' || policy, 0)"
_SHARE: Final[LiteralString] = f"""
    SELECT policy, pg_advisory_xact_lock_shared({_LOCK}) FROM ({_OF_PRINCIPAL}) AS assigned
"""
_TAKE: Final[LiteralString] = f"""
    SELECT policy, pg_advisory_xact_lock({_LOCK}) FROM ({_OF_PRINCIPAL}) AS assigned
"""
_TAKE_NAMED: Final[LiteralString] = f"""
    SELECT pg_advisory_xact_lock({_LOCK}) FROM (SELECT %s::text AS policy) AS named
"""

_PARSED_MAX: Final = 256
# By digest, the least recently used first. The database holds each digest to its document, so that
# it does not matter whose it is.
_parsed: Final[dict[str, Policy]] = {}


class PolicyStore:
    """The registry's policies, within one transaction of one tenant."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # --- revisions ------------------------------------------------------------------------------

    async def take(self, policy: str) -> None:
        """Wait for all that goes by a policy or changes it, and let nothing more until the end."""
        await self._connection.execute(_TAKE_NAMED, (policy,))

    async def publish(self, policy: Policy, source: str, *, after: int, by: str) -> None:
        """Insert the revision that follows another, or the first after 0, and let it count.

        The caller took the policy.
        """
        document = canonical_bytes(dict(policy.document)).decode()
        values = (policy.id, after + 1, after or None, policy.digest, document, source, by)
        await self._connection.execute(
            """
            INSERT INTO policy_revision (tenant_id, policy, revision, previous_revision, digest,
                                         document, source, published_by)
            VALUES (current_tenant(), %s, %s, %s, %s, %s, %s, %s)
            """,
            values,
        )
        await self._connection.execute(
            """
            INSERT INTO policy_head (tenant_id, policy, revision)
            VALUES (current_tenant(), %s, %s)
                ON CONFLICT (tenant_id, policy) DO UPDATE SET revision = excluded.revision
            """,
            (policy.id, after + 1),
        )

    async def revision(self, policy: str, number: int | None = None) -> PolicyRevision | None:
        """Return one revision of a policy, or the one that counts; None when there is none."""
        found = await self._revisions(
            _REVISION + " AND policy = %s AND revision.revision = coalesce(%s, head.revision)",
            (policy, number),
        )
        return found[0] if found else None

    async def heads(self) -> list[PolicyRevision]:
        """Return of every policy the revision that counts, by name."""
        return await self._revisions(
            _REVISION + " AND revision.revision = head.revision ORDER BY policy"
        )

    async def _revisions(
        self, statement: LiteralString, values: Sequence[object] = ()
    ) -> list[PolicyRevision]:
        async with self._connection.cursor(row_factory=class_row(PolicyRevision)) as cursor:
            await cursor.execute(statement, values)
            return await cursor.fetchall()

    async def source(self, policy: str, revision: int) -> str:
        """Return the text of a revision as it came."""
        return await self._text(
            """
            SELECT source
              FROM policy_revision
             WHERE tenant_id = current_tenant() AND policy = %s AND revision = %s
            """,
            (policy, revision),
        )

    async def _text(self, statement: LiteralString, values: Sequence[object]) -> str:
        cursor = await self._connection.execute(statement, values)
        row = await cursor.fetchone()
        assert row is not None, "a revision that was found stays"
        return row[0]

    # --- assignments ----------------------------------------------------------------------------

    async def assignment(self, principal: str) -> str | None:
        """Return the policy that is assigned to a principal itself, or to everybody; or None."""
        cursor = await self._connection.execute(
            """
            SELECT policy
              FROM policy_assignment
             WHERE tenant_id = current_tenant() AND principal = %s
            """,
            (principal,),
        )
        row = await cursor.fetchone()
        return row[0] if row else None

    async def assign(self, principal: str, policy: str, *, by: str) -> None:
        """Assign a policy to a principal, or to everybody, in the place of another.

        The caller took what is in force for them.
        """
        await self._connection.execute(
            """
            INSERT INTO policy_assignment (tenant_id, principal, policy, assigned_by)
            VALUES (current_tenant(), %s, %s, %s)
                ON CONFLICT (tenant_id, principal) DO UPDATE
               SET policy = excluded.policy, assigned_at = clock_timestamp(),
                   assigned_by = excluded.assigned_by
            """,
            (principal, policy, by),
        )

    async def unassign(self, principal: str) -> None:
        """Leave a principal, or everybody, without a policy of their own. As `assign`."""
        await self._connection.execute(
            "DELETE FROM policy_assignment WHERE tenant_id = current_tenant() AND principal = %s",
            (principal,),
        )

    # --- what is in force -----------------------------------------------------------------------

    async def policy_in_force(self, principal: str, *, lock: bool) -> PolicyInForce | None:
        """Return the policy that decides of a principal's calls, or None where there is none.

        With ``lock`` it stays so until the transaction ends: a publication of that policy and a
        change of the assignment that puts it in force wait for that. Where there is none there is
        nothing to hold: the first assignment awaits nobody.
        """
        if not lock:
            return await self._in_force(principal)
        while (held := await self._assigned(_SHARE, principal)) is not None:
            found = await self._in_force(principal)
            # Else another was put in force while this waited, and of that nothing is held yet.
            if found is None or found.name == held:
                return found
        return None

    async def take_in_force(self, principal: str) -> None:
        """Wait for all that goes by what is in force for a principal, as `take`.

        The caller let one change of assignments follow another.
        """
        await self._assigned(_TAKE, principal)

    async def _assigned(self, statement: LiteralString, principal: str) -> str | None:
        cursor = await self._connection.execute(statement, _of(principal))
        row = await cursor.fetchone()
        return row[0] if row else None

    async def _in_force(self, principal: str) -> PolicyInForce | None:
        cursor = await self._connection.execute(_IN_FORCE, _of(principal))
        row = await cursor.fetchone()
        if row is None:
            return None
        name, revision, digest = row
        return PolicyInForce(await self._read(name, revision, digest), name, revision)

    async def recorded(self, policy: str, revision: int) -> Policy:
        """Return the policy that a revision is, which is known to exist."""
        digest = await self._text(
            """
            SELECT digest
              FROM policy_revision
             WHERE tenant_id = current_tenant() AND policy = %s AND revision = %s
            """,
            (policy, revision),
        )
        return await self._read(policy, revision, digest)

    async def _read(self, name: str, revision: int, digest: str) -> Policy:
        policy = _parsed.pop(digest, None) or Policy.of(await self._document(name, revision))
        _parsed[digest] = policy
        if len(_parsed) > _PARSED_MAX:
            del _parsed[next(iter(_parsed))]
        return policy

    async def _document(self, policy: str, revision: int) -> Json:
        text = await self._text(
            """
            SELECT document
              FROM policy_revision
             WHERE tenant_id = current_tenant() AND policy = %s AND revision = %s
            """,
            (policy, revision),
        )
        return parse_json(text)


def _of(principal: str) -> dict[str, str]:
    return {"principal": principal, "everybody": EVERYBODY}

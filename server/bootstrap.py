"""Prepares a database for the service: schema, admin token, keys. Runs as the database's owner."""

import hmac
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

import psycopg
from psycopg import errors
from psycopg.rows import class_row

from access.token import new_token, prefix_of, token_hash
from kernel.ids import new_uuid7
from kernel.keys import KeyRing
from kernel.roles import Role
from server.home import admin_token_file, write_once
from server.migration import newest, revision, upgrade
from tallystick.errors import InvalidRequest, NotFound, RegistryUnavailable

ADMIN = "admin"
_OWNER = "owner"  # of the database: who works on the service's own machine
DEFAULT_TENANT = "default"
# Whoever can guess a token has it: a file that was emptied by accident is none.
_TOKEN_CHARS_MIN = 32


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant as this machine lists it."""

    tenant_id: UUID
    slug: str
    created_at: datetime


def prepare(database_url: str, home: Path, keys: KeyRing) -> None:
    """Bring a database to the newest schema, and make sure that it knows our admin token and keys.

    Raises:
        RegistryUnavailable: The database cannot be reached, or belongs to another key file, or the
            file of the admin token holds none.
    """
    with _reaching():
        if revision(database_url) != newest():
            upgrade(database_url)
        with psycopg.connect(database_url, connect_timeout=10) as connection:
            connection.execute("SELECT ensure_partitions(3)")
            connection.execute("SELECT audit_rebase()")
            _register_keys(connection, keys)
            _register_admin(connection, home)


def tenants(database_url: str) -> list[Tenant]:
    """Return every tenant of a prepared database, by its slug. Raises RegistryUnavailable."""
    with _reaching(), psycopg.connect(database_url, connect_timeout=10) as connection:
        cursor = connection.cursor(row_factory=class_row(Tenant))
        cursor.execute("SELECT tenant_id, slug, created_at FROM tenant ORDER BY slug")
        return cursor.fetchall()


def create_tenant(database_url: str, slug: str) -> str:
    """Make a tenant in a prepared database, and return its first admin token.

    Raises:
        InvalidRequest: The slug is no label, or there is a tenant of this name.
        RegistryUnavailable: The database cannot be reached.
    """
    with _reaching(), psycopg.connect(database_url, connect_timeout=10) as connection:
        try:
            connection.execute(
                "INSERT INTO tenant (tenant_id, slug) VALUES (%s, %s)", (new_uuid7(), slug)
            )
        except errors.UniqueViolation as fault:
            raise InvalidRequest(f"There is a tenant {slug!r} already.") from fault
        except (errors.CheckViolation, psycopg.DataError) as fault:
            raise InvalidRequest(
                "A tenant's name has at most 63 of a-z, 0-9 and '-', and does not begin with '-'."
            ) from fault
        return _admit(connection, slug)


def recover_tenant(database_url: str, slug: str) -> str:
    """Make one more admin token for a tenant that has lost its own, and return it.

    Raises:
        NotFound: There is no such tenant.
        RegistryUnavailable: The database cannot be reached.
    """
    with _reaching(), psycopg.connect(database_url, connect_timeout=10) as connection:
        return _admit(connection, slug)


@contextmanager
def _reaching() -> Generator[None]:
    try:
        yield
    except (psycopg.OperationalError, psycopg.ProgrammingError) as fault:
        # Its own words may quote the address, and with it the password.
        raise RegistryUnavailable("The database cannot be reached or prepared.") from fault


def _admit(connection: psycopg.Connection, slug: str) -> str:
    token = new_token()
    if not _add_admin(connection, slug, token):
        raise NotFound(f"There is no tenant {slug!r}.")
    return token


def _add_admin(connection: psycopg.Connection, slug: str, token: str) -> bool:
    """Keep an admin token of a tenant, and say so in its log. Returns whether it is new."""
    token_id = new_uuid7()
    added = connection.execute(
        """
        INSERT INTO api_token (tenant_id, token_id, token_hash, name, prefix, principal, roles,
                               created_by)
        SELECT tenant_id, %(id)s, %(hash)s, %(admin)s, %(prefix)s, %(admin)s, ARRAY[%(role)s],
               %(owner)s
          FROM tenant
         WHERE slug = %(slug)s
            ON CONFLICT (token_hash) DO NOTHING
        """,
        {
            "id": token_id,
            "hash": token_hash(token),
            "prefix": prefix_of(token),
            "admin": ADMIN,
            "role": Role.ADMIN,
            "owner": _OWNER,
            "slug": slug,
        },
    )
    if added.rowcount == 0:
        return False
    connection.execute(
        """
        INSERT INTO registry_event (tenant_id, event_id, kind, subject, actor, facts)
        SELECT tenant_id, %s, 'token_created', token_id::text, created_by,
               jsonb_build_object('name', name, 'principal', principal, 'roles', roles,
                                  'expires_at', expires_at, 'replaces', replaces)
          FROM api_token
         WHERE token_id = %s
        """,
        (new_uuid7(), token_id),
    )
    return True


def _register_keys(connection: psycopg.Connection, keys: KeyRing) -> None:
    for key_id in keys.keys:
        connection.execute(
            "INSERT INTO service_key (key_id, check_value) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            (key_id, keys.check_value(key_id)),
        )
    for key_id, check_value in connection.execute("SELECT key_id, check_value FROM service_key"):
        if key_id not in keys.keys or not hmac.compare_digest(
            bytes(check_value), keys.check_value(key_id)
        ):
            raise RegistryUnavailable(
                f"The database was written with another key {key_id!r} than the key file holds."
                " Start the service with the key file that belongs to this database."
            )


def _register_admin(connection: psycopg.Connection, home: Path) -> None:
    """Make the admin token at the first start, in a file that only its owner can read."""
    path = admin_token_file(home)
    known = connection.execute(
        "SELECT count(*) FROM api_token JOIN tenant USING (tenant_id) WHERE slug = %s",
        (DEFAULT_TENANT,),
    ).fetchone()
    if known != (0,) and not path.exists():
        return  # The token was made elsewhere; who holds it gives it to this machine's clients.
    token = write_once(path, f"{new_token()}\n").strip()
    if len(token) < _TOKEN_CHARS_MIN or not token.isascii():
        raise RegistryUnavailable(f"{path} does not hold a token.")
    _add_admin(connection, DEFAULT_TENANT, token)

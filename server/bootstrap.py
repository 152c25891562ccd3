"""Prepares a database for the service: schema, admin token, keys. Runs as the database's owner."""

import hashlib
import secrets
from pathlib import Path

import psycopg

from kernel.ids import new_uuid7
from kernel.keys import KeyRing
from server.home import admin_token_file, write_once
from server.migration import newest, revision, upgrade
from tallystick.errors import RegistryUnavailable

ADMIN = "admin"
# Whoever can guess a token has it: a file that was emptied by accident is none.
_TOKEN_CHARS_MIN = 32


def token_hash(token: str) -> bytes:
    """Return what the database keeps of a token: a random one needs no salt and no slow hash."""
    return hashlib.sha256(token.encode()).digest()


def prepare(database_url: str, home: Path, keys: KeyRing) -> None:
    """Bring a database to the newest schema, and make sure that it knows our admin token and keys.

    Raises:
        RegistryUnavailable: The database cannot be reached, or belongs to another key file, or the
            file of the admin token holds none.
    """
    try:
        if revision(database_url) != newest():
            upgrade(database_url)
        with psycopg.connect(database_url, connect_timeout=10) as connection:
            connection.execute("SELECT ensure_partitions(3)")
            _register_keys(connection, keys)
            _register_admin(connection, home)
    except (psycopg.OperationalError, psycopg.ProgrammingError) as fault:
        # Its own words may quote the address, and with it the password.
        raise RegistryUnavailable("The database cannot be reached or prepared.") from fault


def _register_keys(connection: psycopg.Connection, keys: KeyRing) -> None:
    for key_id in keys.keys:
        connection.execute(
            "INSERT INTO service_key (key_id, check_value) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            (key_id, keys.check_value(key_id)),
        )
    for key_id, check_value in connection.execute("SELECT key_id, check_value FROM service_key"):
        if key_id not in keys.keys or bytes(check_value) != keys.check_value(key_id):
            raise RegistryUnavailable(
                f"The database was written with another key {key_id!r} than the key file holds."
                " Start the service with the key file that belongs to this database."
            )


def _register_admin(connection: psycopg.Connection, home: Path) -> None:
    """Make the admin token at the first start, in a file that only its owner can read."""
    path = admin_token_file(home)
    known = connection.execute(
        "SELECT count(*) FROM api_token WHERE role = %s", (ADMIN,)
    ).fetchone()
    if known != (0,) and not path.exists():
        return  # The token was made elsewhere; who holds it gives it to this machine's clients.
    token = write_once(path, f"tk_{secrets.token_urlsafe(32)}\n").strip()
    if len(token) < _TOKEN_CHARS_MIN or not token.isascii():
        raise RegistryUnavailable(f"{path} does not hold a token.")
    connection.execute(
        """
        INSERT INTO api_token (tenant_id, token_id, token_hash, principal, role)
        SELECT tenant_id, %s, %s, %s, %s
          FROM tenant
         WHERE slug = 'default'
            ON CONFLICT (token_hash) DO NOTHING
        """,
        (new_uuid7(), token_hash(token), ADMIN, ADMIN),
    )

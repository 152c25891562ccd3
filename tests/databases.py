"""Databases for tests: how each is made, and how it is given back.

As in production, a database belongs to a role that is no superuser: what row-level security and
privileges allow is what the tests see.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, LiteralString, Self
from uuid import uuid4

import psycopg
from psycopg.sql import SQL, Composed, Identifier
from sqlalchemy import make_url

NewDatabase = Callable[..., str]

_NO_WAIT: Final = "-c synchronous_commit=off"
_POLL_SECONDS: Final = 0.002
_LEAVE_SECONDS_MAX: Final = 30


@contextmanager
def database(server_url: str, *, template: str = "template1", owner: str = "") -> Iterator[str]:
    """Make a database on a server, and drop it at the end, whoever is connected.

    The address is its owner's: a role of `an_owner`, or else the superuser.
    """
    name = _new_name()
    administer(server_url, _make(name, template, owner))
    try:
        yield _address(server_url, name, owner)
    finally:
        administer(server_url, _drop(name))


def an_owner(server_url: str, may: LiteralString) -> str:
    """Make a role that can log in with its `password_of`.

    It does so at once, and its commits wait for no disk: a test connects and commits often.
    """
    name = _new_name()
    make = SQL("CREATE ROLE {} LOGIN PASSWORD {} " + may).format(
        Identifier(name), password_of(name)
    )
    hasten = SQL("ALTER ROLE {} SET synchronous_commit = off").format(Identifier(name))
    with psycopg.connect(server_url, autocommit=True) as connection:
        # PostgreSQL 15 has no such setting.
        iterations = "SELECT set_config(name, '1', false) FROM pg_settings WHERE name = %s"
        connection.execute(iterations, ("scram_iterations",))
        connection.execute(make)
        connection.execute(hasten)
    return name


def password_of(owner: str) -> str:
    return f"password-of-{owner}"


def administer(server_url: str, statement: SQL | Composed) -> None:
    with psycopg.connect(server_url, autocommit=True, connect_timeout=10) as connection:
        connection.execute(statement)


def name_of(url: str) -> str:
    """Return the name of the database that an address leads to."""
    return make_url(url).database or ""


def _new_name() -> str:
    return f"test_{uuid4().hex}"


def _make(name: str, template: str, owner: str) -> Composed:
    make = SQL("CREATE DATABASE {} TEMPLATE {}").format(Identifier(name), Identifier(template))
    return make + SQL(" OWNER {}").format(Identifier(owner)) if owner else make


def _drop(name: str) -> Composed:
    return SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name))


def _address(server_url: str, name: str, owner: str = "") -> str:
    url = make_url(server_url).set(database=name)
    if owner:
        url = url.set(username=owner, password=password_of(owner))
    return url.render_as_string(hide_password=False)


class Clones:
    """Databases like a template, each lent to one test at a time.

    To make a database and to drop it costs more than what most tests do in it. Where a test leaves
    the schema as it was, the next one gets the same database: with the rows that it had at first,
    and under a new name, so that whoever still holds the old address reaches nothing.
    """

    def __init__(self, server: psycopg.Connection, url: str, template: str, owner: str) -> None:
        self._server = server
        self._server_url = url
        self._template = template
        self._owner = owner
        self._made: set[str] = set()
        self._free: list[str] = []
        with self._inside(template) as connection:
            self._schema = _schema(connection)
            self._rows = {table: _read(connection, table) for table in _written(connection)}

    @classmethod
    @contextmanager
    def of(cls, server_url: str, template: str, *, owner: str) -> Iterator[Self]:
        """Read a template, which must stay as it is; at the end drop whatever was made.

        The owner is a role of `an_owner`.
        """
        with psycopg.connect(server_url, autocommit=True, options=_NO_WAIT) as server:
            clones = cls(server, server_url, template, owner)
            try:
                yield clones
            finally:
                for name in clones._made:
                    server.execute(_drop(name))

    @contextmanager
    def lent(self) -> Iterator[str]:
        """Lend a database, by the address that its owner has."""
        name = self._free.pop() if self._free else self._new()
        try:
            yield _address(self._server_url, name, self._owner)
        finally:
            name = self._renamed(name)
            if self._restored(name):
                self._free.append(name)

    def _new(self) -> str:
        name = _new_name()
        self._server.execute(_make(name, self._template, self._owner))
        self._made.add(name)
        return name

    def _renamed(self, name: str) -> str:
        """Disconnect everybody from a database, and give it a new name."""
        until = time.monotonic() + _LEAVE_SECONDS_MAX
        while self._server.execute(_DISCONNECT, (name,)).rowcount and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        new = _new_name()
        rename = SQL("ALTER DATABASE {} RENAME TO {}")
        self._server.execute(rename.format(Identifier(name), Identifier(new)))
        self._made.remove(name)
        self._made.add(new)
        return new

    def _restored(self, name: str) -> bool:
        """Give a database the rows of the template, unless its schema is another by now."""
        with self._inside(name) as connection:
            if _schema(connection) != self._schema:
                return False
            connection.execute("SELECT pg_stat_reset()")
            # No trigger may keep or note what is taken away here.
            connection.execute("SET LOCAL session_replication_role = replica")
            for table in _written(connection):
                connection.execute(SQL("DELETE FROM {}").format(Identifier(*table)))
            for table, rows in self._rows.items():
                fill = SQL("COPY {} FROM STDIN").format(Identifier(*table))
                with connection.cursor().copy(fill) as copy:
                    copy.write(rows)
        return True

    def _inside(self, name: str) -> psycopg.Connection:
        return psycopg.connect(_address(self._server_url, name), options=_NO_WAIT)


_DISCONNECT: Final = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"

# Each of these rows tells which transaction wrote it: the schema is the same as long as none is new
# and none is missing. What VACUUM and ANALYZE note here, they note without a transaction.
_CATALOGS: Final[tuple[LiteralString, ...]] = (
    "pg_attrdef",
    "pg_attribute",
    "pg_class",
    "pg_constraint",
    "pg_default_acl",
    "pg_depend",
    "pg_description",
    "pg_event_trigger",
    "pg_extension",
    "pg_index",
    "pg_inherits",
    "pg_namespace",
    "pg_policy",
    "pg_proc",
    "pg_rewrite",
    "pg_sequence",
    "pg_trigger",
    "pg_type",
)
_SCHEMA: Final[LiteralString] = " UNION ALL ".join(
    f"SELECT count(*), max(xmin::text::bigint) FROM {catalog}" for catalog in _CATALOGS
)


def _schema(connection: psycopg.Connection) -> list[tuple[int, int]]:
    return connection.execute(_SCHEMA).fetchall()


def _written(connection: psycopg.Connection) -> list[tuple[str, str]]:
    """Return the schema and the name of each table that has pages: no other ever had a row.

    PostgreSQL's own have a number below 16384.
    """
    return connection.execute(
        "SELECT relnamespace::regnamespace::text, relname::text FROM pg_class"
        " WHERE relkind = 'r' AND oid >= 16384 AND pg_relation_size(oid) > 0"
    ).fetchall()


def _read(connection: psycopg.Connection, table: tuple[str, str]) -> bytes:
    query = SQL("COPY (SELECT * FROM {}) TO STDOUT").format(Identifier(*table))
    with connection.cursor().copy(query) as copy:
        return b"".join(bytes(piece) for piece in copy)

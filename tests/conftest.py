"""PostgreSQL for tests: one server a run, and a database of its own for each test that asks.

As in production, a database belongs to a role that is no superuser: what row-level security and
privileges allow is what the tests see.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import LiteralString
from uuid import uuid4

import psycopg
import pytest
from psycopg.sql import SQL, Composed, Identifier
from sqlalchemy import make_url

from server.embedded import EmbeddedPostgres
from server.migration import upgrade

pytest_plugins = ["tests.fixtures"]

NewDatabase = Callable[..., str]


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a server, as a superuser: the one that is given, or an embedded one."""
    if given := os.environ.get("TEST_DATABASE_URL"):
        yield given
        return
    # The workers of a run share the folder and so the server; it stops after the last of them.
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with EmbeddedPostgres.attach(folder / "home") as postgres:
        yield postgres.url


@pytest.fixture(scope="session")
def database_owner(postgres_url: str) -> Iterator[str]:
    """Return the role that databases belong to: it may do nothing else on the server."""
    administer(postgres_url, SQL(_SERVICE_ROLE))
    owner = an_owner(postgres_url, "NOCREATEROLE")
    administer(postgres_url, SQL("GRANT tallystick_service TO {}").format(Identifier(owner)))
    yield owner
    administer(postgres_url, SQL("DROP ROLE {}").format(Identifier(owner)))


# Who may not make roles needs it to be there; two workers of a run make it at the same moment.
_SERVICE_ROLE: LiteralString = """
    DO $$
    BEGIN
        CREATE ROLE tallystick_service;
    EXCEPTION
        WHEN duplicate_object OR unique_violation THEN NULL;
    END
    $$
"""


@pytest.fixture(scope="session")
def template_database(postgres_url: str, database_owner: str) -> Iterator[str]:
    """Return the name of a database with the newest schema, to be cloned and never connected to."""
    with database(postgres_url, owner=database_owner) as url:
        upgrade(url)
        yield name_of(url)


@pytest.fixture
def new_database(postgres_url: str, database_owner: str) -> Iterator[NewDatabase]:
    """Return what makes a database and returns its address: ``new_database(template=)``."""
    with ExitStack() as stack:
        yield lambda **choices: stack.enter_context(
            database(postgres_url, owner=database_owner, **choices)
        )


@pytest.fixture
def database_url(new_database: NewDatabase, template_database: str) -> str:
    """Return the address of a fresh database with the newest schema, as its owner."""
    return new_database(template=template_database)


@contextmanager
def database(server_url: str, *, template: str = "template1", owner: str = "") -> Iterator[str]:
    """Make a database on a server, and drop it at the end, whoever is connected.

    The address is its owner's: a role of `an_owner`, or else the superuser.
    """
    name = f"test_{uuid4().hex}"
    url = make_url(server_url).set(database=name)
    make = SQL("CREATE DATABASE {} TEMPLATE {}").format(Identifier(name), Identifier(template))
    if owner:
        make += SQL(" OWNER {}").format(Identifier(owner))
        url = url.set(username=owner, password=password_of(owner))
    administer(server_url, make)
    try:
        yield url.render_as_string(hide_password=False)
    finally:
        administer(server_url, SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


def an_owner(server_url: str, may: LiteralString) -> str:
    """Make a role that can log in with its `password_of`."""
    name = f"test_{uuid4().hex}"
    make = SQL("CREATE ROLE {} LOGIN PASSWORD {} " + may)
    administer(server_url, make.format(Identifier(name), password_of(name)))
    return name


def password_of(owner: str) -> str:
    return f"password-of-{owner}"


def administer(server_url: str, statement: SQL | Composed) -> None:
    with psycopg.connect(server_url, autocommit=True, connect_timeout=10) as connection:
        connection.execute(statement)


def name_of(url: str) -> str:
    """Return the name of the database that an address leads to."""
    return make_url(url).database or ""

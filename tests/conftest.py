"""PostgreSQL for tests: one server a run, and a database of its own for each test that asks."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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
def template_database(postgres_url: str) -> Iterator[str]:
    """Return the name of a database with the newest schema, to be cloned and never connected to."""
    with database(postgres_url) as url:
        upgrade(url)
        yield name_of(url)


@pytest.fixture
def new_database(postgres_url: str) -> Iterator[NewDatabase]:
    """Return what makes a database and returns its address: ``new_database(template=, owner=)``."""
    with ExitStack() as stack:
        yield lambda **choices: stack.enter_context(database(postgres_url, **choices))


@pytest.fixture
def database_url(new_database: NewDatabase, template_database: str) -> str:
    """Return the address of a fresh database with the newest schema, as a superuser."""
    return new_database(template=template_database)


@contextmanager
def database(server_url: str, *, template: str = "template1", owner: str = "") -> Iterator[str]:
    """Make a database on a server, and drop it at the end, whoever is connected."""
    name = f"test_{uuid4().hex}"
    make = SQL("CREATE DATABASE {} TEMPLATE {}").format(Identifier(name), Identifier(template))
    administer(server_url, make)
    if owner:
        give = SQL("ALTER DATABASE {} OWNER TO {}").format(Identifier(name), Identifier(owner))
        administer(server_url, give)
    try:
        yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
    finally:
        administer(server_url, SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


def administer(server_url: str, statement: SQL | Composed) -> None:
    with psycopg.connect(server_url, autocommit=True, connect_timeout=10) as connection:
        connection.execute(statement)


def name_of(url: str) -> str:
    """Return the name of the database that an address leads to."""
    return make_url(url).database or ""

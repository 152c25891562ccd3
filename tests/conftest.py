"""PostgreSQL for tests: one server a run, and a database of its own for each test that asks."""

import gc
import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import LiteralString

import pytest
from psycopg.sql import SQL, Identifier

from server.embedded import EmbeddedPostgres
from server.migration import upgrade
from tests.databases import Clones, NewDatabase, administer, an_owner, database, name_of

pytest_plugins = ["tests.fixtures"]


def pytest_sessionstart() -> None:
    """Collect no garbage while the tests are read: next to all that comes stays."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage again, and look for none among what was read."""
    gc.freeze()
    gc.enable()


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
    """Return what makes a database with nothing in it, and returns its address."""
    with ExitStack() as stack:
        yield lambda **choices: stack.enter_context(
            database(postgres_url, owner=database_owner, **choices)
        )


@pytest.fixture(scope="session")
def clones(postgres_url: str, template_database: str, database_owner: str) -> Iterator[Clones]:
    """Return what lends databases with the newest schema."""
    with Clones.of(postgres_url, template_database, owner=database_owner) as clones:
        yield clones


@pytest.fixture
def database_url(clones: Clones) -> Iterator[str]:
    """Return the address of a fresh database with the newest schema, as its owner."""
    with clones.lent() as url:
        yield url

"""The databases that tests get: each is as fresh as the first, and nobody else's."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.databases import Clones
from tests.fixtures import owning


@pytest.fixture
def own(postgres_url: str, template_database: str, database_owner: str) -> Iterator[Clones]:
    """Return clones of this test's own, so that it knows which database comes next."""
    with Clones.of(postgres_url, template_database, owner=database_owner) as clones:
        yield clones


async def test_what_a_test_wrote_is_gone_for_the_next(own: Clones):
    with own.lent() as url:
        async with owning(url) as owner:
            first, oid = await owner.dump(), await owner.one(OID)
            await owner.tenant("other")
            await owner.rows("DELETE FROM legal_transition WHERE transition = 'T8'")
            await owner.rows("UPDATE audit_progress SET sealed_to = 7")
            assert await owner.dump() != first
    with own.lent() as url:
        async with owning(url) as owner:
            assert await owner.one(OID) == oid
            assert await owner.dump() == first


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE pin ADD COLUMN note text",
        "ALTER TABLE effect_open DISABLE TRIGGER USER",
        "DROP FUNCTION uuid_at(timestamptz) CASCADE",
        "CREATE FUNCTION mine() RETURNS integer LANGUAGE sql RETURN 1",
    ],
)
async def test_a_schema_that_a_test_changed_is_nobody_elses(own: Clones, change: str):
    with own.lent() as url:
        async with owning(url) as owner:
            oid = await owner.one(OID)
            await owner.rows(change)
    with own.lent() as url:
        async with owning(url) as owner:
            assert await owner.one(OID) != oid


async def test_who_holds_the_address_of_an_earlier_test_reaches_nothing(own: Clones):
    with own.lent() as url:
        earlier = psycopg.connect(url, autocommit=True)
    with pytest.raises(psycopg.OperationalError):
        earlier.execute("SELECT 1")
    with own.lent(), pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


OID = "SELECT oid FROM pg_database WHERE datname = current_database()"

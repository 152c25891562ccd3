"""The migrations make what the code declares: in one go or in steps, for any owner, in company."""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg.sql import SQL, Identifier
from sqlalchemy import create_engine, make_url
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import ForeignKeyConstraint, SchemaItem

import migrations
from server.embedded import EmbeddedPostgres
from server.migration import downgrade, newest, revision, upgrade
from server.tables import SCHEMA
from tests.databases import NewDatabase, administer, an_owner, database

SCRIPTS = ScriptDirectory(str(Path(migrations.__file__).parent))
REVISIONS = [script.revision for script in reversed(list(SCRIPTS.walk_revisions()))]
POLL_SECONDS = 0.05

# What PostgreSQL knows of the tables: also what alembic does not compare, such as primary keys.
TABLES = """
    SELECT class.relname, 'table', '',
           concat_ws(' ', relkind, reloptions, pg_get_partkeydef(class.oid))
      FROM pg_class AS class
     WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace
     UNION ALL
    SELECT class.relname, 'column', attname,
           concat_ws(' ', format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid))
      FROM pg_class AS class
      JOIN pg_attribute ON attrelid = class.oid AND attnum > 0 AND NOT attisdropped
      LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
     WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace
     UNION ALL
    SELECT class.relname, 'key', conname, pg_get_constraintdef(pg_constraint.oid)
      FROM pg_class AS class
      JOIN pg_constraint ON conrelid = class.oid AND contype IN ('p', 'u', 'f') AND conparentid = 0
     WHERE NOT relispartition AND relnamespace = 'public'::regnamespace
     UNION ALL
    SELECT class.relname, 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid)
      FROM pg_class AS class
      JOIN pg_index ON indrelid = class.oid
     WHERE NOT relispartition AND relnamespace = 'public'::regnamespace
"""
NAMES = """
    SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
     UNION ALL
    SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace
     UNION ALL
    SELECT tgrelid::regclass || ': ' || tgname FROM pg_trigger WHERE NOT tgisinternal
     UNION ALL
    SELECT polrelid::regclass || ': ' || polname FROM pg_policy
"""

Rows = set[tuple[str, ...]]
ALEMBICS: Rows = {("alembic_version",), ("alembic_version_pkc",)}


def ask(url: str, statement: str) -> Rows:
    with psycopg.connect(url, connect_timeout=10) as connection:
        return set(connection.execute(statement.encode()))


def declared(url: str) -> Rows:
    """Return the tables that the declarations make in an empty database."""
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.begin() as connection:
        # Defaults call them: functions stand in the migrations alone.
        connection.exec_driver_sql(SCRIPTS.get_revision("0007").module.POSITION)
        connection.exec_driver_sql(SCRIPTS.get_revision("0013").module.CURRENT_TIMELINE)
        SCHEMA.create_all(connection)
    return ask(url, TABLES)


def differences(url: str) -> tuple[list[object], set[str]]:
    """Return what alembic would change to make the database what is declared, and what it ignores.

    Ignored are partitions, which are made as time goes on, and the foreign keys to each of them
    that PostgreSQL adds to the one that was declared.
    """
    ignored: set[str] = set()
    partitions = {name for (name,) in ask(url, "SELECT relname FROM pg_class WHERE relispartition")}

    def matters(
        item: SchemaItem, name: str | None, kind: str, reflected: bool, compared: SchemaItem | None
    ) -> bool:
        table = item.referred_table.name if isinstance(item, ForeignKeyConstraint) else name
        if reflected and compared is None and table in partitions:
            ignored.add(kind)
            return False
        return True

    options = {"compare_type": True, "compare_server_default": True, "include_object": matters}
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, SCHEMA)), ignored


# A change of the database alone, and whether alembic sees it; PostgreSQL's own answer shows each.
DRIFT = [
    ("CREATE TABLE stray (id integer)", True),
    ("DROP TABLE worker_session", True),
    ("ALTER TABLE pin ADD COLUMN note text", True),
    ("ALTER TABLE pin DROP COLUMN holder", True),
    ("ALTER TABLE event ADD COLUMN note text", True),
    ("ALTER TABLE pin ALTER COLUMN holder DROP NOT NULL", True),
    ("ALTER TABLE effect_open ALTER COLUMN checks TYPE bigint", True),
    ("ALTER TABLE effect_open ALTER COLUMN checks DROP DEFAULT", True),
    ("ALTER TABLE effect_open ALTER COLUMN checks SET DEFAULT 1", True),
    ("ALTER TABLE contract DROP CONSTRAINT contract_tenant_id_name_version_key", True),
    ("ALTER TABLE event DROP CONSTRAINT event_follows_fkey", True),
    ("ALTER TABLE pin DROP CONSTRAINT pin_contract_id_fkey", True),
    ("ALTER TABLE pin DROP CONSTRAINT pin_pkey", False),
    ("DROP INDEX effect_open_tenant_id_due_at_idx", True),
    ("CREATE INDEX ON effect_outcome (finished_at)", True),
    ("ALTER INDEX effect_open_tenant_id_due_at_idx RENAME TO other", True),
    ("ALTER TABLE effect_open RESET (fillfactor)", False),
]


def test_there_is_one_line_of_revisions():
    assert SCRIPTS.get_heads() == [newest()] == REVISIONS[-1:]
    assert SCRIPTS.get_bases() == REVISIONS[:1]


def test_up_down_and_up_again(new_database: NewDatabase):
    url = new_database()
    assert revision(url) is None

    upgrade(url)
    made, tables = ask(url, NAMES), ask(url, TABLES)
    assert revision(url) == newest()

    downgrade(url, "base")
    assert ask(url, NAMES) == ALEMBICS
    assert revision(url) is None

    upgrade(url)
    assert (ask(url, NAMES), ask(url, TABLES)) == (made, tables)


def test_each_step_can_be_undone(new_database: NewDatabase):
    url = new_database()
    for number, step in enumerate(REVISIONS):
        before = ask(url, NAMES)
        upgrade(url, step)
        made, tables = ask(url, NAMES), ask(url, TABLES)
        assert revision(url) == step
        assert made - before

        downgrade(url, REVISIONS[number - 1] if number else "base")
        assert ask(url, NAMES) == before | ALEMBICS

        upgrade(url, step)
        assert (ask(url, NAMES), ask(url, TABLES)) == (made, tables)


def test_alembic_finds_nothing_to_change(database_url: str):
    assert differences(database_url) == ([], {"table", "foreign_key_constraint"})


def test_the_declarations_make_the_same_tables(database_url: str, new_database: NewDatabase):
    migrated = {row for row in ask(database_url, TABLES) if row[0] != "alembic_version"}
    assert declared(new_database()) == migrated


@pytest.mark.parametrize(("change", "alembic_sees"), DRIFT)
def test_drift_is_seen(database_url: str, change: str, alembic_sees: bool):
    before = ask(database_url, TABLES)
    with psycopg.connect(database_url) as connection:
        connection.execute(change.encode())
    assert ask(database_url, TABLES) != before
    found, _ = differences(database_url)
    assert bool(found) is alembic_sees


def test_processes_that_start_at_once_migrate_one_after_the_other(new_database: NewDatabase):
    url = new_database()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=4, mp_context=spawn) as pool:
        with psycopg.connect(url) as holder:
            # The lock of migrations/env.py: all four are at it before the first may go on.
            holder.execute("SELECT pg_advisory_lock(%s)", (0x7A11_57CC,))
            runs = [pool.submit(upgrade, url) for _ in range(4)]
            await_waiting(url, 4, until=lambda: any(run.done() for run in runs))
        for run in runs:
            run.result()
    assert revision(url) == newest()


def test_a_database_whose_neighbour_makes_the_role_at_the_same_moment(untouched: NewDatabase):
    url, neighbour = untouched(), untouched()
    with ThreadPoolExecutor(max_workers=1) as pool:
        with psycopg.connect(neighbour) as connection:
            connection.execute("CREATE ROLE tallystick_service")
            run = pool.submit(upgrade, url)
            await_waiting(url, 1, until=run.done)
        run.result()
    assert revision(url) == newest()


def test_an_owner_who_is_no_superuser(untouched: NewDatabase, untouched_url: str):
    owner = an_owner(untouched_url, "CREATEROLE")
    one, other = (untouched(owner=owner) for _ in range(2))
    for url in (one, other):
        upgrade(url)
        assert serves(url)

    downgrade(one, "base")
    assert serves(other)
    upgrade(one)
    assert serves(one)


def test_an_owner_who_was_given_the_role(untouched: NewDatabase, untouched_url: str):
    owner = an_owner(untouched_url, "NOCREATEROLE")
    url = untouched(owner=owner)
    administer(untouched_url, SQL("CREATE ROLE tallystick_service"))
    administer(untouched_url, SQL("GRANT tallystick_service TO {}").format(Identifier(owner)))
    upgrade(url)
    assert serves(url)


def serves(url: str) -> bool:
    """Tell whether the owner can work under the service's role, which is held to its tenant."""
    with psycopg.connect(url) as connection:
        (tenant,) = connection.execute("SELECT tenant_id FROM tenant").fetchone() or (None,)
        connection.execute("SET ROLE tallystick_service")
        hidden = connection.execute("SELECT FROM tenant").rowcount == 0
        connection.execute("SELECT set_config('tallystick.tenant', %s, true)", (str(tenant),))
        shown = connection.execute("SELECT FROM tenant").rowcount == 1
        made = connection.execute("SELECT ensure_partitions(4)").fetchone()
        connection.rollback()
        return hidden and shown and made == (6,)


def await_waiting(url: str, count: int, *, until: Callable[[], bool]) -> None:
    """Wait until so many others wait for a lock, or until it is pointless; then they must."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with psycopg.connect(url, autocommit=True) as connection:
        while (found := connection.execute(waiting).fetchone()) != (count,) and not until():
            time.sleep(POLL_SECONDS)
    assert found == (count,)


@pytest.fixture(scope="module")
def untouched_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a server of this module's own."""
    with EmbeddedPostgres.attach(tmp_path_factory.mktemp("untouched")) as postgres:
        yield postgres.url


@pytest.fixture
def untouched(untouched_url: str) -> Iterator[NewDatabase]:
    """Return what makes a database on a server that has never seen the service's role."""
    with ExitStack() as stack:
        yield lambda **choices: stack.enter_context(database(untouched_url, **choices))
    administer(untouched_url, SQL("DROP ROLE IF EXISTS tallystick_service"))

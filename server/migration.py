"""Brings a database to the newest schema."""

from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, make_url
from sqlalchemy.pool import NullPool

import migrations

_FOLDER = Path(migrations.__file__).parent


def newest() -> str:
    """Return the revision that this program works with."""
    head = ScriptDirectory(str(_FOLDER)).get_current_head()
    assert head is not None, "the migrations folder has no migration"
    return head


def revision(database_url: str) -> str | None:
    """Return the revision that a database is at, or None for one that was never prepared."""
    with psycopg.connect(database_url, connect_timeout=10) as connection:
        if connection.execute("SELECT to_regclass('alembic_version')").fetchone() == (None,):
            return None
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return str(row[0]) if row else None


def upgrade(database_url: str, to: str = "head") -> None:
    """Run the migrations that are missing, as the owner of the database.

    One process at a time does so; another one waits, and finds nothing left to do.
    """
    _run(database_url, to, command.upgrade)


def downgrade(database_url: str, to: str) -> None:
    """Undo migrations down to a revision; ``base`` leaves nothing of ours but the role."""
    _run(database_url, to, command.downgrade)


def _run(database_url: str, to: str, direction: object) -> None:
    assert callable(direction)
    url = make_url(database_url).set(drivername="postgresql+psycopg")
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        config = Config()
        config.set_main_option("script_location", str(_FOLDER))
        config.attributes["connection"] = connection
        direction(config, to)

"""Brings a database to the newest schema.

Alembic is imported only when there is something to do: most starts find a database that is ready.
"""

import re
from pathlib import Path
from typing import Final, Literal

import psycopg

import migrations

_FOLDER: Final = Path(migrations.__file__).parent
_REVISION: Final = re.compile(r'^(down_)?revision = "(\w+)"$', re.MULTILINE)


def newest() -> str:
    """Return the revision that this program works with: the one that no other follows."""
    found: dict[str, set[str]] = {"": set(), "down_": set()}
    for script in (_FOLDER / "versions").glob("*.py"):
        for kind, revision in _REVISION.findall(script.read_text(encoding="utf-8")):
            found[kind].add(revision)
    (head,) = found[""] - found["down_"]
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
    _run(database_url, to, "upgrade")


def downgrade(database_url: str, to: str) -> None:
    """Undo migrations down to a revision; ``base`` leaves nothing of ours but the role."""
    _run(database_url, to, "downgrade")


def _run(database_url: str, to: str, direction: Literal["upgrade", "downgrade"]) -> None:
    from alembic import command  # noqa: PLC0415 - see the module's docstring
    from alembic.config import Config  # noqa: PLC0415
    from sqlalchemy import create_engine  # noqa: PLC0415
    from sqlalchemy.pool import NullPool  # noqa: PLC0415

    # The address goes to libpq as it is: it may name several hosts, and SQLAlchemy reads but one.
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(database_url), poolclass=NullPool
    )
    with engine.connect() as connection:
        config = Config()
        config.set_main_option("script_location", str(_FOLDER))
        config.attributes["connection"] = connection
        getattr(command, direction)(config, to)

"""Runs the migrations: a transaction each, one runner at a time, never waiting long for a lock."""

from alembic import context
from sqlalchemy import text

from server.tables import SCHEMA

# An arbitrary number of our own: two servers that start at once migrate one after the other.
_ADVISORY_LOCK = 0x7A11_57CC


def run() -> None:
    connection = context.config.attributes["connection"]
    context.configure(
        connection=connection,
        target_metadata=SCHEMA,
        transaction_per_migration=True,
        compare_type=True,
    )
    # Another runner is waited for; whoever uses a table is not kept waiting behind us.
    connection.execute(text("SET lock_timeout = '10min'"))
    connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _ADVISORY_LOCK})
    connection.execute(text("SET lock_timeout = '10s'"))
    connection.commit()
    try:
        with context.begin_transaction():
            context.run_migrations()
    finally:
        connection.rollback()
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _ADVISORY_LOCK})
        connection.commit()


run()

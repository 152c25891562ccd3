"""The base of every table: one metadata, PostgreSQL's own names, and the types of columns.

The migrations make the tables; here they are declared once more, so that alembic can compare, and a
test holds that both say the same. CHECK constraints, triggers, row-level security and privileges
stand in the migrations alone.
"""

import re
from datetime import datetime
from typing import Annotated, Any

import sqlalchemy
from sqlalchemy import Index, MetaData
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import declared_attr
from sqlalchemy.types import TypeEngine
from sqlmodel import Field, SQLModel


class Row(SQLModel):
    """A table of the service. ``EffectOpenRow`` is the table ``effect_open``."""

    metadata = MetaData(
        naming_convention={
            "pk": "%(table_name)s_pkey",
            "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
            "uq": "%(table_name)s_%(column_0_N_name)s_key",
            "ix": "%(table_name)s_%(column_0_N_name)s_idx",
            "ck": "%(table_name)s_%(constraint_name)s_check",
        }
    )

    @declared_attr  # pyright: ignore[reportArgumentType]
    @classmethod
    def __tablename__(cls) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Return the class's name without ``Row``, in snake case."""
        name = cls.__name__.removesuffix("Row")
        return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def column(
    sql_type: TypeEngine[Any] | type[TypeEngine[Any]], *, default: str | None = None
) -> object:
    """Describe a column: its type, and an SQL expression for where an INSERT does not name it."""
    server_default = {} if default is None else {"server_default": sqlalchemy.text(default)}
    sa_type: Any = sql_type
    return Field(sa_type=sa_type, sa_column_kwargs=server_default)


# `Text | None` would lose its description: what may be NULL is described as a whole.
Text = Annotated[str, column(sqlalchemy.Text)]
TextOrNull = Annotated[str | None, column(sqlalchemy.Text)]
BigInt = Annotated[int, column(sqlalchemy.BigInteger)]
BigIntOrNull = Annotated[int | None, column(sqlalchemy.BigInteger)]
Moment = Annotated[datetime, column(TIMESTAMP(timezone=True))]
MomentOrNull = Annotated[datetime | None, column(TIMESTAMP(timezone=True))]
TransactionTime = Annotated[datetime, column(TIMESTAMP(timezone=True), default="now()")]
# Which transaction wrote a row: a record that is sealed has it, and the index on it.
WrittenIn = Annotated[
    int, column(sqlalchemy.BigInteger, default="audit_position(pg_current_xact_id())")
]
ClockTime = Annotated[datetime, column(TIMESTAMP(timezone=True), default="clock_timestamp()")]


def by_transaction() -> Index:
    """Return the index of a sealed table on the transactions that wrote its rows."""
    return Index(
        None,
        "written_in",
        postgresql_using="brin",
        postgresql_with={"pages_per_range": 32, "autosummarize": "on"},
    )

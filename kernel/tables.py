"""The base of every table: one metadata, PostgreSQL's own constraint names, names derived from the class."""

import re

from sqlalchemy import MetaData
from sqlalchemy.orm import declared_attr
from sqlmodel import SQLModel


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

    @declared_attr  # type: ignore[arg-type]
    @classmethod
    def __tablename__(cls) -> str:
        """Return the class's name without ``Row``, in snake case."""
        name = cls.__name__.removesuffix("Row")
        return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()

"""The server's tables, and with them the whole schema."""

from typing import Final

from sqlalchemy import MetaData, PrimaryKeyConstraint

import access.tables
import audit.tables
import ledger.tables
import ledger.tables_gates
import reconciler.tables
import registry.tables
from kernel.tables import Row, Text, TransactionTime


class ServiceKeyRow(Row, table=True):
    """What tells that a key file belongs to this database; never a key."""

    __table_args__ = (PrimaryKeyConstraint("key_id"),)

    key_id: Text
    check_value: bytes
    first_seen_at: TransactionTime


# Importing them has declared their tables.
_OTHERS: Final = (
    access.tables,
    audit.tables,
    registry.tables,
    ledger.tables,
    ledger.tables_gates,
    reconciler.tables,
)

SCHEMA: Final[MetaData] = Row.metadata
"""Every table of the service."""

"""The server's tables, and with them the whole schema."""

from typing import Final
from uuid import UUID

from sqlalchemy import ForeignKeyConstraint, MetaData, PrimaryKeyConstraint, UniqueConstraint

import ledger.tables
import registry.tables
from kernel.tables import MomentOrNull, Row, Text, TransactionTime


class TenantRow(Row, table=True):
    """A tenant: whose rows are visible to it alone."""

    __table_args__ = (PrimaryKeyConstraint("tenant_id"), UniqueConstraint("slug"))

    tenant_id: UUID
    slug: Text
    created_at: TransactionTime


class ApiTokenRow(Row, table=True):
    """A token's hash and whom it stands for. The service asks ``authenticate``; it cannot read."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "token_id"),
        UniqueConstraint("token_hash"),
        ForeignKeyConstraint(["tenant_id"], ["tenant.tenant_id"]),
    )

    tenant_id: UUID
    token_id: UUID
    token_hash: bytes
    principal: Text
    role: Text
    created_at: TransactionTime
    revoked_at: MomentOrNull


class ServiceKeyRow(Row, table=True):
    """What tells that a key file belongs to this database; never a key."""

    __table_args__ = (PrimaryKeyConstraint("key_id"),)

    key_id: Text
    check_value: bytes
    first_seen_at: TransactionTime


# Importing them has declared their tables.
_OTHERS: Final = (registry.tables, ledger.tables)

SCHEMA: Final[MetaData] = Row.metadata
"""Every table of the service."""

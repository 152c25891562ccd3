"""The tables of tenants and their tokens."""

from typing import Annotated
from uuid import UUID

import sqlalchemy
from sqlalchemy import ForeignKeyConstraint, PrimaryKeyConstraint, UniqueConstraint
from sqlalchemy.dialects.postgresql import ARRAY

from kernel.tables import MomentOrNull, Row, Text, TransactionTime, column


class TenantRow(Row, table=True):
    """A tenant: whose rows are visible to it alone."""

    __table_args__ = (PrimaryKeyConstraint("tenant_id"), UniqueConstraint("slug"))

    tenant_id: UUID
    slug: Text
    created_at: TransactionTime


class ApiTokenRow(Row, table=True):
    """A token's hash, and whom it stands for. The service writes the hash and cannot read it."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "token_id"),
        UniqueConstraint("token_hash"),
        UniqueConstraint("tenant_id", "replaces"),
        ForeignKeyConstraint(["tenant_id"], ["tenant.tenant_id"]),
        ForeignKeyConstraint(
            ["tenant_id", "replaces"], ["api_token.tenant_id", "api_token.token_id"]
        ),
    )

    tenant_id: UUID
    token_id: UUID
    token_hash: bytes
    name: Text
    prefix: Text
    principal: Text
    roles: Annotated[list[str], column(ARRAY(sqlalchemy.Text))]
    created_at: TransactionTime
    created_by: Text
    expires_at: MomentOrNull
    last_used_at: MomentOrNull
    revoked_at: MomentOrNull
    replaces: UUID | None

"""The audit's tables. The column ``written_in`` of each sealed table stands with that table."""

from typing import Annotated
from uuid import UUID

import sqlalchemy
from sqlalchemy import ForeignKeyConstraint, Index, PrimaryKeyConstraint, UniqueConstraint

from kernel.tables import BigInt, BigIntOrNull, Row, Text, TextOrNull, column


class AuditSealRow(Row, table=True):
    """A signed statement of one batch of a tenant's records. Append-only."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "number"),
        UniqueConstraint("tenant_id", "number", "digest", "upto"),
        ForeignKeyConstraint(["tenant_id"], ["tenant.tenant_id"]),
        ForeignKeyConstraint(
            ["tenant_id", "previous_number", "previous", "since"],
            [
                "audit_seal.tenant_id",
                "audit_seal.number",
                "audit_seal.digest",
                "audit_seal.upto",
            ],
            name="audit_seal_follows_fkey",
        ),
        Index(None, "upto"),
    )

    tenant_id: UUID
    number: BigInt
    previous_number: BigIntOrNull
    previous: TextOrNull
    since: BigInt
    upto: BigInt
    digest: Text
    statement: Text
    signature: bytes
    leaf_hashes: bytes


class AuditProgressRow(Row, table=True):
    """One row: below which transaction every tenant's records are sealed. It only saves looking."""

    __table_args__ = (PrimaryKeyConstraint("single"),)

    single: Annotated[bool, column(sqlalchemy.Boolean, default="true")]
    sealed_to: BigInt

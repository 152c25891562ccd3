"""The registry's tables as the code knows them; the migrations make them, and a test compares the two."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    ForeignKeyConstraint,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlmodel import Field

from kernel.tables import Row

_MOMENT = TIMESTAMP(timezone=True)


class ContractContentRow(Row, table=True):
    """A contract's document by its digest. Never changed."""

    __table_args__ = (ForeignKeyConstraint(["tenant_id"], ["tenant.tenant_id"]),)

    tenant_id: UUID = Field(primary_key=True)
    contract_digest: str = Field(primary_key=True, sa_type=Text)
    schema_hash: str = Field(sa_type=Text)
    prompt_hash: str = Field(sa_type=Text)
    document: str = Field(sa_type=Text)


class ContractRow(Row, table=True):
    """A publication: who put which content under which name and version. Never changed."""

    __table_args__ = (
        UniqueConstraint("tenant_id", "name", "version"),
        ForeignKeyConstraint(
            ["tenant_id", "contract_digest"],
            ["contract_content.tenant_id", "contract_content.contract_digest"],
        ),
    )

    tenant_id: UUID
    contract_id: UUID = Field(primary_key=True)
    name: str = Field(sa_type=Text)
    version: str = Field(sa_type=Text)
    contract_digest: str = Field(sa_type=Text)
    reviewer: str | None = Field(sa_type=Text)
    review_reason: str | None = Field(sa_type=Text)
    published_at: datetime = Field(
        sa_type=_MOMENT, sa_column_kwargs={"server_default": text("now()")}
    )  # type: ignore[call-overload]
    published_by: str = Field(sa_type=Text)

"""The reconciler's table: how far each listing has been read."""

from typing import Annotated
from uuid import UUID

import sqlalchemy
from sqlalchemy import ForeignKeyConstraint, PrimaryKeyConstraint

from kernel.tables import ClockTime, Moment, MomentOrNull, Row, Text, TextOrNull, column

_COUNT = Annotated[int, column(sqlalchemy.BigInteger, default="0")]


class ListingProgressRow(Row, table=True):
    """A listing that a tenant's contracts name, who reads it, and how far.

    A pass asks for what is younger than ``since``, page by page; ``began_at`` is NULL between two.
    """

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "listing"),
        ForeignKeyConstraint(["tenant_id"], ["tenant.tenant_id"]),
    )

    tenant_id: UUID
    listing: Text
    fence: _COUNT
    due_at: ClockTime
    since: Moment
    began_at: MomentOrNull
    cursor: TextOrNull
    failures: Annotated[int, column(sqlalchemy.Integer, default="0")]
    listed: _COUNT
    orphans: _COUNT
    ignored: _COUNT

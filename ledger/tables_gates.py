"""The tables of gates and people: what a run has done, budgets, approvals, words, refusals."""

from decimal import Decimal
from typing import Annotated
from uuid import UUID

import sqlalchemy
from sqlalchemy import ForeignKeyConstraint, Index, PrimaryKeyConstraint, UniqueConstraint

from kernel.tables import (
    BigInt,
    BigIntOrNull,
    ClockTime,
    Moment,
    MomentOrNull,
    Row,
    Text,
    TextOrNull,
    WrittenIn,
    by_transaction,
    column,
)

_HALF_FULL = {"postgresql_with": {"fillfactor": 50}}
_COUNT = Annotated[int, column(sqlalchemy.Integer, default="0")]
_UNITS = Annotated[Decimal, column(sqlalchemy.Numeric, default="0")]


class RunSubjectRow(Row, table=True):
    """On whose behalf a run acts, as the application said. Never changed."""

    __table_args__ = (PrimaryKeyConstraint("run_id"), by_transaction())

    run_id: UUID
    tenant_id: UUID
    subject: Text
    set_by: Text
    set_at: ClockTime
    written_in: WrittenIn


class RunStateRow(Row, table=True):
    """The row at which a run's decisions wait for one another."""

    __table_args__ = (PrimaryKeyConstraint("run_id"), _HALF_FULL)

    run_id: UUID
    tenant_id: UUID
    decisions: Annotated[int, column(sqlalchemy.BigInteger, default="0")]


class RunTallyRow(Row, table=True):
    """How often a run dispatched a tool under a policy, and how often that succeeded."""

    __table_args__ = (PrimaryKeyConstraint("run_id", "tool"), _HALF_FULL)

    run_id: UUID
    tool: Text
    tenant_id: UUID
    dispatched: _COUNT
    succeeded: _COUNT


class RunFactRow(Row, table=True):
    """A fact that one revision of a policy captured, and the effect that it was captured from."""

    __table_args__ = (PrimaryKeyConstraint("run_id", "policy", "policy_revision", "name", "key"),)

    run_id: UUID
    policy: Text
    policy_revision: int
    name: Text
    key: Text
    tenant_id: UUID
    value: Text
    number: BigInt
    captured_at: Moment


class BudgetPoolRow(Row, table=True):
    """How much of a limit that all runs share is given out, in one window of time."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "policy", "name", "window_start"),
        ForeignKeyConstraint(["tenant_id"], ["tenant.tenant_id"]),
    )

    tenant_id: UUID
    policy: Text
    name: Text
    window_start: Moment
    granted: _UNITS
    most: Annotated[Decimal, column(sqlalchemy.Numeric)]


class BudgetSliceRow(Row, table=True):
    """What a run was given of a limit, and what it has used of that."""

    __table_args__ = (
        PrimaryKeyConstraint("run_id", "policy", "name", "scope", "window_start"),
        Index(None, "tenant_id", "policy", "name", "window_start"),
    )

    run_id: UUID
    policy: Text
    name: Text
    scope: Text
    window_start: Moment
    tenant_id: UUID
    policy_revision: int
    granted: _UNITS
    used: _UNITS


class ApprovalRow(Row, table=True):
    """A person's word on one effect: asked for, given or refused, used once."""

    __table_args__ = (
        PrimaryKeyConstraint("run_id", "number"),
        ForeignKeyConstraint(["run_id", "number"], ["effect.run_id", "effect.number"]),
        ForeignKeyConstraint(
            ["run_id", "number", "step", "status"],
            [
                "approval_event.run_id",
                "approval_event.number",
                "approval_event.step",
                "approval_event.to_status",
            ],
            name="approval_event_fkey",
            deferrable=True,
            initially="DEFERRED",
            use_alter=True,
        ),
        Index(None, "tenant_id", "status", "requested_at"),
        Index(None, "tenant_id", "requested_at", "run_id", "number"),
    )

    run_id: UUID
    number: BigInt
    tenant_id: UUID
    step: _COUNT
    status: Annotated[str, column(sqlalchemy.Text, default="'pending'")]
    question: Text
    rule: TextOrNull
    contract_digest: Text
    fingerprint: bytes
    credential_version: int
    policy: TextOrNull
    policy_revision: int | None
    requested_by: Text
    requested_at: Moment
    expires_at: Moment
    decided_by: TextOrNull
    decided_at: MomentOrNull
    reason: TextOrNull


class ApprovalEventRow(Row, table=True):
    """A step of an approval. Append-only."""

    __table_args__ = (
        PrimaryKeyConstraint("run_id", "number", "step"),
        UniqueConstraint("run_id", "number", "step", "to_status"),
        ForeignKeyConstraint(
            ["run_id", "number"],
            ["approval.run_id", "approval.number"],
            name="approval_event_approval_fkey",
        ),
        ForeignKeyConstraint(
            ["run_id", "number", "previous_step", "from_status"],
            [
                "approval_event.run_id",
                "approval_event.number",
                "approval_event.step",
                "approval_event.to_status",
            ],
            name="approval_event_follows_fkey",
        ),
        by_transaction(),
    )

    run_id: UUID
    number: BigInt
    step: int
    tenant_id: UUID
    previous_step: int | None
    from_status: Text
    to_status: Text
    actor: Text
    reason: Text
    at: Moment
    written_in: WrittenIn


class GateRefusalRow(Row, table=True):
    """A call that a gate refused: what the run was told, and why in truth. Append-only."""

    __table_args__ = (PrimaryKeyConstraint("run_id", "refusal_id"), by_transaction())

    run_id: UUID
    refusal_id: UUID
    tenant_id: UUID
    number: BigIntOrNull
    tool: Text
    version: Text
    gate: Text
    code: Text
    true_code: Text
    message: Text
    rule: TextOrNull
    policy: TextOrNull
    policy_revision: int | None
    principal: Text
    refused_at: ClockTime
    written_in: WrittenIn


class ResolutionEventRow(Row, table=True):
    """A person's word on a quarantined effect that takes two of them. Append-only."""

    __table_args__ = (
        PrimaryKeyConstraint("run_id", "number", "step"),
        UniqueConstraint("run_id", "number", "step", "to_status"),
        UniqueConstraint(
            *("run_id", "number", "step", "fence", "to_state", "principal"),
            name="resolution_event_what_was_said_key",
        ),
        ForeignKeyConstraint(
            ["run_id", "number", "previous_step", "from_status"],
            [
                "resolution_event.run_id",
                "resolution_event.number",
                "resolution_event.step",
                "resolution_event.to_status",
            ],
            name="resolution_event_follows_fkey",
        ),
        ForeignKeyConstraint(
            ["run_id", "number", "previous_step", "fence", "to_state", "proposed_by"],
            [
                "resolution_event.run_id",
                "resolution_event.number",
                "resolution_event.step",
                "resolution_event.fence",
                "resolution_event.to_state",
                "resolution_event.principal",
            ],
            name="resolution_event_agrees_fkey",
        ),
        by_transaction(),
    )

    run_id: UUID
    number: BigInt
    step: int
    tenant_id: UUID
    fence: BigInt
    previous_step: int | None
    from_status: Text
    to_status: Text
    to_state: Text
    principal: Text
    proposed_by: TextOrNull
    reason: Text
    evidence: TextOrNull
    at: Moment
    written_in: WrittenIn

"""The ledger's tables. All but ``effect_idem`` and ``worker_session`` begin with the run."""

from typing import Annotated, Any
from uuid import UUID

import sqlalchemy
from sqlalchemy import ForeignKeyConstraint, Index, PrimaryKeyConstraint, UniqueConstraint
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

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

_BY_RUN = {"postgresql_partition_by": "RANGE (run_id)"}
_COUNT = Annotated[int, column(sqlalchemy.Integer, default="0")]


def _of_effect(table: str) -> ForeignKeyConstraint:
    """Hold a row to the tenant, the contract and the class that its effect was recorded with."""
    columns = ["run_id", "number", "tenant_id", "contract_id", "effect_class"]
    return ForeignKeyConstraint(
        columns, [f"effect.{name}" for name in columns], name=f"{table}_effect_fkey"
    )


class LegalTransitionRow(Row, table=True):
    """The steps that an effect may take: ``ledger.transition.TRANSITIONS`` as rows."""

    __table_args__ = (PrimaryKeyConstraint("transition", "from_state", "to_state"),)

    transition: Text
    from_state: Text
    to_state: Text


class EffectIdemRow(Row, table=True):
    """The caller's name for a run or an effect. Never changed."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "kind", "name"),
        {"postgresql_partition_by": "HASH (name)"},
    )

    tenant_id: UUID
    kind: Text
    name: Text
    run_id: UUID
    number: BigIntOrNull


class EffectRow(Row, table=True):
    """What is to be done, recorded before it begins. Never changed."""

    __table_args__ = (
        PrimaryKeyConstraint("run_id", "number"),
        UniqueConstraint("run_id", "number", "tenant_id", "contract_id", "effect_class"),
        ForeignKeyConstraint(
            ["run_id", "supersedes"],
            ["effect.run_id", "effect.number"],
            name="effect_supersedes_fkey",
        ),
        Index(
            None,
            "run_id",
            "supersedes",
            unique=True,
            postgresql_where=sqlalchemy.text("supersedes IS NOT NULL"),
        ),
        by_transaction(),
        _BY_RUN,
    )

    run_id: UUID
    number: BigInt
    tenant_id: UUID
    run: TextOrNull
    identity: TextOrNull
    idem_key: TextOrNull
    tool: Text
    contract_id: UUID
    presented_contract_id: UUID
    contract_digest: Text
    effect_class: Text
    capabilities: Annotated[list[str] | None, column(ARRAY(sqlalchemy.Text))]
    credential_version: int | None
    principal: TextOrNull
    origin: Text
    arguments: Text
    key_id: TextOrNull
    request_fingerprint: bytes | None
    operation_fingerprint: bytes | None
    planned_at: Moment
    policy: TextOrNull
    policy_revision: int | None
    supersedes: BigIntOrNull
    written_in: WrittenIn


class EffectOpenRow(Row, table=True):
    """Where an open effect is: the one row of it that changes, gone when the effect closes."""

    __table_args__ = (
        PrimaryKeyConstraint("run_id", "number"),
        _of_effect("effect_open"),
        Index(None, "tenant_id", "due_at", postgresql_where=sqlalchemy.text("state <> 'UNKNOWN'")),
        Index(
            None,
            "tenant_id",
            "contract_id",
            "due_at",
            postgresql_where=sqlalchemy.text("state = 'UNKNOWN'"),
        ),
        Index(None, "contract_id"),
        Index(None, "presented_contract_id"),
        {"postgresql_with": {"fillfactor": 70, "autovacuum_vacuum_scale_factor": 0.01}},
    )

    run_id: UUID
    number: BigInt
    tenant_id: UUID
    contract_id: UUID
    presented_contract_id: UUID
    effect_class: Text
    state: Text
    fence: BigInt
    attempt: int
    worker_id: UUID | None
    nonce: UUID | None
    due_at: MomentOrNull
    deadline_at: MomentOrNull
    first_dispatched_at: MomentOrNull
    unknown_since: MomentOrNull
    unaccounted: _COUNT
    checks: _COUNT
    reason: Text


class EffectPayloadRow(Row, table=True):
    """Sensitive arguments, encrypted, while a new attempt may need them."""

    __table_args__ = (PrimaryKeyConstraint("run_id", "number"),)

    run_id: UUID
    number: BigInt
    tenant_id: UUID
    key_id: Text
    sealed: bytes


class EffectAttemptRow(Row, table=True):
    """A time that a worker was allowed to send. Append-only."""

    __table_args__ = (
        PrimaryKeyConstraint("run_id", "number", "attempt"),
        _of_effect("effect_attempt"),
        by_transaction(),
        _BY_RUN,
    )

    run_id: UUID
    number: BigInt
    attempt: int
    tenant_id: UUID
    fence: BigInt
    contract_id: UUID
    effect_class: Text
    worker_id: UUID
    nonce: UUID
    credential_version: int
    dispatched_at: Moment
    lease_until: Moment
    written_in: WrittenIn
    timeline: Annotated[int | None, column(sqlalchemy.Integer, default="current_timeline()")]


class EffectEvidenceRow(Row, table=True):
    """An answer about an effect, whatever came of it. Append-only."""

    __table_args__ = (
        PrimaryKeyConstraint("run_id", "number", "evidence_id"),
        by_transaction(),
        _BY_RUN,
    )

    run_id: UUID
    number: BigInt
    evidence_id: UUID
    tenant_id: UUID
    fence: BigInt
    source: Text
    answer: Text
    provider_reference: TextOrNull
    observed_at: Moment
    received_at: Moment
    detail: Text
    written_in: WrittenIn


class EventRow(Row, table=True):
    """A step of an effect; its number is the effect's fence from then on. Append-only."""

    __table_args__ = (
        PrimaryKeyConstraint("run_id", "number", "fence"),
        UniqueConstraint("run_id", "number", "fence", "to_state"),
        ForeignKeyConstraint(
            ["transition", "from_state", "to_state"],
            [
                "legal_transition.transition",
                "legal_transition.from_state",
                "legal_transition.to_state",
            ],
            name="event_is_legal_fkey",
        ),
        ForeignKeyConstraint(
            ["run_id", "number", "previous_fence", "from_state"],
            ["event.run_id", "event.number", "event.fence", "event.to_state"],
            name="event_follows_fkey",
        ),
        by_transaction(),
        _BY_RUN,
    )

    run_id: UUID
    number: BigInt
    fence: BigInt
    tenant_id: UUID
    transition: Text
    from_state: Text
    to_state: Text
    previous_fence: BigIntOrNull
    attempt: int
    actor: Text
    reason: Text
    at: Moment
    written_in: WrittenIn


class EffectOutcomeRow(Row, table=True):
    """How an effect ended; a later revision stands beside the earlier. Append-only."""

    __table_args__ = (
        PrimaryKeyConstraint("run_id", "number", "revision"),
        UniqueConstraint("run_id", "number", "fence"),
        ForeignKeyConstraint(
            ["run_id", "number", "fence", "status"],
            ["event.run_id", "event.number", "event.fence", "event.to_state"],
            name="effect_outcome_event_fkey",
        ),
        by_transaction(),
        _BY_RUN,
    )

    run_id: UUID
    number: BigInt
    revision: int
    tenant_id: UUID
    fence: BigInt
    status: Text
    result: TextOrNull
    invalid_result: Annotated[list[Any] | None, column(JSONB)]
    error_code: TextOrNull
    error_message: TextOrNull
    provider_reference: TextOrNull
    evidence_id: UUID | None
    decided_by: Text
    reason: Text
    finished_at: Moment
    written_in: WrittenIn


class RunToolRow(Row, table=True):
    """The version of a tool that a run uses. Never changed."""

    __table_args__ = (PrimaryKeyConstraint("run_id", "tool"), _BY_RUN)

    run_id: UUID
    tool: Text
    tenant_id: UUID
    contract_id: UUID


class WorkerSessionRow(Row, table=True):
    """A worker process and when it was last heard."""

    __table_args__ = (PrimaryKeyConstraint("tenant_id", "worker_id"),)

    tenant_id: UUID
    worker_id: UUID
    label: Annotated[str, column(sqlalchemy.Text, default="''")]
    started_at: ClockTime
    heartbeat_at: ClockTime

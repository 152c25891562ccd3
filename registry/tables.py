"""The registry's tables: contracts, what is said of them, credentials, grants, pins, policies."""

from typing import Annotated, Any
from uuid import UUID

import sqlalchemy
from sqlalchemy import ForeignKeyConstraint, Index, PrimaryKeyConstraint, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB

from kernel.tables import (
    ClockTime,
    Moment,
    MomentOrNull,
    Row,
    Text,
    TextOrNull,
    TransactionTime,
    WrittenIn,
    by_transaction,
    column,
)


class ContractContentRow(Row, table=True):
    """A contract's document by its digest. Never changed."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "contract_digest"),
        ForeignKeyConstraint(["tenant_id"], ["tenant.tenant_id"]),
        Index(
            "contract_content_listing_idx",
            "tenant_id",
            "contract_digest",
            postgresql_where=sqlalchemy.text("document LIKE '%\"listing\":%'"),
        ),
        by_transaction(),
    )

    tenant_id: UUID
    contract_digest: Text
    schema_hash: Text
    prompt_hash: Text
    document: Text
    written_in: WrittenIn


class ContractRow(Row, table=True):
    """A publication: who put which content under which name and version. Never changed."""

    __table_args__ = (
        PrimaryKeyConstraint("contract_id"),
        UniqueConstraint("tenant_id", "contract_id"),
        UniqueConstraint("tenant_id", "name", "version"),
        ForeignKeyConstraint(
            ["tenant_id", "contract_digest"],
            ["contract_content.tenant_id", "contract_content.contract_digest"],
        ),
        Index(None, "tenant_id", "contract_digest"),
        by_transaction(),
    )

    tenant_id: UUID
    contract_id: UUID
    name: Text
    version: Text
    contract_digest: Text
    reviewer: TextOrNull
    review_reason: TextOrNull
    published_at: TransactionTime
    published_by: Text
    written_in: WrittenIn


def _of_own_contract() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant_id", "contract_id"], ["contract.tenant_id", "contract.contract_id"]
    )


class ContractStateRow(Row, table=True):
    """Where a version is in its life. Dispatches hold this row FOR SHARE."""

    __table_args__ = (PrimaryKeyConstraint("contract_id"), _of_own_contract())

    contract_id: UUID
    tenant_id: UUID
    lifecycle: Annotated[str, column(sqlalchemy.Text, default="'ACTIVE'")]
    suspended: Annotated[bool, column(sqlalchemy.Boolean, default="false")]
    changed_at: TransactionTime


class ContractClosingRow(Row, table=True):
    """The mark that closes a version to new work."""

    __table_args__ = (PrimaryKeyConstraint("contract_id"), _of_own_contract())

    contract_id: UUID
    tenant_id: UUID
    closed_at: ClockTime
    closed_by: Text
    reason: Text


class ContractShareRow(Row, table=True):
    """Another tenant that may use a version, by its slug, or might until it was revoked."""

    __table_args__ = (
        PrimaryKeyConstraint("contract_id", "shared_with"),
        _of_own_contract(),
        Index(None, "shared_with"),
    )

    tenant_id: UUID
    contract_id: UUID
    shared_with: Text
    shared_at: ClockTime
    shared_by: Text
    revoked_at: MomentOrNull


class ContractShareAcceptanceRow(Row, table=True):
    """What a tenant accepted of what is shared with it, or had until it withdrew that."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "contract_id"),
        ForeignKeyConstraint(["tenant_id"], ["tenant.tenant_id"]),
        ForeignKeyConstraint(["contract_id"], ["contract.contract_id"]),
    )

    tenant_id: UUID
    contract_id: UUID
    accepted_at: ClockTime
    accepted_by: Text
    withdrawn_at: MomentOrNull


class PublisherKeyRow(Row, table=True):
    """A publisher's public key that signatures are verified with. A revoked one stays revoked."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "key_id"),
        ForeignKeyConstraint(["tenant_id"], ["tenant.tenant_id"]),
    )

    tenant_id: UUID
    key_id: Text
    public_key: bytes
    name: Text
    added_at: TransactionTime
    added_by: Text
    revoked_at: MomentOrNull
    revoked_by: TextOrNull
    reason: TextOrNull


class ContractSignatureRow(Row, table=True):
    """A signature that a tenant keeps of a contract, its own or a shared one. Append-only."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "contract_id", "key_id"),
        ForeignKeyConstraint(["contract_id"], ["contract.contract_id"]),
        ForeignKeyConstraint(
            ["tenant_id", "key_id"],
            ["publisher_key.tenant_id", "publisher_key.key_id"],
            name="contract_signature_key_fkey",
        ),
    )

    tenant_id: UUID
    contract_id: UUID
    key_id: Text
    signature: bytes
    signed_at: TransactionTime
    signed_by: Text


class SignatureRequirementRow(Row, table=True):
    """The mark of a tenant whose contracts resolve with a signature alone."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id"),
        ForeignKeyConstraint(["tenant_id"], ["tenant.tenant_id"]),
    )

    tenant_id: UUID
    required_at: TransactionTime
    required_by: Text


class CredentialRow(Row, table=True):
    """A credential slot and the version that is current in it; never the secret."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "name"),
        ForeignKeyConstraint(["tenant_id"], ["tenant.tenant_id"]),
    )

    tenant_id: UUID
    name: Text
    version: Annotated[int, column(sqlalchemy.Integer, default="1")]
    rotated_at: TransactionTime
    revoked_at: MomentOrNull


class CredentialBindingRow(Row, table=True):
    """The credential version that a tenant attested a contract for, its own or a shared one."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "contract_id"),
        ForeignKeyConstraint(["contract_id"], ["contract.contract_id"]),
        ForeignKeyConstraint(
            ["tenant_id", "credential"],
            ["credential.tenant_id", "credential.name"],
            name="credential_binding_credential_fkey",
        ),
    )

    contract_id: UUID
    tenant_id: UUID
    credential: Text
    version: int
    attested_at: TransactionTime
    attested_by: Text


class CapabilityGrantRow(Row, table=True):
    """A capability that a principal holds, or held until it was revoked."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "principal", "capability"),
        ForeignKeyConstraint(["tenant_id"], ["tenant.tenant_id"]),
    )

    tenant_id: UUID
    principal: Text
    capability: Text
    granted_at: TransactionTime
    granted_by: Text
    revoked_at: MomentOrNull


class PinRow(Row, table=True):
    """A lease that an outside queue holds on a version."""

    __table_args__ = (
        PrimaryKeyConstraint("pin_id"),
        ForeignKeyConstraint(["contract_id"], ["contract.contract_id"]),
        Index(None, "contract_id", "expires_at"),
    )

    pin_id: UUID
    tenant_id: UUID
    contract_id: UUID
    holder: Text
    expires_at: Moment


class PolicyRevisionRow(Row, table=True):
    """One revision of a policy: its document, and the text that it came as. Append-only."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "policy", "revision"),
        ForeignKeyConstraint(["tenant_id"], ["tenant.tenant_id"]),
        ForeignKeyConstraint(
            ["tenant_id", "policy", "previous_revision"],
            ["policy_revision.tenant_id", "policy_revision.policy", "policy_revision.revision"],
            name="policy_revision_follows_fkey",
        ),
        by_transaction(),
    )

    tenant_id: UUID
    policy: Text
    revision: int
    previous_revision: int | None
    digest: Text
    document: Text
    source: Text
    published_at: ClockTime
    published_by: Text
    written_in: WrittenIn


class PolicyHeadRow(Row, table=True):
    """The revision of a policy that counts."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "policy"),
        ForeignKeyConstraint(
            ["tenant_id", "policy", "revision"],
            ["policy_revision.tenant_id", "policy_revision.policy", "policy_revision.revision"],
        ),
    )

    tenant_id: UUID
    policy: Text
    revision: int


class PolicyAssignmentRow(Row, table=True):
    """The policy that decides of a principal's calls, or with `*` of everybody else's."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "principal"),
        ForeignKeyConstraint(
            ["tenant_id", "policy"], ["policy_head.tenant_id", "policy_head.policy"]
        ),
        Index(None, "tenant_id", "policy"),
    )

    tenant_id: UUID
    principal: Text
    policy: Text
    assigned_at: ClockTime
    assigned_by: Text


class RegistryEventRow(Row, table=True):
    """What was changed in the registry, and by whom. Append-only."""

    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "event_id"),
        ForeignKeyConstraint(["tenant_id"], ["tenant.tenant_id"]),
        by_transaction(),
    )

    tenant_id: UUID
    event_id: UUID
    kind: Text
    subject: Text
    actor: Text
    at: ClockTime
    facts: Annotated[dict[str, Any], column(JSONB, default="'{}'")]
    written_in: WrittenIn

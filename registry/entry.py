"""One published version as the registry knows it at one moment. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tallystick.resolution import Lifecycle, Standing
from tallystick.tool_contract import Contract, ToolReference, Version


@dataclass(frozen=True, slots=True)
class Entry:
    """A publication, its content, and its standing.

    ``credential_bound`` is the credential version that the contract was attested for, and
    ``credential_current`` the one in force; both are 0 where the contract names no credential. None
    is in force before the first attestation, and while the credential is revoked.

    ``is_signed`` tells whether the reader's tenant keeps a signature by a key that is not revoked.

    ``owner`` is the slug of the tenant that shares the version, None for one of the reader's own;
    ``withdrawn_at`` is when it stopped to share it, or the reader's tenant to accept it.
    """

    contract_id: UUID
    contract: Contract
    published_at: datetime
    published_by: str
    lifecycle: Lifecycle
    suspended: bool
    is_signed: bool
    signature_required: bool
    closed_at: datetime | None
    credential_bound: int
    credential_current: int | None
    read_at: datetime
    owner: str | None = None
    withdrawn_at: datetime | None = None

    @property
    def is_offered(self) -> bool:
        """Tell whether new work may find it; what is open drains all the same."""
        return self.withdrawn_at is None

    @property
    def state(self) -> Lifecycle:
        """The lifecycle that holds.

        A version with a closing mark migrates, whatever its row says.
        """
        open_to_plans = self.lifecycle in (Lifecycle.ACTIVE, Lifecycle.DEPRECATED)
        return (
            Lifecycle.MIGRATING if self.closed_at is not None and open_to_plans else self.lifecycle
        )

    def standing(self, tenant: str) -> Standing:
        """Return what a presented tuple is checked against."""
        return Standing(
            schema_hash=self.contract.schema_hash,
            capabilities=self.contract.capabilities_for(tenant),
            effect_class=self.contract.effect_class,
            lifecycle=self.state,
            suspended=self.suspended,
            signature_missing=self.signature_required and not self.is_signed,
            credential_bound=self.credential_bound,
            credential_current=self.credential_current,
        )

    def reference(self, tenant: str) -> ToolReference:
        """Return the tuple that a runtime presents to use all that the contract declares."""
        return self.contract.reference(credential_version=self.credential_bound, tenant=tenant)


def standing_of(entry: Entry | None, tenant: str) -> Standing | None:
    """Return what a tuple for new work is checked against: None where nothing is offered."""
    return entry.standing(tenant) if entry is not None and entry.is_offered else None


def offered_beside(own: Iterable[Entry], shared: Iterable[Entry]) -> list[Entry]:
    """Return a tenant's own versions, and of those shared with it the ones that its names lead to.

    Of two versions under one name and number the one in front is found: the own.
    """
    found: dict[tuple[str, Version], Entry] = {}
    for entry in (*own, *shared):
        found.setdefault((entry.contract.name, entry.contract.version), entry)
    return sorted(found.values(), key=lambda entry: (entry.contract.name, entry.published_at))


@dataclass(frozen=True, slots=True)
class Credential:
    """A named slot and its version: never the secret.

    A revoked one serves nothing until it is rotated.
    """

    name: str
    version: int
    rotated_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class Share:
    """A tenant, by its slug, that a version is shared with, or was until it was revoked."""

    shared_with: str
    shared_at: datetime
    shared_by: str
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class Offer:
    """A version that another tenant shares, and whether the reader's tenant has accepted it."""

    contract_id: UUID
    owner: str
    name: str
    version: str
    revoked_at: datetime | None
    accepted_at: datetime | None
    accepted_by: str | None


@dataclass(frozen=True, slots=True)
class Grant:
    """A capability that a principal holds."""

    principal: str
    capability: str
    granted_at: datetime
    granted_by: str


@dataclass(frozen=True, slots=True)
class Pin:
    """A version that something outside holds until a time."""

    pin_id: UUID
    name: str
    version: str
    holder: str
    expires_at: datetime

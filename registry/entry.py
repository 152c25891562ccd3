"""One published version as the registry knows it at one moment. Pure."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tallystick.resolution import Lifecycle, Standing
from tallystick.tool_contract import Contract, ToolReference


@dataclass(frozen=True, slots=True)
class Entry:
    """A publication, its content, and its standing.

    ``credential_bound`` is the credential version that the contract was attested for, and
    ``credential_current`` the one in force; both are 0 where the contract names no credential.
    """

    contract_id: UUID
    contract: Contract
    published_at: datetime
    published_by: str
    lifecycle: Lifecycle
    suspended: bool
    closed_at: datetime | None
    credential_bound: int
    credential_current: int
    read_at: datetime

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
            credential_bound=self.credential_bound,
            credential_current=self.credential_current,
        )

    def reference(self, tenant: str) -> ToolReference:
        """Return the tuple that a runtime presents to use all that the contract declares."""
        return self.contract.reference(credential_version=self.credential_bound, tenant=tenant)


@dataclass(frozen=True, slots=True)
class Credential:
    """A named slot and its version: never the secret."""

    name: str
    version: int
    rotated_at: datetime


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

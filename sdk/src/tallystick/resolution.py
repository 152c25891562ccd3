"""The one decision on a presented tuple: it stands, or it is refused with exactly one code.

Pure: it takes what the registry knows now, and neither asks nor waits.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from tallystick.errors import (
    CapabilityNotGranted,
    ContractMigrating,
    ContractRetired,
    ContractSuspended,
    CredentialPolicyChanged,
    EffectClassMismatch,
    SignatureRequired,
    ToolContractNotFound,
    ToolSchemaDrift,
)
from tallystick.tool_contract import EffectClass, ToolReference


class Lifecycle(StrEnum):
    """Where a version stands between publication and removal."""

    ACTIVE = "ACTIVE"
    DEPRECATED = "DEPRECATED"
    MIGRATING = "MIGRATING"
    RETIRING = "RETIRING"
    RETIRED = "RETIRED"


class Purpose(Enum):
    """What the tuple is presented for."""

    PLAN = "new work"
    PLAN_UNDER_LEASE = "new work, under a lease from before the version was closed"
    DISPATCH = "work that is planned already"


@dataclass(frozen=True, slots=True)
class Standing:
    """What the registry knows of one version now.

    Args:
        schema_hash: The full hash of the published schemas.
        capabilities: The declared capabilities, with the tenant put in.
        effect_class: The published effect class.
        lifecycle: The state of the version.
        suspended: Whether an operator has suspended it.
        signature_missing: Whether it needs a signature by a key that is trusted now, and has none.
        credential_bound: The credential version that was attested; 0 if the contract names none.
        credential_current: The credential's version now; 0 if the contract names none, None if it
            was never attested for one, or that one is revoked.
    """

    schema_hash: str
    capabilities: frozenset[str]
    effect_class: EffectClass
    lifecycle: Lifecycle
    suspended: bool
    signature_missing: bool
    credential_bound: int
    credential_current: int | None


_OPEN: Final = frozenset({Lifecycle.ACTIVE, Lifecycle.DEPRECATED})
_ACCEPTED: Final = {
    Purpose.PLAN: _OPEN,
    Purpose.PLAN_UNDER_LEASE: _OPEN | {Lifecycle.MIGRATING},
    Purpose.DISPATCH: _OPEN | {Lifecycle.MIGRATING},
}


def check(
    reference: ToolReference,
    standing: Standing | None,
    granted: frozenset[str],
    purpose: Purpose,
) -> None:
    """Refuse a tuple that does not stand; the most specific refusal comes first.

    Args:
        reference: The presented tuple.
        standing: The version that its name and version say, or None if there is none.
        granted: The capabilities that the principal holds.
        purpose: What for.

    Raises:
        ToolContractNotFound: There is no such version.
        ToolSchemaDrift: Its schemas have another hash.
        ContractRetired: It is retired.
        ContractMigrating: It is closed for this purpose; retryable while a retirement may fail.
        ContractSuspended: It is suspended.
        SignatureRequired: It needs a signature that it does not have.
        CapabilityNotGranted: More is presented than is declared, or than the principal holds.
        EffectClassMismatch: Its effect class is another.
        CredentialPolicyChanged: The presented, bound and current credential version are not one.
    """
    named = f"{reference.name}@{reference.version}"
    if standing is None:
        raise ToolContractNotFound(f"There is no contract {named}")
    check_drift(reference, standing.schema_hash)
    _check_state(named, standing, purpose)
    _check_capabilities(named, reference, standing, granted)
    if reference.effect_class is not standing.effect_class:
        raise EffectClassMismatch(
            f"{named} is {standing.effect_class}, and {reference.effect_class} was presented",
            pointer="/effect_class",
            facts={"presented": reference.effect_class, "published": standing.effect_class},
        )
    if not reference.credential_version == standing.credential_bound == standing.credential_current:
        why = f"The credential of {named} changed: attest the contract, then resolve it again"
        if standing.credential_current is None:
            why = f"{named} has no credential in force: rotate the slot, then attest the contract"
        raise CredentialPolicyChanged(
            why,
            pointer="/credential_version",
            facts={
                "presented": reference.credential_version,
                "bound": standing.credential_bound,
                "current": standing.credential_current,
            },
        )


def check_drift(reference: ToolReference, published: str) -> None:
    """Refuse a tuple whose schema hash is not the published one. Raises ToolSchemaDrift."""
    if reference.schema_hash != published:
        raise ToolSchemaDrift(
            f"{reference.name}@{reference.version} has other schemas than were presented",
            pointer="/schema_hash",
            facts={"presented": reference.schema_hash, "published": published},
        )


def _check_state(named: str, standing: Standing, purpose: Purpose) -> None:
    if standing.lifecycle is Lifecycle.RETIRED:
        raise ContractRetired(f"{named} is retired")
    if standing.lifecycle not in _ACCEPTED[purpose]:
        is_retiring = standing.lifecycle is Lifecycle.RETIRING
        raise ContractMigrating(
            f"{named} is {standing.lifecycle}, and takes no {purpose.value}",
            # A retirement either succeeds or is reverted, so that the same dispatch may pass later.
            facts={
                "lifecycle": standing.lifecycle,
                "retryable": is_retiring and purpose is Purpose.DISPATCH,
            },
        )
    if standing.suspended:
        raise ContractSuspended(f"{named} is suspended")
    if standing.signature_missing:
        raise SignatureRequired(f"{named} has no signature by a key that is trusted now")


def _check_capabilities(
    named: str, reference: ToolReference, standing: Standing, granted: frozenset[str]
) -> None:
    undeclared = reference.capabilities - standing.capabilities
    if undeclared:
        raise CapabilityNotGranted(
            f"{named} does not declare: {', '.join(sorted(undeclared))}",
            pointer="/capabilities",
            facts={"undeclared": [*sorted(undeclared)]},
        )
    missing = reference.capabilities - granted
    if missing:
        raise CapabilityNotGranted(
            f"The principal does not hold: {', '.join(sorted(missing))}",
            pointer="/capabilities",
            facts={"not_granted": [*sorted(missing)]},
        )

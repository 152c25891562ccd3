"""The one vocabulary of refusals: the service raises these classes, the client raises them again.

    TallystickError
    ├── Refusal       a rule said no; the same request gets the same answer, unless `retryable`
    ├── Outage        something needed could not be reached; trying again is sensible
    └── LocalRefusal  code or a lockfile of this machine is not in order; no service took part

A class's docstring is its title and its `code` is public: neither the code nor its meaning ever
changes. HTTP status codes are chosen where HTTP is spoken.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from tallystick.canonical import Json


class TallystickError(Exception):
    """Anything that this library raises on purpose."""


class _Coded(TallystickError):
    """An error with a stable code, one sentence for people, and facts for programs.

    Args:
        detail: What happened this time, in one sentence.
        pointer: Where in the document or request, as an RFC 6901 JSON Pointer.
        facts: JSON-safe values that a program may act on: never a secret, never raw arguments.
    """

    code: ClassVar[str]
    retryable: ClassVar[bool]

    def __init__(
        self, detail: str, *, pointer: str | None = None, facts: Mapping[str, Json] | None = None
    ) -> None:
        # A detail is a sentence, wherever it is read.
        sentence = detail if detail.endswith((".", "?", "!")) else f"{detail}."
        super().__init__(sentence)
        self.detail = sentence
        self.pointer = pointer
        self.facts: dict[str, Json] = dict(facts or {})


class Refusal(_Coded):
    """A rule said no."""

    retryable: ClassVar[bool] = False


class Outage(_Coded):
    """Something that the answer needs could not be reached."""

    retryable: ClassVar[bool] = True


class LocalRefusal(_Coded):
    """Code or a lockfile of this machine is not in order."""

    retryable: ClassVar[bool] = False


# --- resolution: the tuple against what the registry knows, most specific first -------------------


class ToolContractNotFound(Refusal):
    """No contract has this name and version."""

    code = "tool_contract_not_found"


class ToolSchemaDrift(Refusal):
    """The presented schema hash is not the published one."""

    code = "tool_schema_drift"


class ContractRetired(Refusal):
    """The version is retired and runs no more."""

    code = "contract_retired"


class ContractMigrating(Refusal):
    """The version is closed to new work and drains."""

    code = "contract_migrating"


class ContractSuspended(Refusal):
    """An operator has suspended the version."""

    code = "contract_suspended"
    retryable = True


class SignatureRequired(Refusal):
    """A signature by a key that is trusted now is required, and there is none."""

    code = "signature_required"


class CapabilityNotGranted(Refusal):
    """The call asks for a capability that it may not use."""

    code = "capability_not_granted"


class EffectClassMismatch(Refusal):
    """The presented effect class is not the published one."""

    code = "effect_class_mismatch"


class CredentialPolicyChanged(Refusal):
    """The credential or the policy changed after the plan was made."""

    code = "credential_policy_changed"


class MixedVersions(Refusal):
    """The run already uses another version of this tool."""

    code = "mixed_versions"


# --- a call ---------------------------------------------------------------------------------------


class InvalidArguments(Refusal):
    """The arguments do not match the contract."""

    code = "invalid_arguments"


class AdapterAmbiguous(Refusal):
    """The adapter cannot translate these values without guessing."""

    code = "adapter_ambiguous"


class NotFound(Refusal):
    """There is no such thing here."""

    code = "not_found"


class PolicyBlocked(Refusal):
    """A policy forbids the call."""

    code = "policy_blocked"


class NeedsHuman(Refusal):
    """The call waits for a person's approval."""

    code = "needs_human"
    retryable = True


class ApprovalStale(Refusal):
    """The approval was given for something else."""

    code = "approval_stale"


class ApprovalRejected(Refusal):
    """A person said no."""

    code = "approval_rejected"


class ApprovalExpired(Refusal):
    """The approval ran out before it was used."""

    code = "approval_expired"


class BudgetExhausted(Refusal):
    """A budget has nothing left for this call."""

    code = "budget_exhausted"


# --- the ledger -----------------------------------------------------------------------------------


class EffectConflict(Refusal):
    """The key already belongs to an effect with other arguments."""

    code = "effect_conflict"


class EffectNotRetryable(Refusal):
    """The effect may not be tried again."""

    code = "effect_not_retryable"


class FenceStale(Refusal):
    """Another worker has taken the effect over."""

    code = "fence_stale"


class LeaseExpired(Refusal):
    """The lease ran out before it was used."""

    code = "lease_expired"


class IllegalTransition(Refusal):
    """The effect or contract cannot go from its state to that one."""

    code = "illegal_transition"


class InvalidResult(Refusal):
    """The result does not match the contract."""

    code = "invalid_result"


# --- publishing and retiring ----------------------------------------------------------------------


class ContractInUse(Refusal):
    """Something still refers to the version."""

    code = "contract_in_use"
    retryable = True


class ContractExists(Refusal):
    """This name and version is published already, with other content."""

    code = "contract_exists"


class InvalidContract(Refusal):
    """The document is not a valid contract."""

    code = "invalid_contract"


class SignatureInvalid(Refusal):
    """The signature is not one of this contract by a key that is trusted now."""

    code = "signature_invalid"


class InvalidPolicy(Refusal):
    """The document is not a valid policy."""

    code = "invalid_policy"


class NameReserved(Refusal):
    """The name belonged to a retired tool or parameter with another meaning."""

    code = "name_reserved"


class ReviewRequired(Refusal):
    """A named reviewer must sign off this change first."""

    code = "review_required"


# --- every request --------------------------------------------------------------------------------


class InvalidRequest(Refusal):
    """A body or parameter has not the documented form."""

    code = "invalid_request"


class TooLarge(Refusal):
    """The document or request exceeds its size limit."""

    code = "too_large"


class TooSlow(Refusal):
    """The request took longer to arrive than it may."""

    code = "too_slow"
    retryable = True


class Unauthenticated(Refusal):
    """The request carries no valid token."""

    code = "unauthenticated"


class Forbidden(Refusal):
    """The token does not allow this."""

    code = "forbidden"


class TokenConflict(Refusal):
    """The tenant's tokens do not allow this."""

    code = "token_conflict"


class RateLimited(Refusal):
    """There were too many requests in too short a time."""

    code = "rate_limited"
    retryable = True


class ServiceTimeout(Outage):
    """The tool's service did not answer in time."""

    code = "service_timeout"


class ServiceUnavailable(Outage):
    """The tool's service could not be reached."""

    code = "service_unavailable"


class RegistryUnavailable(Outage):
    """The registry could not be reached."""

    code = "registry_unavailable"


class UnknownRefusal(Refusal):
    """The service refused with a code that this release of the library does not know."""

    code = "unknown_refusal"

    def __reduce__(self) -> tuple[Any, ...]:
        # The class that kept the code was made by error_for, and pickle cannot find it by name.
        return _unknown_refusal, (self.code, self.detail), self.__dict__


# --- contracts from code, the lockfile, tools of this process: these never go over the wire -------


class SignatureUnsupported(LocalRefusal):
    """No contract can be made of this signature."""

    code = "signature_unsupported"


class NameTaken(LocalRefusal):
    """Two tools of the code have one name."""

    code = "name_taken"


class ContractChanged(LocalRefusal):
    """The code's contract is not the one that the lockfile accepts.

    Args:
        report: What changed and what to do, in lines for a person.
    """

    code = "contract_changed"

    def __init__(
        self,
        detail: str,
        *,
        report: str = "",
        pointer: str | None = None,
        facts: Mapping[str, Json] | None = None,
    ) -> None:
        super().__init__(detail, pointer=pointer, facts=facts)
        self.report = report

    def __str__(self) -> str:
        return f"{self.detail}\n\n{self.report}" if self.report else self.detail


class LockfileEntryMissing(LocalRefusal):
    """The lockfile does not hold the tool, and may not be written."""

    code = "lockfile_entry_missing"


class LockfileInvalid(LocalRefusal):
    """The lockfile cannot be read as one."""

    code = "lockfile_invalid"


class LockfileUnwritable(LocalRefusal):
    """The lockfile cannot be written."""

    code = "lockfile_unwritable"


class ModuleFailed(LocalRefusal):
    """A module cannot be imported."""

    code = "module_failed"


class ToolFailed(LocalRefusal):
    """The tool said no, by a code of its contract."""

    code = "tool_failed"


class InvalidPolicyTable(LocalRefusal):
    """The file is not a table of cases for the policy."""

    code = "invalid_policy_table"


class InvalidTrace(LocalRefusal):
    """The file is not the trace of a run."""

    code = "invalid_trace"


class ToolNotDeclared(LocalRefusal):
    """Neither the code nor the lockfile has such a tool."""

    code = "tool_not_declared"


def error_for(code: str) -> type[Refusal] | type[Outage]:
    """Return the class that has this code.

    A code from a newer service gives a subclass of `UnknownRefusal` that keeps it.
    """
    return _BY_CODE.get(code) or type("UnknownRefusal", (UnknownRefusal,), {"code": code})


def _unknown_refusal(code: str, detail: str) -> Refusal | Outage:
    return error_for(code)(detail)


_BY_CODE = {leaf.code: leaf for base in (Refusal, Outage) for leaf in base.__subclasses__()}

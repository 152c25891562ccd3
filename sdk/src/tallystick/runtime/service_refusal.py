"""What it means for a call that the service, or its function, ended it with an error. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from tallystick._effect import EffectFailed, EffectNotOwned, NotSent
from tallystick.canonical import Json
from tallystick.effect_class import EffectClass
from tallystick.errors import (
    ApprovalExpired,
    ApprovalRejected,
    ApprovalStale,
    CredentialPolicyChanged,
    EffectNotRetryable,
    LeaseExpired,
    NeedsHuman,
    Outage,
    Refusal,
    RegistryUnavailable,
    ServiceUnavailable,
    TallystickError,
    UnknownRefusal,
    error_for,
)
from tallystick.gates.denial import Denial, Gate
from tallystick.gates.service import NOBODY_KNOWS, ONCE_MORE, failure
from tallystick.policy import Decision, Verdict
from tallystick.tool_contract import Contract

_GATES: Final[Mapping[str, Gate]] = {
    "tool_contract_not_found": Gate.CONTRACT,
    "tool_schema_drift": Gate.CONTRACT,
    "contract_retired": Gate.CONTRACT,
    "contract_migrating": Gate.CONTRACT,
    "contract_suspended": Gate.CONTRACT,
    "signature_required": Gate.CONTRACT,
    "credential_policy_changed": Gate.CONTRACT,
    "invalid_arguments": Gate.ARGUMENTS,
    "not_found": Gate.PERMISSION,
    "capability_not_granted": Gate.PERMISSION,
    "forbidden": Gate.PERMISSION,
    "needs_human": Gate.POLICY,
    "policy_blocked": Gate.POLICY,
    "budget_exhausted": Gate.POLICY,
    "approval_rejected": Gate.POLICY,
    "approval_expired": Gate.POLICY,
    "approval_stale": Gate.POLICY,
    # Where nobody can be asked, nothing is let pass.
    "registry_unavailable": Gate.POLICY,
}
"""The gate that a refusal of the service comes from; the others come from the last one."""

# What will never be sent. Where a person said no, the call stays the one that was refused.
_ENDED: Final = (ApprovalExpired, ApprovalStale, CredentialPolicyChanged, LeaseExpired)


@dataclass(frozen=True, slots=True)
class Ended:
    """A call that the service or its function ended with an error.

    Args:
        denial: What is told of it.
        is_over: Whether the same call is another one from now on: nothing came of this one, and
            nothing will.
        is_of_tool: Whether it is the tool that said no, now or when it was called before.
    """

    denial: Denial
    is_over: bool = False
    is_of_tool: bool = False


def of_service(error: TallystickError, contract: Contract) -> Ended:
    """Return what an error of the client means to the call that met it."""
    match error:
        case EffectFailed():
            is_declared = any(each.code == error.code for each in contract.errors)
            if not is_declared:
                return _not_done(error.code)
            told = failure(error, contract, failed_before=False)
            return Ended(told, is_over=True, is_of_tool=True)
        case EffectNotOwned():
            return _not_owned(error, contract)
        case RegistryUnavailable():
            # Where the registry is, and what it was asked, is nothing for a model.
            told = RegistryUnavailable("The registry cannot be asked whether the call may run.")
            return Ended(Denial.of(_GATES[told.code], told))
        case Refusal() | Outage():
            gate = _GATES.get(error.code, Gate.SERVICE)
            rule = error.facts.get("rule")
            denial = Denial(gate, error, error.code, rule if isinstance(rule, str) else None)
            return Ended(denial, is_over=isinstance(error, _ENDED))
        case _:
            return Ended(_in_question(contract))


def of_function(error: Exception, contract: Contract, *, failed_before: bool) -> Ended:
    """Return what an exception of the tool's function means, as the ledger has it now."""
    if isinstance(error, NotSent):
        return _not_done("not_sent")
    denial = failure(error, contract, failed_before=failed_before)
    if is_settled(error, contract):
        return Ended(denial, is_over=True, is_of_tool=True)
    if isinstance(denial.refusal, Outage):
        # The ledger finds out what became of it: until then nobody is to try again.
        told = f"{type(denial.refusal).__doc__} {NOBODY_KNOWS}"
        refusal = type(denial.refusal)(told, facts={"retryable": False})
        denial = replace(denial, refusal=refusal)
    return Ended(denial, is_of_tool=True)


def is_settled(error: Exception, contract: Contract) -> bool:
    """Tell whether an exception of a function says for certain that nothing was done."""
    code = getattr(error, "code", None)
    is_vouched = any(each.code == code and each.not_executed for each in contract.errors)
    return is_vouched or contract.effect_class is EffectClass.PURE


def verdict_of(denial: Denial | None) -> Verdict | None:
    """Return what the service's policy said, as far as it was asked and told."""
    if denial is None:
        return Verdict(Decision.ALLOW, None, None, "", "", ())
    if denial.gate is Gate.SERVICE:
        return Verdict(Decision.ALLOW, None, None, "", "", ())
    if denial.gate is not Gate.POLICY:
        return None
    asks = isinstance(denial.refusal, NeedsHuman)
    decision = Decision.NEEDS_HUMAN if asks else Decision.BLOCK
    refusal = denial.refusal
    policy = _policy_name(refusal.facts.get("policy"))
    return Verdict(decision, refusal.code, denial.rule, refusal.detail, policy, ())


def _not_owned(error: EffectNotOwned, contract: Contract) -> Ended:
    """Tell of an effect that is closed without an outcome, or whose outcome is in question."""
    kind = error_for(error.reason) if error.reason else UnknownRefusal
    if error.state != "REFUSED" or kind is UnknownRefusal:
        return Ended(_in_question(contract))
    # What a person said is for the application, and not for the model.
    facts: dict[str, Json] = {} if error.said is None else {"reason": error.said}
    refusal = kind((kind.__doc__ or "").partition("\n")[0], facts=facts)
    gate = _GATES.get(refusal.code, Gate.SERVICE)
    is_over = not isinstance(refusal, ApprovalRejected)
    return Ended(Denial(gate, refusal, refusal.code), is_over)


def _not_done(true_code: str) -> Ended:
    """Tell of a call of which it is certain that nothing was done."""
    told = f"{ServiceUnavailable.__doc__} {ONCE_MORE}"
    refusal = ServiceUnavailable(told, facts={"retryable": True})
    return Ended(Denial(Gate.SERVICE, refusal, true_code), is_over=True, is_of_tool=True)


def _in_question(contract: Contract) -> Denial:
    refusal = EffectNotRetryable(f"{contract.name} was called so before. {NOBODY_KNOWS}")
    return Denial.of(Gate.SERVICE, refusal)


def _policy_name(told: Json) -> str:
    name = told.get("policy") if isinstance(told, dict) else told
    return name if isinstance(name, str) else ""

"""The fourth gate: what the policy in force says, and whether the contract itself asks a person.

The stricter of both wins, always: `approval: never` asks for nobody, and takes nothing away from a
policy that does.
"""

from dataclasses import replace
from typing import Final

from tallystick.errors import NeedsHuman
from tallystick.policy import Call, Decision, History, Policy, Verdict, decide
from tallystick.tool_contract import Contract

_UNRULED: Final = Verdict(Decision.ALLOW, None, None, "", "", ())


def asks_a_person(contract: Contract, *, has_policy: bool) -> bool:
    """Tell whether a call waits for a person, whatever a policy says of it.

    Args:
        contract: Its contract.
        has_policy: Whether a policy is in force, so that `approval: policy` leaves it to that.
    """
    return contract.approval == "always" or (contract.approval == "policy" and not has_policy)


def decided(contract: Contract, policy: Policy | None, call: Call, history: History) -> Verdict:
    """Decide about a call by the policy in force, if there is one, and by its contract.

    Args:
        contract: Its contract.
        policy: The policy in force.
        call: The call, its arguments already held to the contract.
        history: What has happened in its run.
    """
    verdict = _UNRULED if policy is None else decide(policy, call, history)
    if verdict.decision is Decision.ALLOW and asks_a_person(
        contract, has_policy=policy is not None
    ):
        return replace(
            verdict,
            decision=Decision.NEEDS_HUMAN,
            code=NeedsHuman.code,
            message=f"A person must approve {contract.name} before it runs.",
        )
    return verdict

"""What stands against sending an effect as things are now: its version, its grants, its policy."""

from ledger import admission, approval
from ledger.effect import LOOK_UP, Effect
from ledger.service.view import Ledger, may_wait
from registry.entry import Entry
from registry.policy import PolicyInForce
from tallystick.errors import CredentialPolicyChanged, Refusal
from tallystick.resolution import Purpose, check


async def standing_refusal(
    ledger: Ledger, effect: Effect, entry: Entry, policy: PolicyInForce | None
) -> Refusal | None:
    """Return what the registry, or a change of policy, has against the recorded call, or None.

    What is asked for at a dispatch is held until its end, and ``policy`` is the one in force then.
    """
    recorded = entry.contract.reference(
        credential_version=effect.credential_version, capabilities=effect.capabilities
    )
    granted = await ledger.registry.granted(effect.principal, sorted(effect.capabilities))
    try:
        check(recorded, entry.standing(ledger.caller.tenant), granted, Purpose.DISPATCH)
    except CredentialPolicyChanged as changed:
        return CredentialPolicyChanged(
            f"Effect {effect.id} is recorded under version {effect.credential_version} of its"
            " credential, which is not in force any more.",
            pointer=changed.pointer,
            facts=changed.facts,
        )
    except Refusal as refusal:
        return refusal
    current = (policy.name, policy.revision) if policy else (None, None)
    if current == (effect.policy, effect.policy_revision):
        return None
    planned = _named(effect.policy, effect.policy_revision)
    return CredentialPolicyChanged(
        f"Effect {effect.id} was planned under {planned}, and {_named(*current)} is in force now.",
        facts={"planned_under": effect.policy, "planned_revision": effect.policy_revision},
    )


async def final_refusal(ledger: Ledger, effect: Effect, entry: Entry) -> Refusal | None:
    """Return what would close or quarantine an effect at its next dispatch, or None.

    It is for people who decide on one that waits: nothing is held, and the dispatch asks again.
    """
    policy = None
    if effect.origin != LOOK_UP:
        policy = await ledger.policies.policy_in_force(effect.principal, lock=False)
    refusal = await standing_refusal(ledger, effect, entry, policy)
    if refusal is None and may_wait(effect, entry.contract):
        given = await ledger.approvals.look(effect.id)
        refusal = approval.why_not(given, entry.read_at) if given else None
    return refusal if isinstance(refusal, admission.FINAL) else None


def _named(policy: str | None, revision: int | None) -> str:
    return "no policy" if policy is None else f"the policy {policy}, revision {revision}"

"""What one can ask of policies: one use case a function."""

from kernel.scope import Caller
from registry.policy import EVERYBODY, PolicyRevision
from registry.store import RegistryStore
from registry.store_policies import PolicyStore
from tallystick.canonical import Json
from tallystick.errors import NotFound
from tallystick.policy import Policy


async def publish(
    store: RegistryStore, policies: PolicyStore, caller: Caller, policy: Policy, source: str
) -> tuple[PolicyRevision, bool]:
    """Publish a policy as the next revision of its name; what says the same changes nothing.

    It waits for the dispatches that are under way on the policy; those that come later wait for it,
    and go by the new revision. Returns the revision that counts, and whether it is new.
    """
    await policies.take(policy.id)
    last = await policies.revision(policy.id)
    if last is not None and last.digest == policy.digest:
        return last, False
    number = last.revision if last else 0
    await policies.publish(policy, source, after=number, by=caller.principal)
    facts: dict[str, Json] = {"revision": number + 1, "digest": policy.digest}
    await store.record("policy_published", policy.id, actor=caller.principal, facts=facts)
    return await find(policies, policy.id), True


async def find(policies: PolicyStore, policy: str, number: int | None = None) -> PolicyRevision:
    """Return one revision of a policy, or the one that counts. Raises NotFound."""
    found = await policies.revision(policy, number)
    if found is None:
        numbered = "" if number is None else f" with a revision {number}"
        raise NotFound(f"There is no policy {policy}{numbered}.")
    return found


async def listed(policies: PolicyStore, principal: str | None) -> list[PolicyRevision]:
    """Return of every policy the revision that counts, or the one in force for a principal."""
    if principal is None:
        return await policies.heads()
    in_force = await policies.policy_in_force(principal, lock=False)
    return [] if in_force is None else [await find(policies, in_force.name, in_force.revision)]


async def assign(
    store: RegistryStore, policies: PolicyStore, caller: Caller, policy: str, principal: str
) -> bool:
    """Assign a policy to a principal, or to everybody, in the place of any other.

    It waits for the dispatches that are under way on what was in force for the principal. Those
    that found nothing in force hold nothing, and are not awaited. Returns whether it is new.

    Raises NotFound.
    """
    await store.lock_name(_ASSIGNMENTS)
    await find(policies, policy)
    former = await policies.assignment(principal)
    if former == policy:
        return False
    await policies.take_in_force(principal)
    await policies.assign(principal, policy, by=caller.principal)
    facts: dict[str, Json] = {"policy": policy, "former": former}
    await store.record("policy_assigned", principal, actor=caller.principal, facts=facts)
    return True


async def unassign(
    store: RegistryStore, policies: PolicyStore, caller: Caller, policy: str, principal: str
) -> None:
    """Take a policy back from a principal, or from everybody. As `assign`, it waits.

    Raises NotFound when it is not assigned so.
    """
    await store.lock_name(_ASSIGNMENTS)
    if await policies.assignment(principal) != policy:
        whom = "everybody" if principal == EVERYBODY else principal
        raise NotFound(f"The policy {policy} is not assigned to {whom}.")
    await policies.take_in_force(principal)
    await policies.unassign(principal)
    facts: dict[str, Json] = {"policy": policy}
    await store.record("policy_unassigned", principal, actor=caller.principal, facts=facts)


# No name of a tool holds a space.
_ASSIGNMENTS = "assignments of policies"

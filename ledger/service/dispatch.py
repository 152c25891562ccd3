"""Makes workers the owners of effects (T2, T7), and records why not (T9, T10)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from ledger import admission, approval
from ledger.admission import Decision, Worker
from ledger.approval import Approval
from ledger.effect import LOOK_UP, Effect
from ledger.identity import EffectId, provider_key, with_key
from ledger.service import approvals, gates
from ledger.service.standing import standing_refusal
from ledger.service.view import (
    Dispatch,
    Ledger,
    View,
    found,
    may_wait,
    sent_arguments,
    view_of,
)
from ledger.state import State
from ledger.store import Held
from registry.entry import Entry
from registry.policy import PolicyInForce
from tallystick.canonical import Json
from tallystick.errors import CapabilityNotGranted, Refusal, ToolSchemaDrift
from tallystick.policy import Call
from tallystick.tool_contract import Contract, ToolReference


async def dispatch(
    ledger: Ledger, effect_id: EffectId, worker: Worker, presented: ToolReference | None = None
) -> View:
    """Make a worker the owner of a planned or retryable effect, on the contract that is recorded.

    The refusal of a guard is in the view: the step that it causes has to be committed first.

    Raises:
        NotFound: There is no such effect.
        CapabilityNotGranted: The caller may not send it (see `may_send`); no row changes.
        ToolSchemaDrift: The worker presents another contract than the recorded one.
    """
    effect = await found(ledger, effect_id)
    asked = sorted(effect.capabilities)
    both = {effect.principal, ledger.caller.principal}
    await ledger.registry.lock(effect.contract_id, asked, *both)
    policy = None
    if effect.origin != LOOK_UP:
        policy = await ledger.policies.policy_in_force(effect.principal, lock=True)
    if not await may_send(ledger, effect):
        raise not_granted(effect)
    held = await ledger.store.hold(effect_id)
    entry = await ledger.registry.entry_by_id(effect.contract_id)
    if presented is not None and not _is_recorded(presented, effect, entry.contract):
        raise ToolSchemaDrift(
            f"Effect {effect_id} is recorded with another tuple of {effect.tool}@{effect.version}.",
            facts={"recorded_schema_hash": entry.contract.schema_hash},
        )
    if held.open is None:
        view = await view_of(ledger, effect)
        return replace(
            view, dispatch=await dispatch_answer(ledger, view, owned=False, now=held.read_at)
        )
    decision = await _decided(ledger, Asked(effect, entry, held, policy, worker))
    if decision.step is not None:
        await ledger.store.advance(effect, decision.step)
    view = replace(await view_of(ledger, effect), refusal=decision.refusal)
    answer = await dispatch_answer(ledger, view, owned=decision.owned, now=held.read_at)
    return replace(view, dispatch=answer)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is known of an effect that a worker asks to send, all of it held."""

    effect: Effect
    entry: Entry
    held: Held
    policy: PolicyInForce | None
    worker: Worker


async def _decided(ledger: Ledger, asked: Asked) -> Decision:
    """Decide: first by what stands of the effect and the registry, and then by the gates.

    Only a call that could be sent now is brought before the gates, so that none pays for nothing.
    """
    effect, contract, now = asked.effect, asked.entry.contract, asked.held.read_at
    before = asked.held.open
    assert before is not None
    refusal = await standing_refusal(ledger, effect, asked.entry, asked.policy)
    if refusal is None and before.state is State.RETRYABLE:
        evidence = await ledger.store.evidence(effect.id)
        refusal = admission.contradicted(contract, [one.answer for one in evidence])
    given = None
    if before.state in (State.PLANNED, State.RETRYABLE) and may_wait(effect, contract):
        given = await ledger.approvals.hold(effect.id)
        refusal = approval.outdated(given, refusal) if given and refusal else refusal
    decision = admission.decide(before, contract, refusal, asked.worker, now)
    if decision.owned and decision.step is not None:
        refusal = await _gates_refusal(ledger, asked, given)
        decision = admission.decide(before, contract, refusal, asked.worker, now)
    if decision.refusal is not None and decision.step is not None:
        await approvals.close(
            ledger, effect, actor=asked.worker.actor, reason=decision.refusal.code, now=now
        )
    return decision


async def _gates_refusal(ledger: Ledger, asked: Asked, given: Approval | None) -> Refusal | None:
    """Hold a call to the gates once more, at the moment of its dispatch; charge it if they let it.

    A further attempt of an effect is charged for nothing.
    """
    effect, contract, now = asked.effect, asked.entry.contract, asked.held.read_at
    run_id = effect.id.run_id
    again = asked.held.open is not None and asked.held.open.attempt > 0
    arguments = await sent_arguments(ledger, effect)
    denial = await gates.permit(ledger, run_id, contract, arguments)
    ruling = None
    if denial is None and asked.policy is not None:
        call = Call(effect.tool, arguments)
        ruling = await gates.rule(ledger, run_id, asked.policy, call, now, hold=True, again=again)
        denial = ruling.denial
    if denial is None:
        question = approval.question(contract, ruling.verdict if ruling else None)
        if given is None and question is not None:
            given = await approvals.ask(ledger, effect, question, now)
            await ledger.store.wait_until(effect.id, given.expires_at)
            await gates.note(ledger, effect, approvals.denial_of(given))
        if given is not None and (waits := approval.why_not(given, now)) is not None:
            return waits
    if denial is None and ruling is not None and not again:
        denial = await gates.spend(ledger, run_id, ruling, now)
    if denial is not None:
        await gates.note(ledger, effect, denial)
        assert isinstance(denial.refusal, Refusal)
        return denial.refusal
    if given is not None:
        await approvals.consume(ledger, effect, given, actor=asked.worker.actor, now=now)
    return None


async def may_send(ledger: Ledger, effect: Effect) -> bool:
    """Tell whether the caller may send an effect: it planned it, or holds what the call may touch.

    Whether its planner still may is another question, and asked at each dispatch.
    """
    caller = ledger.caller.principal
    if caller == effect.principal:
        return True
    return effect.capabilities <= await ledger.registry.granted(caller, sorted(effect.capabilities))


def not_granted(effect: Effect) -> CapabilityNotGranted:
    """Return the refusal of a caller that may not send an effect."""
    return CapabilityNotGranted(
        f"Effect {effect.id} is another principal's, and not all that it may touch is granted to"
        " you.",
        facts={"effect_id": str(effect.id)},
    )


def _is_recorded(presented: ToolReference, effect: Effect, contract: Contract) -> bool:
    recorded = contract.reference(
        credential_version=effect.credential_version, capabilities=effect.capabilities
    )
    return presented == recorded


async def dispatch_answer(ledger: Ledger, view: View, *, owned: bool, now: datetime) -> Dispatch:
    """Return what a worker is told of a view, at the database's time ``now``."""
    after, outcome = view.open, view.outcome
    key = provider_key(ledger.caller.tenant_id, view.effect.id)
    lease_seconds = 0.0
    arguments: Mapping[str, Json] | None = None
    if owned:
        assert after is not None
        assert after.due_at is not None
        lease_seconds = max((after.due_at - now).total_seconds(), 0.0)
        arguments = await sent_arguments(ledger, view.effect)
        idempotency = view.contract.idempotency
        if idempotency is not None and idempotency.argument is not None:
            arguments = with_key(arguments, idempotency.argument, key)
    return Dispatch(
        owned=owned,
        fence=after.fence if after else (outcome.fence if outcome else 0),
        attempt=after.attempt if after else 0,
        lease_seconds=lease_seconds,
        provider_key=key,
        arguments=arguments,
    )

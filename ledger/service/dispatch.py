"""Makes workers the owners of effects (T2, T7), and records why not (T9, T10)."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from ledger import admission
from ledger.admission import Worker
from ledger.effect import Effect
from ledger.identity import EffectId, provider_key, with_key
from ledger.service.view import Dispatch, Ledger, View, found, sent_arguments, view_of
from ledger.state import State
from registry.entry import Entry
from tallystick.canonical import Json
from tallystick.errors import CapabilityNotGranted, Refusal, ToolSchemaDrift
from tallystick.resolution import Purpose, check
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
    refusal = await _standing_refusal(ledger, effect, entry)
    if refusal is None and held.open.state is State.RETRYABLE:
        evidence = await ledger.store.evidence(effect_id)
        refusal = admission.contradicted(entry.contract, [one.answer for one in evidence])
    decision = admission.decide(held.open, entry.contract, refusal, worker, held.read_at)
    if decision.step is not None:
        await ledger.store.advance(effect, decision.step)
    view = replace(await view_of(ledger, effect), refusal=decision.refusal)
    answer = await dispatch_answer(ledger, view, owned=decision.owned, now=held.read_at)
    return replace(view, dispatch=answer)


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


async def _standing_refusal(ledger: Ledger, effect: Effect, entry: Entry) -> Refusal | None:
    """Return what the registry has against the recorded tuple now, or None."""
    recorded = entry.contract.reference(
        credential_version=effect.credential_version, capabilities=effect.capabilities
    )
    granted = await ledger.registry.granted(effect.principal, sorted(effect.capabilities))
    try:
        check(recorded, entry.standing(ledger.caller.tenant), granted, Purpose.DISPATCH)
    except Refusal as refusal:
        return refusal
    return None


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

"""Records what people decide (T8, T11)."""

from datetime import datetime
from typing import Final

from ledger import settlement
from ledger.effect import Effect, OpenEffect
from ledger.identity import EffectId
from ledger.service import approvals, gates
from ledger.service.view import Ledger, View, contract_of, found, view_of
from ledger.settlement import Answer, Resolution
from ledger.state import State
from tallystick.errors import EffectConflict, EffectNotRetryable
from tallystick.resolution import Lifecycle
from tallystick.tool_contract import Contract

_ANSWERS: Final = {
    State.SUCCEEDED: Answer.APPLIED,
    State.FAILED: Answer.REJECTED,
    State.RETRYABLE: Answer.ABSENT,
}


async def cancel(ledger: Ledger, effect_id: EffectId, reason: str) -> View:
    """Give an effect up; one that is cancelled already stays so.

    Raises NotFound, EffectConflict for one that ended otherwise, IllegalTransition.
    """
    # Held before it is looked at: of two at once, the second finds what the first did.
    await ledger.store.hold(effect_id)
    view = await view_of(ledger, await found(ledger, effect_id))
    if view.outcome is not None and view.outcome.status is State.CANCELLED:
        return view
    effect, before, contract, now = await _held_open(ledger, effect_id)
    step = settlement.cancel(
        before, contract, actor=ledger.caller.principal, reason=reason, now=now
    )
    await ledger.store.advance(effect, step)
    await approvals.close(ledger, effect, actor=step.actor, reason=reason, now=now)
    return await view_of(ledger, effect)


async def resolve(ledger: Ledger, effect_id: EffectId, resolution: Resolution) -> View:
    """Settle a quarantined effect by a person's word.

    Raises as :func:`ledger.settlement.resolve` does, and EffectNotRetryable for a new attempt on a
    version that is retired.
    """
    effect, before, contract, now = await _held_open(ledger, effect_id)
    step = settlement.resolve(before, contract, resolution, now)
    # Needs no lock: what a queue brings for a retired version is the only work that it has.
    entry = await ledger.registry.entry_by_id(effect.contract_id)
    if step.to_state is State.RETRYABLE and entry.lifecycle is Lifecycle.RETIRED:
        raise EffectNotRetryable(f"{effect.tool}@{effect.version} is retired.")
    await ledger.store.keep(
        effect_id,
        fence=step.fence,
        source=f"person:{resolution.by}",
        answer=_ANSWERS.get(resolution.to_state, Answer.UNAVAILABLE),
        observed_at=now,
        detail=resolution.evidence,
        provider_reference=None,
    )
    await ledger.store.advance(effect, step)
    if step.to_state is State.SUCCEEDED:
        await gates.succeeded(ledger, effect, (), now)
    return await view_of(ledger, effect)


async def _held_open(
    ledger: Ledger, effect_id: EffectId
) -> tuple[Effect, OpenEffect, Contract, datetime]:
    effect = await found(ledger, effect_id)
    held = await ledger.store.hold(effect_id)
    if held.open is None:
        raise EffectConflict(f"Effect {effect_id} is closed.", facts={"effect_id": str(effect_id)})
    contract = await contract_of(ledger, effect)
    return effect, held.open, contract, held.read_at

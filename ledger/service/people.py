"""Records what people decide (T8, T11), and shows what they have to decide on."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ledger import quarantine, settlement
from ledger.effect import Effect, Event, OpenEffect
from ledger.evidence import Answer, person
from ledger.identity import EffectId
from ledger.quarantine import Cause, Choice, Known, Resolution, Status
from ledger.service import approvals, gates
from ledger.service.standing import final_refusal
from ledger.service.view import Ledger, View, contract_of, found, view_of
from ledger.state import State
from ledger.store import QuarantineSearch
from tallystick.errors import EffectConflict, IllegalTransition
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
    effect, before, contract, now = await held_open(ledger, effect_id)
    step = settlement.cancel(
        before, contract, actor=ledger.caller.principal, reason=reason, now=now
    )
    await ledger.store.advance(effect, step)
    await approvals.close(ledger, effect, actor=step.actor, reason=reason, now=now)
    return await view_of(ledger, effect)


async def resolve(ledger: Ledger, effect_id: EffectId, resolution: Resolution) -> View:
    """Settle a quarantined effect by a person's word, or propose that where it takes two of them.

    Raises as :func:`ledger.quarantine.resolve` does, NotFound, and EffectConflict for one that is
    closed.
    """
    effect, before, contract, now = await held_open(ledger, effect_id)
    last = await ledger.quarantine.last_word(effect_id)
    known = await known_of(ledger, effect)
    decision = quarantine.resolve(before, contract, resolution, last, known, now)
    if decision.word is not None:
        await ledger.quarantine.append(effect_id, decision.word)
    if decision.step is None:
        return await view_of(ledger, effect)
    if last is not None and decision.word is not None:
        await _keep(ledger, effect_id, decision.step.fence, last.resolution, last.at)
    await _keep(ledger, effect_id, decision.step.fence, resolution, now)
    counted = any(one.status is State.SUCCEEDED for one in await ledger.store.outcomes(effect_id))
    await ledger.store.advance(effect, decision.step)
    if decision.step.to_state is State.SUCCEEDED and not counted:
        await gates.succeeded(ledger, effect, (), now)
    return await view_of(ledger, effect)


async def known_of(ledger: Ledger, effect: Effect) -> Known:
    """Return what is known of an effect beside where it is."""
    # Needs no lock: what a queue brings for a retired version is the only work that it has.
    entry = await ledger.registry.entry_by_id(effect.contract_id)
    evidence = await ledger.store.evidence(effect.id)
    was_closed = bool(await ledger.store.outcomes(effect.id))
    # What nobody knows as what it was sent is not sent again.
    refusal = None if effect.is_orphan else await final_refusal(ledger, effect, entry)
    return Known(
        entry.lifecycle, evidence, was_closed, effect.is_orphan, refusal and refusal.detail
    )


async def _keep(
    ledger: Ledger, effect_id: EffectId, fence: int, said: Resolution, at: datetime
) -> None:
    """Keep what a person's word rests on as evidence, where it rests on any."""
    if said.evidence is None:
        return
    await ledger.store.keep(
        effect_id,
        fence=fence,
        source=person(said.by),
        answer=_ANSWERS.get(said.to_state, Answer.UNAVAILABLE),
        observed_at=at,
        detail=said.evidence,
        provider_reference=None,
    )


async def retry(
    ledger: Ledger, effect_id: EffectId, reason: str, evidence: str | None = None
) -> View:
    """Let a worker send a quarantined effect again, on its recorded contract and no other.

    One that is retryable already stays so. Raises as :func:`resolve` does.
    """
    effect, before, _, _ = await held_open(ledger, effect_id)
    if before.state is State.RETRYABLE:
        return await view_of(ledger, effect)
    by = ledger.caller.principal
    return await resolve(ledger, effect_id, Resolution(State.RETRYABLE, reason, evidence, by))


async def withdraw(ledger: Ledger, effect_id: EffectId, reason: str) -> View:
    """Take a proposal back, one's own or another's; nothing else changes.

    Raises NotFound, EffectConflict for an effect that is closed, IllegalTransition where nothing
    is proposed.
    """
    effect, before, _, now = await held_open(ledger, effect_id)
    last = await ledger.quarantine.last_word(effect_id)
    evidence = await ledger.store.evidence(effect_id)
    proposal = quarantine.standing(last, before, evidence)
    if proposal is None:
        raise IllegalTransition("Nothing is proposed that could be withdrawn.")
    to_state, by = proposal.resolution.to_state, ledger.caller.principal
    taken_back = Resolution(to_state, reason, None, by)
    word = quarantine.next_word(proposal, before, taken_back, Status.WITHDRAWN, now)
    await ledger.quarantine.append(effect_id, word)
    return await view_of(ledger, effect)


async def held_open(
    ledger: Ledger, effect_id: EffectId
) -> tuple[Effect, OpenEffect, Contract, datetime]:
    """Hold an effect that is open. Raises NotFound, and EffectConflict for one that is closed."""
    effect = await found(ledger, effect_id)
    held = await ledger.store.hold(effect_id)
    if held.open is None:
        raise EffectConflict(f"Effect {effect_id} is closed.", facts={"effect_id": str(effect_id)})
    contract = await contract_of(ledger, effect)
    return effect, held.open, contract, held.read_at


# --- what is quarantined --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A quarantined effect, the step that quarantined it, why, and for how long by now."""

    view: View
    event: Event
    cause: Cause
    age_seconds: float


async def quarantined(ledger: Ledger, search: QuarantineSearch) -> list[Quarantined]:
    """Return the quarantined effects that match, the longest quarantined first."""
    return [
        await _quarantined(ledger, await view_of(ledger, await found(ledger, effect_id)))
        for effect_id in await ledger.quarantine.search(search)
    ]


async def in_quarantine(
    ledger: Ledger, effect_id: EffectId
) -> tuple[Quarantined, tuple[Choice, ...]]:
    """Return a quarantined effect, and everything that a person may decide of it.

    Raises NotFound, and EffectConflict for one that is not quarantined.
    """
    view = await view_of(ledger, await found(ledger, effect_id))
    before = view.open
    if before is None or before.state is not State.QUARANTINED:
        state = before.state if before else view.outcome and view.outcome.status
        raise EffectConflict(
            f"Effect {effect_id} is {state}, and not quarantined.",
            facts={"effect_id": str(effect_id)},
        )
    one = await _quarantined(ledger, view)
    known = await known_of(ledger, view.effect)
    now = (await ledger.store.look(effect_id)).read_at
    return one, quarantine.choices(before, view.contract, known, now)


async def _quarantined(ledger: Ledger, view: View) -> Quarantined:
    event, read_at = await ledger.quarantine.since(view.effect.id)
    age_seconds = max((read_at - event.at).total_seconds(), 0.0)
    return Quarantined(view, event, quarantine.cause_of(event), age_seconds)

"""Records what workers say of their attempts (T3, T4)."""

from dataclasses import replace
from datetime import datetime

from ledger import completion
from ledger.completion import Report, Verdict
from ledger.effect import Effect
from ledger.evidence import LATE_WORKER, WORKER, Answer, bearing
from ledger.identity import EffectId
from ledger.service import evidence, gates
from ledger.service.dispatch import may_send, not_granted
from ledger.service.evidence import Told
from ledger.service.view import Ledger, View, contract_of, found, view_of
from ledger.state import State
from tallystick.canonical import Json
from tallystick.errors import FenceStale, NotFound
from tallystick.schema import Validator, redact
from tallystick.tool_contract import Contract


async def report(ledger: Ledger, effect_id: EffectId, told: Report) -> View:
    """Record what a worker says of its attempt. The same report again changes nothing.

    It is taken from the principal that dispatched the attempt, or from one that could have.

    A report under a stale fence never changes the effect: it is kept as evidence, and the view's
    refusal says so.

    Raises:
        NotFound: There is no such effect, or it has no attempt with this fence.
        CapabilityNotGranted: The caller neither dispatched it nor may send it.
    """
    effect = await found(ledger, effect_id)
    if not (await _dispatched(ledger, effect, told) or await may_send(ledger, effect)):
        raise not_granted(effect)
    held = await ledger.store.hold(effect_id)
    contract = await contract_of(ledger, effect)
    if not completion.is_owner(told, held.open):
        return await _late(ledger, effect, told, held.read_at)
    assert held.open is not None
    # In a new statement after the lock: evidence that came while this waited for the lock is seen.
    heard = bearing(await ledger.store.evidence(effect_id), told.fence)
    # Who reads another's object has learned nothing that this run may go by.
    denial = await gates.permit_result(ledger, effect, contract, told) if told.has_result else None
    if denial is not None:
        told = replace(told, result=None, has_result=False)
    violations = _violations(contract, told) if denial is None else ()
    redacted = replace(told, result=_redacted_result(contract, told))
    step = completion.decide(held.open, contract, redacted, heard, violations, held.read_at)
    if step.to_state is not State.SUCCEEDED:
        if step.to_state.is_open and told.answer is not None:
            # It does not decide: it is one of the answers that decide later.
            said = _said(told, told.answer, WORKER, "against the evidence", held.read_at)
            await evidence.keep(ledger, effect, said, fence=told.fence, now=held.read_at)
        await ledger.store.advance(effect, step)
        return await view_of(ledger, effect)
    if denial is not None:
        await ledger.store.advance(effect, step)
        await gates.note(ledger, effect, denial)
        return await view_of(ledger, effect)
    # Before the step, which takes away the arguments as they were sent.
    plain = (None, None) if violations else (told.result, redacted.result)
    facts = await gates.facts_of(ledger, effect, *plain)
    await ledger.store.advance(effect, step)
    await gates.succeeded(ledger, effect, facts, held.read_at)
    return await view_of(ledger, effect)


async def _dispatched(ledger: Ledger, effect: Effect, told: Report) -> bool:
    """Tell whether who reports is who dispatched: it may end that, whatever was revoked since."""
    event = await ledger.store.event(effect.id, told.fence)
    return event is not None and (event.to_state, event.actor) == (State.DISPATCHED, told.actor)


async def _late(ledger: Ledger, effect: Effect, told: Report, now: datetime) -> View:
    attempts = await ledger.store.attempts(effect.id)
    if not any((one.fence, one.worker_id) == (told.fence, told.worker_id) for one in attempts):
        raise NotFound(f"Effect {effect.id} has no attempt of this worker with fence {told.fence}.")
    if completion.is_repeated(told, await ledger.store.event(effect.id, told.fence + 1)):
        return await view_of(ledger, effect)
    if told.answer is not None:
        late = _said(told, told.answer, LATE_WORKER, "after it had lost the effect", now)
        await evidence.take(ledger, effect, late)
    refusal = FenceStale(
        f"Fence {told.fence} of effect {effect.id} is no longer the current one;"
        " the report is kept as evidence.",
        facts={"effect_id": str(effect.id)},
    )
    return replace(await view_of(ledger, effect), refusal=refusal)


def _said(told: Report, answer: Answer, source: str, when: str, now: datetime) -> Told:
    """Return a report that does not decide as the evidence that it is."""
    return Told(
        source=source,
        answer=answer,
        observed_at=now,
        detail=f"{told.actor} reported {told.verdict} {when}",
        provider_reference=told.provider_reference,
        fence=told.fence,
    )


def _violations(contract: Contract, told: Report) -> tuple[str, ...]:
    if contract.output_schema is None or told.verdict is not Verdict.SUCCEEDED:
        return ()
    validator = Validator.of(contract.output_schema, contract.dialect, contract.assert_format)
    return tuple(
        f"{one.pointer or '/'}: {one.message}" for one in validator.violations(told.result)
    )


def _redacted_result(contract: Contract, told: Report) -> Json:
    return (
        told.result
        if contract.output_schema is None
        else redact(told.result, contract.output_schema)
    )

"""Asks people for their word on effects, takes it, and lets an effect run on it once.

An effect's open row is held before its approval, by whoever changes either.
"""

from datetime import datetime

from ledger import admission, approval
from ledger.approval import Approval, ApprovalStep, Question, Status
from ledger.effect import Effect
from ledger.identity import EffectId
from ledger.service.standing import final_refusal
from ledger.service.view import Ledger, View, contract_of, found, may_wait, view_of
from ledger.state import State
from ledger.store import ApprovalSearch
from tallystick.errors import NotFound
from tallystick.gates.denial import Denial, Gate


async def ask(ledger: Ledger, effect: Effect, asked: Question, now: datetime) -> Approval:
    """Ask a person for an effect that has just been recorded or is held; returns the approval."""
    step = approval.requested(effect, asked, now, approval_seconds=ledger.approval_seconds)
    await ledger.approvals.begin(effect, step)
    return step.after


def denial_of(asked: Approval) -> Denial:
    """Return what the policy gate answers where a person has to be asked first."""
    refusal = approval.waiting(asked)
    return Denial(Gate.POLICY, refusal, refusal.code, asked.rule)


async def consume(
    ledger: Ledger, effect: Effect, given: Approval, *, actor: str, now: datetime
) -> None:
    """Use an approval up for the attempt that is dispatched in this transaction."""
    if given.status is Status.APPROVED:
        step = approval.moved(given, Status.CONSUMED, actor=actor, reason="dispatched", now=now)
        await ledger.approvals.advance(effect.id, step)


async def close(ledger: Ledger, effect: Effect, *, actor: str, reason: str, now: datetime) -> None:
    """Close what is left open of an effect's approval: the effect will not run any more.

    The effect's open row is held.
    """
    if not may_wait(effect, await contract_of(ledger, effect)):
        return
    standing = await ledger.approvals.hold(effect.id)
    step = standing and approval.closed(standing, actor=actor, reason=reason, now=now)
    if step:
        await ledger.approvals.advance(effect.id, step)


async def approve(ledger: Ledger, effect_id: EffectId, reason: str) -> View:
    """Let an effect run, once, as it was recorded.

    Raises:
        NotFound: Nobody was asked about such an effect.
        Forbidden: Who planned an effect does not decide on it.
        IllegalTransition: It is decided already, or ran out.
        ApprovalStale: The credential or the policy is another by now; nothing changes.
        ContractRetired: The version is gone.
        CapabilityNotGranted: Who planned it may not do it any more.
    """
    return await _decide(ledger, effect_id, Status.APPROVED, reason)


async def reject(ledger: Ledger, effect_id: EffectId, reason: str) -> View:
    """Refuse an effect: what never ran is closed, and what may have run stays for a person.

    Raises NotFound, Forbidden and IllegalTransition as :func:`approve` does.
    """
    return await _decide(ledger, effect_id, Status.REJECTED, reason)


async def _decide(ledger: Ledger, effect_id: EffectId, to_status: Status, reason: str) -> View:
    effect = await approved_of(ledger, effect_id)
    by = ledger.caller.principal
    held = await ledger.store.hold(effect_id)
    before = await ledger.approvals.hold(effect_id)
    if before is None:
        raise _nothing()
    if (before.status, before.decided_by) == (to_status, by):
        return await view_of(ledger, effect)
    step: ApprovalStep = approval.decided(
        effect, before, to_status, by=by, reason=reason, now=held.read_at
    )
    if to_status is Status.APPROVED:
        entry = await ledger.registry.entry_by_id(effect.contract_id)
        refusal = await final_refusal(ledger, effect, entry)
        if refusal is not None:
            raise approval.outdated(step.after, refusal)
    await ledger.approvals.advance(effect_id, step)
    is_waiting = held.open is not None and held.open.state in (State.PLANNED, State.RETRYABLE)
    if to_status is Status.REJECTED and is_waiting:
        assert held.open is not None
        stopped = admission.stopped(
            held.open, actor=f"person:{by}", reason="approval_rejected", now=held.read_at
        )
        await ledger.store.advance(effect, stopped)
    return await view_of(ledger, effect)


def approval_id(text: str) -> EffectId:
    """Read the id of an approval: its effect's. Raises NotFound for a text that is none."""
    try:
        return EffectId.parse(text)
    except NotFound:
        raise _nothing() from None


async def approved_of(ledger: Ledger, effect_id: EffectId) -> Effect:
    """Return the effect that an approval is of. Raises NotFound where nobody was asked."""
    if await ledger.approvals.look(effect_id) is None:
        raise _nothing()
    return await found(ledger, effect_id)


async def approvals_of(ledger: Ledger, search: ApprovalSearch) -> list[tuple[Effect, Approval]]:
    """Return the approvals that match with their effects, the longest waiting first."""
    given = await ledger.approvals.search(search)
    effects = {effect.id: effect for effect in await ledger.store.effects(given)}
    return [(effects[effect_id], approval) for effect_id, approval in given.items()]


def _nothing() -> NotFound:
    return NotFound("There is no such approval.")

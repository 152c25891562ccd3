"""Decides whether a worker may send now (T2 and T7, and their refusals T9 and T10). Pure.

The facts are read under locks that hold until the commit, so that what is decided here is still
true when the first byte goes out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from ledger.effect import OpenEffect, Step, last_step, step, worker_actor
from ledger.evidence import Answer
from ledger.horizon import why_no_attempt
from ledger.state import State
from tallystick.effect_class import TRAITS, EffectClass
from tallystick.errors import (
    ApprovalExpired,
    ApprovalRejected,
    ApprovalStale,
    CapabilityNotGranted,
    ContractRetired,
    CredentialPolicyChanged,
    EffectNotRetryable,
    LeaseExpired,
    Refusal,
)
from tallystick.tool_contract import Contract

# A refusal that time cannot lift. A version that is suspended or about to be retired is not among
# them: the dispatch is refused and no row changes, so that a retirement cannot remove its own
# blockers.
FINAL: Final = (
    ContractRetired,
    CapabilityNotGranted,
    CredentialPolicyChanged,
    ApprovalStale,
    ApprovalRejected,
    ApprovalExpired,
)


@dataclass(frozen=True, slots=True)
class Worker:
    """Who asks to send.

    An identity made at process start, a nonce made for this one question, and whose token asks.
    """

    worker_id: UUID
    nonce: UUID
    principal: str

    @property
    def actor(self) -> str:
        """The name under which a worker's steps are recorded."""
        return worker_actor(self.worker_id, self.principal)


@dataclass(frozen=True, slots=True)
class Decision:
    """What is decided.

    Whether the worker owns the effect, the step to record, and the refusal to answer.
    """

    owned: bool = False
    step: Step | None = None
    refusal: Refusal | None = None


def decide(
    before: OpenEffect, contract: Contract, refusal: Refusal | None, worker: Worker, now: datetime
) -> Decision:
    """Decide on a request to dispatch an open effect.

    ``refusal`` is what the registry or a gate says of the recorded call now. Only a decision that
    is ``owned`` allows a send, and only once its step is durable.
    """
    match before.state:
        case State.DISPATCHED:
            # The same worker with the same nonce has lost our answer; any other one came second.
            mine = (before.worker_id, before.nonce) == (worker.worker_id, worker.nonce)
            in_time = before.due_at is not None and now < before.due_at
            return Decision(owned=mine and in_time)
        case State.PLANNED:
            return _decide_first(before, contract, refusal, worker, now)
        case State.RETRYABLE:
            return _decide_again(before, contract, refusal, worker, now)
        case _:
            return Decision()


def dispatch_step(before: OpenEffect, contract: Contract, worker: Worker, now: datetime) -> Step:
    """Return the step that makes a worker the owner of an effect for one lease."""
    return step(
        before,
        "T2" if before.state is State.PLANNED else "T7",
        State.DISPATCHED,
        actor=worker.actor,
        reason="dispatched",
        at=now,
        attempt=before.attempt + 1,
        worker_id=worker.worker_id,
        nonce=worker.nonce,
        due_at=now + timedelta(seconds=contract.lease_seconds),
        first_dispatched_at=before.first_dispatched_at or now,
        checks=0,
    )


def contradicted(contract: Contract, answers: Sequence[str]) -> EffectNotRetryable | None:
    """Return the refusal of a new attempt that stored evidence speaks against, or None.

    Evidence may come after an effect was found retryable: a worker that was thought dead reports
    after all. A PURE effect may run again whatever happened, and of an IDEMPOTENT one the provider
    makes one effect by its key.
    """
    traits = TRAITS[contract.effect_class]
    against = {Answer.CONTRADICTS} if traits.key_required else {Answer.APPLIED, Answer.CONTRADICTS}
    if contract.effect_class is EffectClass.PURE or not against & set(answers):
        return None
    return EffectNotRetryable("Evidence says that an earlier attempt took effect after all.")


def stopped(before: OpenEffect, *, actor: str, reason: str, now: datetime) -> Step:
    """Return the step of an effect that may not run any more (T9, T10).

    What was never sent is closed; what may have taken effect is left to a person.
    """
    if before.state is State.PLANNED:
        return last_step(before, "T9", State.REFUSED, actor=actor, reason=reason, at=now)
    return step(before, "T10", State.QUARANTINED, actor=actor, reason=reason, at=now)


def _decide_first(
    before: OpenEffect, contract: Contract, refusal: Refusal | None, worker: Worker, now: datetime
) -> Decision:
    if before.deadline_at is not None and now >= before.deadline_at:
        refusal = LeaseExpired("The plan's deadline has passed.")
    if refusal is None:
        return Decision(owned=True, step=dispatch_step(before, contract, worker, now))
    if isinstance(refusal, (*FINAL, LeaseExpired)):
        refused = stopped(before, actor=worker.actor, reason=refusal.code, now=now)
        return Decision(step=refused, refusal=refusal)
    return Decision(refusal=refusal)


def _decide_again(
    before: OpenEffect, contract: Contract, refusal: Refusal | None, worker: Worker, now: datetime
) -> Decision:
    why_not = why_no_attempt(contract, before, now)
    if refusal is None and why_not is not None:
        refusal = EffectNotRetryable(why_not)
    if refusal is None:
        return Decision(owned=True, step=dispatch_step(before, contract, worker, now))
    if isinstance(refusal, (*FINAL, EffectNotRetryable)):
        quarantined = stopped(before, actor=worker.actor, reason=refusal.code, now=now)
        return Decision(step=quarantined, refusal=refusal)
    return Decision(refusal=refusal)

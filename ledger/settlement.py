"""Decides what time and evidence do to an effect, and how it is given up. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from ledger.effect import Ending, Evidence, OpenEffect, Step, last_step, step
from ledger.evidence import Answer, absent_since, conclusion
from ledger.horizon import last_start, why_no_attempt
from ledger.state import State
from tallystick.effect_class import TRAITS, EffectClass
from tallystick.errors import IllegalTransition
from tallystick.tool_contract import Contract

CHECKS_MAX: Final = 20
"""How often a provider is asked without a conclusive answer before that is the answer."""
BACKOFF_SECONDS_MIN: Final = 1.0
BACKOFF_SECONDS_MAX: Final = 600.0
RECORD_SECONDS: Final = 5.0
"""How long a reconciler may take to record an answer once it has it."""
ABSENT_SECONDS_MIN: Final = 1.0
"""How far apart two answers "absent" are at least that are believed."""


def doubted(before: OpenEffect, *, actor: str, reason: str, now: datetime) -> Step:
    """Return the step of a retryable effect that may have taken effect after all (T13).

    The settle window begins anew, and so does the asking.
    """
    return step(
        before,
        "T13",
        State.UNKNOWN,
        actor=actor,
        reason=reason,
        at=now,
        due_at=now,
        unknown_since=now,
        checks=0,
    )


# --- time ---------------------------------------------------------------------------------------


def claim(before: OpenEffect, contract: Contract, *, actor: str, now: datetime) -> Step:
    """Return the step by which a reconciler takes an UNKNOWN effect for one lease (T5).

    The lease lasts for as long as the contract lets it wait for an answer, and a little more: one
    that dies in between delays the effect by no more than that.
    """
    asking_seconds = contract.evidence.timeout_seconds if contract.evidence else 0
    due_at = now + timedelta(seconds=asking_seconds + RECORD_SECONDS)
    return step(
        before, "T5", State.RECONCILING, actor=actor, reason="claimed", at=now, due_at=due_at
    )


def unknown(
    before: OpenEffect,
    contract: Contract,
    *,
    actor: str,
    reason: str,
    now: datetime,
    sends_until: datetime | None = None,
) -> Step:
    """Return the step of an attempt that nobody can vouch for (T4). The settle window starts here.

    With ``sends_until`` the worker may be at it until then. The provider is asked at once, but the
    settle window starts only when that is over; and where nobody can be asked, so long the worker
    has to say what it did.

    A PURE effect changes nothing, so it is simply RETRYABLE.
    """
    if TRAITS[contract.effect_class].lost_lease == "RETRYABLE":
        return step(before, "T4", State.RETRYABLE, actor=actor, reason=reason, at=now)
    since = max(now, sends_until or now)
    return step(
        before,
        "T4",
        State.UNKNOWN,
        actor=actor,
        reason=reason,
        at=now,
        due_at=now if contract.evidence else since,
        unknown_since=since,
    )


def left_behind(before: OpenEffect, contract: Contract, *, actor: str, now: datetime) -> Step:
    """Return the step of an attempt that was dispatched in another timeline of the database (T4).

    What was reported of it may have been lost with that one. Its worker has its lease all the same.
    """
    return unknown(
        before,
        contract,
        actor=actor,
        reason="the database's timeline changed",
        now=now,
        sends_until=before.due_at,
    )


def overdue(before: OpenEffect, contract: Contract, *, actor: str, now: datetime) -> Step:
    """Return the step for an effect whose time has come, other than UNKNOWN (T4, T6, T9, T10).

    A lost lease never leads back to PLANNED: the worker may have sent before it fell silent.
    """
    match before.state:
        case State.DISPATCHED:
            return unknown(before, contract, actor=actor, reason="the lease ran out", now=now)
        case State.RECONCILING:
            return step(
                before,
                "T6",
                State.UNKNOWN,
                actor=actor,
                reason="the reconciler's lease ran out",
                at=now,
                due_at=now,
            )
        case State.PLANNED:
            is_late = before.deadline_at is not None and now >= before.deadline_at
            reason = "the plan's deadline passed" if is_late else "approval_expired"
            return last_step(before, "T9", State.REFUSED, actor=actor, reason=reason, at=now)
        case State.RETRYABLE:
            return step(
                before,
                "T10",
                State.QUARANTINED,
                actor=actor,
                reason="the provider's key ran out before a new attempt",
                at=now,
            )
        case _:
            raise IllegalTransition(f"Nothing is due for an effect that is {before.state}.")


# --- evidence -----------------------------------------------------------------------------------


def settle(
    before: OpenEffect,
    contract: Contract,
    finding: Evidence | None,
    evidence: Sequence[Evidence],
    *,
    actor: str,
    now: datetime,
    jitter: float,
) -> Step:
    """Return the step from RECONCILING that a finding and all earlier evidence lead to (T6).

    ``finding`` is the source's answer, None where there was none to ask. Its ``observed_at`` is a
    time of the database's clock from before the question was sent: what the provider did later is
    not in the answer. ``evidence`` is what is recorded beside it and bears on the last attempt.
    ``jitter`` is a number from 0 to 1 that spreads the next questions.
    """
    heard = [*evidence, finding] if finding else evidence
    told = conclusion(heard, contract.effect_class, before.attempt)
    if told is not None and told.answer == Answer.CONTRADICTS:
        return _quarantine(before, f"evidence contradicts: {told.detail}", actor, now)
    if told is not None:
        return _close(before, told, actor, now)
    if finding is None:
        if contract.evidence is None:
            return _inconclusive_for_good(before, contract, "no source of evidence", actor, now)
        why = "the provider has sent no message that settles it"
        return _inconclusive(before, contract, why, actor, now, jitter)
    if finding.answer == Answer.ABSENT and _can_see(contract):
        return _absent(before, contract, finding, evidence, actor, now)
    # Of a source that is not read-after-write, "absent" says nothing either.
    why = f"{finding.answer}: {finding.detail}"
    return _inconclusive(before, contract, why, actor, now, jitter)


def _close(before: OpenEffect, told: Evidence, actor: str, now: datetime) -> Step:
    is_applied = told.answer == Answer.APPLIED
    ending = Ending(
        error_code=None if is_applied else "rejected",
        error_message=None if is_applied else told.detail,
        provider_reference=told.provider_reference,
        evidence_id=told.evidence_id,
    )
    status = State.SUCCEEDED if is_applied else State.FAILED
    reason = f"evidence: {told.answer}"
    return last_step(before, "T6", status, actor=actor, reason=reason, at=now, ending=ending)


def _can_see(contract: Contract) -> bool:
    return contract.evidence is not None and contract.evidence.consistency == "read_after_write"


def settled_at(before: OpenEffect, contract: Contract) -> datetime:
    """Return the time from which "absent" counts.

    That is after the settle window and the source's own lag.
    """
    assert before.unknown_since is not None
    assert contract.evidence is not None
    seconds = contract.settle_seconds + contract.evidence.lag_seconds
    return before.unknown_since + timedelta(seconds=seconds)


def _absent(
    before: OpenEffect,
    contract: Contract,
    finding: Evidence,
    evidence: Sequence[Evidence],
    actor: str,
    now: datetime,
) -> Step:
    """Believe "absent" once it was said twice, after the window, far enough apart."""
    assert contract.evidence is not None
    settled = settled_at(before, contract)
    if finding.observed_at < settled:
        return _ask_again(before, "absent, but not settled yet", settled, actor, now)
    apart = timedelta(seconds=max(contract.evidence.lag_seconds, ABSENT_SECONDS_MIN))
    first = absent_since(evidence, finding, settled) or finding.observed_at
    if finding.observed_at < first + apart:
        return _ask_again(before, "absent, to be asked once more", first + apart, actor, now)
    if TRAITS[contract.effect_class].settled_absent == "QUARANTINED":
        reason = f"absent, and an effect of class {contract.effect_class} is never sent again"
        return _quarantine(before, reason, actor, now)
    return _retry(before, contract, "settled: absent", actor, now)


def _ask_again(
    before: OpenEffect, reason: str, due_at: datetime, actor: str, now: datetime
) -> Step:
    return step(
        before, "T6", State.UNKNOWN, actor=actor, reason=reason, at=now, due_at=max(due_at, now)
    )


def _inconclusive(
    before: OpenEffect, contract: Contract, why: str, actor: str, now: datetime, jitter: float
) -> Step:
    checks = before.checks + 1
    if checks >= CHECKS_MAX:
        return _inconclusive_for_good(before, contract, f"asked {checks} times", actor, now)
    return step(
        before,
        "T6",
        State.UNKNOWN,
        actor=actor,
        reason=why,
        at=now,
        due_at=now + timedelta(seconds=backoff_seconds(checks, jitter)),
        checks=checks,
    )


def backoff_seconds(checks: int, jitter: float) -> float:
    """Return the wait after the ``checks``-th question: doubled to a bound, and half of it jitter.

    >>> [backoff_seconds(checks, 1.0) for checks in (1, 2, 3, 30)]
    [1.0, 2.0, 4.0, 600.0]
    >>> backoff_seconds(3, 0.0)
    2.0
    """
    whole = min(BACKOFF_SECONDS_MIN * 2.0 ** min(checks - 1, 30), BACKOFF_SECONDS_MAX)
    return whole * (0.5 + 0.5 * jitter)


def _inconclusive_for_good(
    before: OpenEffect, contract: Contract, why: str, actor: str, now: datetime
) -> Step:
    may_repeat = (
        TRAITS[contract.effect_class].inconclusive == "RETRYABLE"
        and before.unaccounted < contract.max_duplicates
    )
    if may_repeat:
        return _retry(before, contract, why, actor, now, unaccounted=before.unaccounted + 1)
    return _quarantine(before, f"inconclusive for good: {why}", actor, now)


def _retry(
    before: OpenEffect,
    contract: Contract,
    why: str,
    actor: str,
    now: datetime,
    unaccounted: int | None = None,
) -> Step:
    why_not = why_no_attempt(contract, before, now)
    if why_not is not None:
        return _quarantine(before, f"{why}; {why_not}", actor, now)
    return step(
        before,
        "T6",
        State.RETRYABLE,
        actor=actor,
        reason=why,
        at=now,
        due_at=last_start(contract, before),
        unaccounted=before.unaccounted if unaccounted is None else unaccounted,
    )


def _quarantine(before: OpenEffect, reason: str, actor: str, now: datetime) -> Step:
    return step(before, "T6", State.QUARANTINED, actor=actor, reason=reason, at=now)


# --- people -------------------------------------------------------------------------------------


def cancel(
    before: OpenEffect, contract: Contract, *, actor: str, reason: str, now: datetime
) -> Step:
    """Return the step that gives an effect up (T8).

    Work that was attempted may have taken effect after all, so it is quarantined for a person,
    unless an attempt changes nothing.

    Raises:
        IllegalTransition: The effect is under way, or waits for evidence or for a person.
    """
    if before.state is State.QUARANTINED:
        raise IllegalTransition("It is quarantined: a person resolves it, on evidence.")
    is_harmless = before.state is State.PLANNED or contract.effect_class is EffectClass.PURE
    if before.state is State.RETRYABLE and not is_harmless:
        return step(before, "T8", State.QUARANTINED, actor=actor, reason=reason, at=now)
    return last_step(before, "T8", State.CANCELLED, actor=actor, reason=reason, at=now)

"""Decides what time, evidence and people do to an effect (T4 to T6, T8 to T11). Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from ledger.effect import Ending, OpenEffect, Step, last_step, step
from ledger.horizon import last_start, why_no_attempt
from ledger.state import State
from tallystick.effect_class import TRAITS, EffectClass
from tallystick.errors import EffectNotRetryable, IllegalTransition, InvalidRequest
from tallystick.tool_contract import Contract

CHECKS_MAX: Final = 20
"""How often a provider is asked without a conclusive answer before that is the answer."""
BACKOFF_SECONDS_MIN: Final = 1.0
BACKOFF_SECONDS_MAX: Final = 600.0
RECORD_SECONDS: Final = 5.0
"""How long a reconciler may take to record an answer once it has it."""


class Answer(StrEnum):
    """What a source of evidence says of an effect."""

    APPLIED = "applied"
    ABSENT = "absent"
    IN_PROGRESS = "in_progress"
    REJECTED = "rejected"
    UNAVAILABLE = "unavailable"
    CONTRADICTS = "contradicts"


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer of a source, as it bears on the decision.

    ``asked_at`` is a time of the database's clock from before the question was sent: what the
    provider did later is not in the answer. ``evidence_id`` names the row that keeps the answer.
    """

    answer: Answer
    asked_at: datetime
    detail: str
    provider_reference: str | None = None
    evidence_id: UUID | None = None


# --- time ---------------------------------------------------------------------------------------


def claim(before: OpenEffect, contract: Contract, *, actor: str, now: datetime) -> Step:
    """Return the step by which a reconciler takes an UNKNOWN effect for one lease (T5).

    The lease lasts for as long as the contract lets it wait for an answer, and a little more: one
    that dies in between delays the effect by no more than that.
    """
    asking_seconds = contract.evidence.http.timeout_seconds if contract.evidence else 0
    due_at = now + timedelta(seconds=asking_seconds + RECORD_SECONDS)
    return step(
        before, "T5", State.RECONCILING, actor=actor, reason="claimed", at=now, due_at=due_at
    )


def unknown(
    before: OpenEffect, contract: Contract, *, actor: str, reason: str, now: datetime
) -> Step:
    """Return the step of an attempt that nobody can vouch for (T4). The settle window starts here.

    A PURE effect changes nothing, so it is simply RETRYABLE.
    """
    if TRAITS[contract.effect_class].lost_lease == "RETRYABLE":
        return step(before, "T4", State.RETRYABLE, actor=actor, reason=reason, at=now)
    return step(
        before,
        "T4",
        State.UNKNOWN,
        actor=actor,
        reason=reason,
        at=now,
        due_at=now,
        unknown_since=now,
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
    finding: Finding | None,
    *,
    actor: str,
    now: datetime,
    jitter: float,
) -> Step:
    """Return the step from RECONCILING that a finding leads to (T6).

    ``finding`` is None where the contract names no source. ``jitter`` is a number from 0 to 1 that
    spreads the next questions.
    """
    if finding is None:
        return _inconclusive_for_good(before, contract, "no source of evidence", actor, now)
    match finding.answer:
        case Answer.APPLIED | Answer.REJECTED:
            return _close(before, finding, actor, now)
        case Answer.CONTRADICTS:
            return _quarantine(before, f"evidence contradicts: {finding.detail}", actor, now)
        case Answer.ABSENT:
            return _absent(before, contract, finding, actor, now, jitter)
        case Answer.IN_PROGRESS | Answer.UNAVAILABLE:
            return _inconclusive(before, contract, finding, actor, now, jitter)


def _close(before: OpenEffect, finding: Finding, actor: str, now: datetime) -> Step:
    is_applied = finding.answer is Answer.APPLIED
    ending = Ending(
        error_code=None if is_applied else "rejected",
        error_message=None if is_applied else finding.detail,
        provider_reference=finding.provider_reference,
        evidence_id=finding.evidence_id,
    )
    status = State.SUCCEEDED if is_applied else State.FAILED
    reason = f"evidence: {finding.answer}"
    return last_step(before, "T6", status, actor=actor, reason=reason, at=now, ending=ending)


def settled_at(before: OpenEffect, contract: Contract) -> datetime:
    """Return the time from which "absent" is believed.

    That is after the settle window and the source's own lag.
    """
    assert before.unknown_since is not None
    assert contract.evidence is not None
    seconds = contract.settle_seconds + contract.evidence.lag_seconds
    return before.unknown_since + timedelta(seconds=seconds)


def _absent(
    before: OpenEffect,
    contract: Contract,
    finding: Finding,
    actor: str,
    now: datetime,
    jitter: float,
) -> Step:
    if contract.evidence is None or contract.evidence.consistency != "read_after_write":
        # Such a source may simply not show the effect yet: its "absent" says nothing.
        return _inconclusive(before, contract, finding, actor, now, jitter)
    settled = settled_at(before, contract)
    if finding.asked_at < settled:
        return step(
            before,
            "T6",
            State.UNKNOWN,
            actor=actor,
            reason="absent, but not settled yet",
            at=now,
            due_at=max(settled, now),
        )
    if TRAITS[contract.effect_class].settled_absent == "QUARANTINED":
        reason = f"absent, and an effect of class {contract.effect_class} is never sent again"
        return _quarantine(before, reason, actor, now)
    return _retry(before, contract, "settled: absent", actor, now)


def _inconclusive(
    before: OpenEffect,
    contract: Contract,
    finding: Finding,
    actor: str,
    now: datetime,
    jitter: float,
) -> Step:
    checks = before.checks + 1
    if checks >= CHECKS_MAX:
        return _inconclusive_for_good(before, contract, f"asked {checks} times", actor, now)
    return step(
        before,
        "T6",
        State.UNKNOWN,
        actor=actor,
        reason=f"{finding.answer}: {finding.detail}",
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


@dataclass(frozen=True, slots=True)
class Resolution:
    """A person's word on a quarantined effect, with the evidence that it rests on.

    ``by`` is the principal whose token asked. ``second`` is whom it claims to agree.
    """

    to_state: State
    reason: str
    evidence: str
    by: str
    second: str | None = None


def resolve(before: OpenEffect, contract: Contract, resolution: Resolution, now: datetime) -> Step:
    """Return the step that a person decides on (T11).

    Raises:
        IllegalTransition: The effect is not quarantined.
        InvalidRequest: A second person is needed and none is named.
        EffectNotRetryable: It may not be attempted again.
    """
    second = resolution.second
    actor = f"person:{resolution.by}"
    # The second one is a claim of the first: it stands in the reason, never as who acted.
    claimed = f"; claimed to agree: {second}" if second else ""
    reason = f"{resolution.reason} (evidence: {resolution.evidence}{claimed})"
    if resolution.to_state is State.RETRYABLE:
        decided = step(
            before,
            "T11",
            State.RETRYABLE,
            actor=actor,
            reason=reason,
            at=now,
            due_at=last_start(contract, before),
            unknown_since=None,
        )
    else:
        message = resolution.reason if resolution.to_state is not State.SUCCEEDED else None
        code = {State.FAILED: "resolved", State.ABANDONED: "outcome_not_known"}
        ending = Ending(error_code=code.get(resolution.to_state), error_message=message)
        decided = last_step(
            before, "T11", resolution.to_state, actor=actor, reason=reason, at=now, ending=ending
        )
    traits = TRAITS[contract.effect_class]
    if traits.approvers > 1 and second in (None, resolution.by):
        raise InvalidRequest(
            f"An effect of class {contract.effect_class} is resolved by two different people.",
            pointer="/second",
        )
    if resolution.to_state is State.RETRYABLE:
        why_not = why_no_attempt(contract, before, now)
        if not traits.operator_retry:
            why_not = f"An effect of class {contract.effect_class} is never sent again."
        if why_not is not None:
            raise EffectNotRetryable(why_not)
    return decided


def cancel(
    before: OpenEffect, contract: Contract, *, actor: str, reason: str, now: datetime
) -> Step:
    """Return the step that gives an effect up (T8).

    Work that was attempted may have taken effect after all, so it is quarantined for a person,
    unless an attempt changes nothing.

    Raises:
        IllegalTransition: The effect is under way, or waits for evidence.
    """
    is_harmless = before.state is State.PLANNED or contract.effect_class is EffectClass.PURE
    if before.state is State.RETRYABLE and not is_harmless:
        return step(before, "T8", State.QUARANTINED, actor=actor, reason=reason, at=now)
    return last_step(before, "T8", State.CANCELLED, actor=actor, reason=reason, at=now)

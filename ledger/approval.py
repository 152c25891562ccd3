"""A person's word on one effect: when it is asked for, what it is bound to, how it moves. Pure.

An effect has one approval at most, and the approval covers all attempts of that effect. It is bound
to what the effect was recorded with: the fingerprint of the request, the contract, the version of
the credential and the revision of the policy.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from ledger.effect import Effect
from tallystick.errors import (
    ApprovalExpired,
    ApprovalRejected,
    ApprovalStale,
    CredentialPolicyChanged,
    Forbidden,
    IllegalTransition,
    NeedsHuman,
    Refusal,
)
from tallystick.gates.policy import asks_a_person
from tallystick.policy import Decision, Verdict
from tallystick.tool_contract import Contract


class Status(StrEnum):
    """Where an approval is."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    STALE = "stale"
    CONSUMED = "consumed"


NEW: Final = "new"
"""What an approval's first event comes from."""

LEGAL: Final = frozenset(
    {
        (NEW, Status.PENDING),
        # A person decides, or nobody does in time, or there is nothing left to decide.
        (Status.PENDING, Status.APPROVED),
        (Status.PENDING, Status.REJECTED),
        (Status.PENDING, Status.EXPIRED),
        (Status.PENDING, Status.STALE),
        # The effect runs, once; or not in time; or what was approved is not what would run.
        (Status.APPROVED, Status.CONSUMED),
        (Status.APPROVED, Status.EXPIRED),
        (Status.APPROVED, Status.STALE),
    }
)
"""The law of approvals; the database has it again."""

_LIVE: Final = frozenset({Status.PENDING, Status.APPROVED})


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's word on an effect, as it is recorded. ``step`` is the number of its last event."""

    step: int
    status: Status
    question: str
    rule: str | None
    requested_at: datetime
    expires_at: datetime
    decided_by: str | None = None
    decided_at: datetime | None = None
    reason: str | None = None

    def at(self, now: datetime) -> "Approval":
        """Return the approval as it counts at a time: what ran out has expired, swept or not."""
        has_run_out = self.status in _LIVE and now >= self.expires_at
        return replace(self, status=Status.EXPIRED) if has_run_out else self

    @property
    def is_live(self) -> bool:
        """Tell whether something may still come of it."""
        return self.status in _LIVE


@dataclass(frozen=True, slots=True)
class ApprovalEvent:
    """One step of an approval."""

    step: int
    from_status: str
    to_status: str
    actor: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ApprovalStep:
    """A step to record: the event, and what stands after it."""

    event: ApprovalEvent
    after: Approval


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked, and the rule that wants it asked: None where the contract does."""

    sentence: str
    rule: str | None = None


def question(contract: Contract, verdict: Verdict | None) -> Question | None:
    """Return what a person has to be asked before a call runs, or None.

    The stricter of two wins: the contract's own word, and the policy's in force. A contract that
    leaves it to the policy asks where none is.

    Args:
        contract: The contract of the call.
        verdict: What the policy says, None where none is in force.
    """
    if verdict is not None and verdict.decision is Decision.NEEDS_HUMAN:
        told = verdict.refusal()
        assert told is not None, "a verdict that does not allow has its refusal"
        return Question(told.detail, verdict.rule)
    if not asks_a_person(contract, has_policy=verdict is not None):
        return None
    return Question(f"{contract.name}@{contract.version} runs only with a person's approval.")


def requested(
    effect: Effect, asked: Question, now: datetime, *, approval_seconds: float
) -> ApprovalStep:
    """Return the step that asks a person."""
    after = Approval(
        step=0,
        status=Status.PENDING,
        question=asked.sentence,
        rule=asked.rule,
        requested_at=now,
        expires_at=now + timedelta(seconds=approval_seconds),
    )
    event = ApprovalEvent(0, NEW, Status.PENDING, effect.principal, asked.sentence, now)
    return ApprovalStep(event, after)


def decided(
    effect: Effect, before: Approval, to_status: Status, *, by: str, reason: str, now: datetime
) -> ApprovalStep:
    """Return the step by which a person approves or rejects.

    Raises:
        Forbidden: It is the one who planned the effect: two people have to agree.
        IllegalTransition: It is decided already, or ran out.
    """
    if by == effect.principal:
        raise Forbidden("Whoever planned an effect does not decide on its approval.")
    step = moved(before.at(now), to_status, actor=f"person:{by}", reason=reason, now=now)
    return replace(
        step, after=replace(step.after, decided_by=by, decided_at=now, reason=reason or None)
    )


def moved(
    before: Approval, to_status: Status, *, actor: str, reason: str, now: datetime
) -> ApprovalStep:
    """Return a step of an approval. Raises IllegalTransition for one that the law does not have."""
    if (before.status, to_status) not in LEGAL:
        raise IllegalTransition(
            f"The approval is {before.status}.",
            facts={"from": before.status, "to": to_status},
        )
    after = replace(before, step=before.step + 1, status=to_status)
    event = ApprovalEvent(after.step, before.status, to_status, actor, reason, now)
    return ApprovalStep(event, after)


def closed(before: Approval, *, actor: str, reason: str, now: datetime) -> ApprovalStep | None:
    """Return the step of an approval whose effect runs no more; None where it is closed."""
    if not before.is_live:
        return None
    to_status = Status.EXPIRED if now >= before.expires_at else Status.STALE
    return moved(before, to_status, actor=actor, reason=reason, now=now)


def why_not(approval: Approval, now: datetime) -> Refusal | None:
    """Return why an effect may not run on its approval, or None where it may."""
    counted = approval.at(now)
    match counted.status:
        case Status.APPROVED | Status.CONSUMED:
            return None
        case Status.PENDING:
            return waiting(approval)
        case Status.REJECTED:
            return ApprovalRejected(
                "A person refused the call. Do not try it again.",
                facts={"reason": approval.reason},
            )
        case Status.EXPIRED:
            return ApprovalExpired("Nobody approved the call in time.")
        case Status.STALE:
            return ApprovalStale("The approval was given for something else.")


def outdated(given: Approval, refusal: Refusal) -> Refusal:
    """Return what is told of a call whose approval was given under other circumstances."""
    if given.status is Status.APPROVED and isinstance(refusal, CredentialPolicyChanged):
        return ApprovalStale(
            f"{refusal.detail} The approval is for what stood before.",
            facts={**refusal.facts, "because": refusal.code},
        )
    return refusal


def waiting(approval: Approval) -> NeedsHuman:
    """Return the refusal of a call that waits for a person."""
    return NeedsHuman(approval.question, facts={"rule": approval.rule})

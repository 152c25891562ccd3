"""Decides what a worker's report leads to (T3 and T4). Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from ledger.effect import Ending, Event, Evidence, OpenEffect, Step, last_step, worker_actor
from ledger.evidence import Answer
from ledger.settlement import unknown
from ledger.state import State
from tallystick.canonical import Json
from tallystick.effect_class import EffectClass
from tallystick.tool_contract import Contract


class Verdict(StrEnum):
    """What a worker says of its attempt."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Report:
    """A worker's report on the attempt that its fence names, and whose token brought it.

    FAILED means that the provider said no, or with ``not_sent`` that the worker vouches that
    nothing was sent.
    """

    worker_id: UUID
    principal: str
    fence: int
    verdict: Verdict
    result: Json = None
    has_result: bool = False
    error_code: str | None = None
    error_message: str | None = None
    provider_reference: str | None = None
    not_sent: bool = False

    @property
    def actor(self) -> str:
        """The name under which the report is recorded."""
        return worker_actor(self.worker_id, self.principal)

    @property
    def answer(self) -> Answer | None:
        """The report as evidence, for when it comes too late to decide.

        None where it says nothing.
        """
        if self.verdict is Verdict.UNKNOWN:
            return None
        if self.verdict is Verdict.SUCCEEDED:
            return Answer.APPLIED
        return Answer.ABSENT if self.not_sent else Answer.REJECTED


# Which evidence contradicts which report.
_CONTRADICTED_BY: Final = {
    Verdict.SUCCEEDED: frozenset({Answer.REJECTED, Answer.CONTRADICTS}),
    Verdict.FAILED: frozenset({Answer.APPLIED, Answer.CONTRADICTS}),
    Verdict.UNKNOWN: frozenset[Answer](),
}
_LEADS_TO: Final = {
    Verdict.SUCCEEDED: {State.SUCCEEDED},
    Verdict.FAILED: {State.FAILED},
    Verdict.UNKNOWN: {State.UNKNOWN, State.RETRYABLE},
}


def is_owner(report: Report, before: OpenEffect | None) -> bool:
    """Tell whether a report comes from the worker that owns the effect now.

    The lease does not count: a worker that is late but was not superseded may still finish.
    """
    return (
        before is not None
        and before.state is State.DISPATCHED
        and (before.fence, before.worker_id) == (report.fence, report.worker_id)
    )


def is_repeated(report: Report, following: Event | None) -> bool:
    """Tell whether the event that followed the dispatch was this very report, sent again."""
    return (
        following is not None
        and following.actor == report.actor
        and following.to_state in _LEADS_TO[report.verdict]
    )


def decide(
    before: OpenEffect,
    contract: Contract,
    report: Report,
    evidence: Sequence[Evidence],
    violations: tuple[str, ...],
    now: datetime,
) -> Step:
    """Return the step that the owner's report leads to.

    ``violations`` are those of the result against the output schema: an effect can be done while
    its output breaks the contract, and then it is SUCCEEDED with ``invalid_result``.
    """
    doubt = _doubt(before, contract, report, evidence)
    if doubt is not None:
        return unknown(before, contract, actor=report.actor, reason=doubt, now=now)
    ending = Ending(
        result=report.result,
        has_result=report.has_result,
        invalid_result=violations,
        error_code="not_sent" if report.not_sent else report.error_code,
        error_message=report.error_message,
        provider_reference=report.provider_reference,
    )
    status = State.SUCCEEDED if report.verdict is Verdict.SUCCEEDED else State.FAILED
    reason = ending.error_code or "reported"
    return last_step(before, "T3", status, actor=report.actor, reason=reason, at=now, ending=ending)


def _doubt(
    before: OpenEffect, contract: Contract, report: Report, evidence: Sequence[Evidence]
) -> str | None:
    """Return why the report does not settle the effect, or None where it does."""
    if report.verdict is Verdict.UNKNOWN:
        return report.error_message or "the worker does not know"
    contradicted = _CONTRADICTED_BY[report.verdict]
    if any(one.answer in contradicted for one in evidence):
        return "stored evidence contradicts the report"
    is_pure = contract.effect_class is EffectClass.PURE
    if report.verdict is Verdict.FAILED and before.unaccounted and not is_pure:
        return "an earlier attempt is not accounted for"
    if report.not_sent and before.attempt > 1 and not is_pure:
        # It vouches for its own attempt. An earlier worker that was paused may still send.
        return "nothing was sent this time, but an earlier attempt may still be"
    return None

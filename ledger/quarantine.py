"""What a person may decide of a quarantined effect, and when it takes two of them (T11). Pure.

For a class that may run once, one person's word is a proposal, and stands until somebody with
another principal says the same, says otherwise, or withdraws it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from ledger.admission import contradicted
from ledger.effect import Ending, Event, Evidence, OpenEffect, Step, last_step, step
from ledger.evidence import ACTS, Answer
from ledger.horizon import last_start, why_no_attempt
from ledger.listing import ORPHANED
from ledger.state import NEW, State
from tallystick.effect_class import TRAITS
from tallystick.errors import EffectNotRetryable
from tallystick.resolution import Lifecycle
from tallystick.tool_contract import Contract

# --- a person's word ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Resolution:
    """A person's word on a quarantined effect, with the evidence that it rests on.

    ``by`` is the principal whose token asked.
    """

    to_state: State
    reason: str
    evidence: str | None
    by: str

    def __str__(self) -> str:
        """Write the word as the records have it."""
        return f"{self.reason} (evidence: {self.evidence})" if self.evidence else self.reason


class Status(StrEnum):
    """Where a proposal is."""

    PROPOSED = "proposed"
    WITHDRAWN = "withdrawn"
    CONFIRMED = "confirmed"


LEGAL: Final = frozenset(
    {
        ("new", Status.PROPOSED),
        # Somebody says otherwise, or takes it back, or the second person says the same.
        (Status.PROPOSED, Status.PROPOSED),
        (Status.PROPOSED, Status.WITHDRAWN),
        (Status.PROPOSED, Status.CONFIRMED),
        (Status.WITHDRAWN, Status.PROPOSED),
        # Later evidence brought a resolved effect back.
        (Status.CONFIRMED, Status.PROPOSED),
    }
)
"""The law of proposals; the database has it again."""


@dataclass(frozen=True, slots=True)
class Word:
    """What one person said of one quarantine, as it is recorded.

    ``fence`` is that of the step that quarantined the effect. ``proposed_by`` names the first
    person where this one is the second.
    """

    step: int
    fence: int
    from_status: str
    status: Status
    resolution: Resolution
    proposed_by: str | None
    at: datetime


def standing(
    last: Word | None, before: OpenEffect, evidence: Sequence[Evidence] = ()
) -> Word | None:
    """Return the proposal that waits for a second person, given the last word on an effect.

    One on an earlier quarantine counts no more, nor one that later evidence speaks against: had the
    effect ended so, it would have opened it again.
    """
    if last is None or last.status is not Status.PROPOSED or last.fence != before.fence:
        return None
    _, against = ACTS[last.resolution.to_state]
    if any(one.received_at > last.at and one.answer in against for one in evidence):
        return None
    return last


def next_word(
    last: Word | None, before: OpenEffect, resolution: Resolution, status: Status, now: datetime
) -> Word:
    """Return the word that follows the last one on an effect."""
    from_status = last.status if last else "new"
    assert (from_status, status) in LEGAL, "nobody confirms or withdraws what is not proposed"
    proposed_by = last.resolution.by if last and status is Status.CONFIRMED else None
    number = last.step + 1 if last else 1
    return Word(number, before.fence, from_status, status, resolution, proposed_by, now)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person's word leads to: a word to record, a step, both, or nothing new."""

    word: Word | None = None
    step: Step | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a quarantined effect beside where it is.

    ``lifecycle`` is that of its recorded version, ``was_closed`` tells that it had ended, and
    evidence brought it back, and ``is_orphan`` that only the provider's listing tells of it.
    ``refusal`` is what its next dispatch would be refused with, where that would quarantine it
    again.
    """

    lifecycle: Lifecycle
    evidence: Sequence[Evidence] = ()
    was_closed: bool = False
    is_orphan: bool = False
    refusal: str | None = None

    @property
    def answers(self) -> list[str]:
        """The answers of all its evidence."""
        return [one.answer for one in self.evidence]


def resolve(
    before: OpenEffect,
    contract: Contract,
    resolution: Resolution,
    last: Word | None,
    known: Known,
    now: datetime,
) -> Decision:
    """Decide on a person's word on an effect, given the last word on it (T11).

    Where one person is enough, and where the second says what the first proposed, it is done.
    Otherwise it is proposed, in place of what was proposed before.

    Raises:
        IllegalTransition: The effect is not quarantined.
        EffectNotRetryable: It may not be attempted again.
    """
    decided = _step(before, contract, resolution, now)
    if resolution.to_state is State.RETRYABLE:
        why_not = why_no_retry(before, contract, known, now)
        if why_not is not None:
            raise EffectNotRetryable(why_not)
    if TRAITS[contract.effect_class].approvers == 1:
        return Decision(step=decided)
    proposal = standing(last, before, known.evidence)
    if proposal is not None and proposal.resolution == resolution:
        return Decision()
    if proposal is None or not _agree(proposal.resolution, resolution):
        return Decision(next_word(last, before, resolution, Status.PROPOSED, now))
    first = proposal.resolution
    both = Resolution(
        resolution.to_state,
        f"{resolution}; proposed by person:{first.by}: {first}",
        None,
        resolution.by,
    )
    return Decision(
        next_word(last, before, resolution, Status.CONFIRMED, now),
        _step(before, contract, both, now),
    )


def _agree(first: Resolution, second: Resolution) -> bool:
    return first.to_state is second.to_state and first.by != second.by


def _step(before: OpenEffect, contract: Contract, resolution: Resolution, now: datetime) -> Step:
    to_state, reason = resolution.to_state, str(resolution)
    actor = f"person:{resolution.by}"
    if to_state is not State.RETRYABLE:
        message = resolution.reason if to_state is not State.SUCCEEDED else None
        code = {State.FAILED: "resolved", State.ABANDONED: "outcome_not_known"}
        ending = Ending(error_code=code.get(to_state), error_message=message)
        return last_step(before, "T11", to_state, actor=actor, reason=reason, at=now, ending=ending)
    return step(
        before,
        "T11",
        State.RETRYABLE,
        actor=actor,
        reason=reason,
        at=now,
        due_at=last_start(contract, before),
        unknown_since=None,
        # On a hunch: that nothing came of the attempts so far is what nobody has said.
        unaccounted=before.unaccounted + (before.attempt > 0 and resolution.evidence is None),
    )


# --- what may be done -----------------------------------------------------------------------------


def why_no_retry(before: OpenEffect, contract: Contract, known: Known, now: datetime) -> str | None:
    """Return why nobody may release a quarantined effect for another attempt, or None."""
    if not TRAITS[contract.effect_class].operator_retry:
        return f"An effect of class {contract.effect_class} is never sent again."
    if known.was_closed:
        return "It had ended once, and what has ended is never sent again."
    if known.is_orphan:
        return "It was sent already, and nobody knows as what."
    if known.lifecycle is Lifecycle.RETIRED:
        return f"{contract.name}@{contract.version} is retired."
    refusal = contradicted(contract, known.answers)
    if refusal is not None:
        return refusal.detail
    return why_no_attempt(contract, before, now) or known.refusal


_SENT: Final = frozenset(Answer) - {Answer.ABSENT, Answer.UNAVAILABLE}


def why_no_migration(before: OpenEffect, known: Known) -> str | None:
    """Return why an effect may not go on under another version, or None.

    What was sent, or may have been, stays on the contract that it was sent under.
    """
    if known.is_orphan or not _SENT.isdisjoint(known.answers):
        return "The provider knows of it: it was sent, and stays on its contract for ever."
    if before.state is State.PLANNED or (before.state is State.QUARANTINED and not before.fence):
        return None
    if before.state is not State.QUARANTINED:
        return f"It is {before.state}."
    return "It may have been sent, and what was sent stays on its contract for ever."


def superseded(before: OpenEffect, *, by: str, reason: str, now: datetime) -> Step:
    """Return the step of an effect that another one takes the place of, on another version (T8).

    Only where :func:`why_no_migration` has nothing against that. Raises IllegalTransition.
    """
    return last_step(before, "T8", State.CANCELLED, actor=by, reason=reason, at=now)


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that a person may decide, what it means, and why it is not open where it is not."""

    name: str
    meaning: str
    people: int
    why_not: str | None = None


def choices(
    before: OpenEffect, contract: Contract, known: Known, now: datetime
) -> tuple[Choice, ...]:
    """Return everything that a person may decide of a quarantined effect, in the order to think."""
    people = TRAITS[contract.effect_class].approvers
    named = f"{contract.name}@{contract.version}"
    why_no = why_no_retry(before, contract, known, now)
    return (
        Choice("SUCCEEDED", "It took effect at the provider. It is never sent again.", people),
        Choice("FAILED", "It did not take effect and will not. It is never sent again.", people),
        Choice("RETRYABLE", f"A worker may send it again: {named}, the same request.", 1, why_no),
        Choice(
            "migrate",
            "It was never sent: a new effect on another version takes its place.",
            1,
            why_no_migration(before, known),
        ),
        Choice("ABANDONED", "Written off: the record says that nobody knows how it ended.", people),
    )


# --- why it is here -------------------------------------------------------------------------------


class Cause(StrEnum):
    """Why an effect is quarantined, in one word: `docs/runbook.md` has a section on each."""

    ORPHAN = "orphan"
    RETIRED = "retired"
    NO_ATTEMPT_LEFT = "no_attempt_left"
    GIVEN_UP = "given_up"
    ABSENT = "absent"
    CONTRADICTED = "contradicted"
    INCONCLUSIVE = "inconclusive"


ADVICE: Final = {
    Cause.ORPHAN: "The provider has it and nothing was recorded here: a record was lost.",
    Cause.RETIRED: "A queue brought it after its version was retired; nothing was sent.",
    Cause.NO_ATTEMPT_LEFT: "It may have taken effect, and may not be sent again by itself.",
    Cause.GIVEN_UP: "Somebody cancelled it after it was sent; it may have taken effect.",
    Cause.ABSENT: "The provider does not have it, and a paused worker might still send it.",
    Cause.CONTRADICTED: "Two answers disagree. Believe the provider's own books, and nobody else.",
    Cause.INCONCLUSIVE: "Nobody could say what happened. Ask the provider yourself.",
}
"""What to know first of each cause."""


def cause_of(event: Event) -> Cause:
    """Return why the step that quarantined an effect did so."""
    match event.transition:
        case "T10" if event.from_state != NEW:
            return Cause.NO_ATTEMPT_LEFT
        case "T10":
            return Cause.ORPHAN if event.reason.startswith(ORPHANED) else Cause.RETIRED
        case "T8":
            return Cause.GIVEN_UP
        case "T12":
            return Cause.CONTRADICTED
        case _ if event.reason.startswith("evidence contradicts"):
            return Cause.CONTRADICTED
        case _ if event.reason.startswith(("absent", "settled: absent")):
            return Cause.ABSENT
        case _:
            return Cause.INCONCLUSIVE

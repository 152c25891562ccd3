"""What the evidence on an effect amounts to, and what evidence does that comes unasked. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from ledger.effect import Evidence
from ledger.state import State
from tallystick.effect_class import TRAITS, EffectClass

LATE_WORKER: Final = "late_worker"
"""The source of what a worker says that has lost the effect."""
WORKER: Final = "worker"
"""The source of what the owner of an effect reports against what was said before."""
REPEATS_MAX: Final = 100
"""How often a source's same answer on an effect is kept, while it answers nothing new."""
LISTING: Final = "listing"
"""The source of what a provider lists, which the reverse sweep reads again and again."""
_PERSON: Final = "person:"
_WEBHOOK: Final = "webhook:"


class Answer(StrEnum):
    """What a source of evidence says of an effect."""

    APPLIED = "applied"
    ABSENT = "absent"
    IN_PROGRESS = "in_progress"
    REJECTED = "rejected"
    UNAVAILABLE = "unavailable"
    CONTRADICTS = "contradicts"


class Act(StrEnum):
    """What evidence that comes unasked does to an effect. It is kept in any case."""

    KEEP = "keep"
    STOP = "stop"
    """It was sent, though nothing here says so: it is refused (T9), and a person decides (T12)."""
    WAKE = "wake"
    """The reconciler looks at once."""
    DOUBT = "doubt"
    """It may have taken effect, so it is not sent again before that is known (T13)."""
    REOPEN = "reopen"
    """It contradicts how the effect ended: a person decides anew (T12)."""


_HAPPENED: Final = frozenset({Answer.APPLIED, Answer.CONTRADICTS})
_REFUTED: Final = frozenset({Answer.REJECTED, Answer.CONTRADICTS})

ACTS: Final[dict[State, tuple[Act, frozenset[Answer]]]] = {
    State.PLANNED: (Act.STOP, _HAPPENED | _REFUTED | {Answer.IN_PROGRESS}),
    State.UNKNOWN: (Act.WAKE, _HAPPENED | _REFUTED),
    State.RETRYABLE: (Act.DOUBT, _HAPPENED | {Answer.IN_PROGRESS}),
    State.SUCCEEDED: (Act.REOPEN, _REFUTED),
    State.FAILED: (Act.REOPEN, _HAPPENED),
    State.REFUSED: (Act.REOPEN, _HAPPENED),
    State.CANCELLED: (Act.REOPEN, _HAPPENED),
    State.ABANDONED: (Act.REOPEN, _HAPPENED),
}
"""What is done to an effect in a state, and by which answers. All else is kept and no more.

What is kept while it is DISPATCHED is read when its worker reports, while it is RECONCILING by who
settles it, and while it is QUARANTINED by a person.
"""


def person(principal: str) -> str:
    """Return the source of what a person says."""
    return _PERSON + principal


def webhook(source: str) -> str:
    """Return the source of what a provider sends."""
    return _WEBHOOK + source


def act(
    state: State, effect_class: EffectClass, attempt: int, *, source: str, answer: Answer
) -> Act:
    """Return what unasked evidence does to an effect that had ``attempt`` attempts.

    An effect that changes nothing cannot be contradicted by what did not happen.
    """
    if effect_class is EffectClass.PURE or not _is_of_all(source, answer, attempt):
        return Act.KEEP
    what, answers = ACTS.get(state, (Act.KEEP, frozenset[Answer]()))
    return what if answer in answers else Act.KEEP


def is_new(
    heard: Sequence[Evidence], *, source: str, answer: Answer, fence: int, evidence_id: UUID | None
) -> bool:
    """Tell whether an answer is to be kept beside what was heard before.

    A message is known by its id. A worker that was not answered says the same of its fence again,
    and a source that says the same for ever is not heard for ever.
    """
    if evidence_id is not None and any(one.evidence_id == evidence_id for one in heard):
        return False
    same = [one.fence for one in heard if (one.source, one.answer) == (source, answer)]
    most = 1 if source == LATE_WORKER else REPEATS_MAX
    return len(same) < most or fence not in same


def is_news(
    kept: Sequence[Evidence],
    state: State,
    does: Act,
    *,
    answer: Answer,
    provider_reference: str | None,
) -> bool:
    """Tell whether what a provider lists says something of an effect that was not known.

    The same item again does not, nor does one that confirms how an effect ended. What is to be sent
    all the same is the exception: that is stopped each time.
    """
    if does in (Act.STOP, Act.DOUBT):
        return True
    told = (LISTING, answer, provider_reference)
    is_known = any((one.source, one.answer, one.provider_reference) == told for one in kept)
    return not is_known and (does is not Act.KEEP or state.is_open)


def bearing(
    evidence: Sequence[Evidence], since: int, again_at: datetime | None = None
) -> list[Evidence]:
    """Return the evidence that says something of an attempt, which has the fence ``since``.

    What was refused or absent before it says nothing of it; what was applied, was. ``again_at`` is
    when it began, where it is not the first: a refusal that was seen earlier is that of another.
    """

    def bears(one: Evidence) -> bool:
        is_older = again_at is not None and one.observed_at < again_at
        return one.fence >= since and not (is_older and one.answer == Answer.REJECTED)

    return [one for one in evidence if one.answer == Answer.APPLIED or bears(one)]


def conclusion(
    evidence: Sequence[Evidence], effect_class: EffectClass, attempt: int
) -> Evidence | None:
    """Return what settles an effect: the newest answer that does, or None where none does.

    Two answers that disagree are a contradiction, whichever came first. One person's word does not
    settle what takes two.
    """
    told = {
        Answer(one.answer): one
        for one in evidence
        if _is_of_all(one.source, one.answer, attempt) and _is_enough(one, evidence, effect_class)
    }
    applied, rejected = told.get(Answer.APPLIED), told.get(Answer.REJECTED)
    if applied is not None and rejected is not None:
        detail = f"{applied.source} says applied, and {rejected.source} rejected"
        return replace(rejected, answer=Answer.CONTRADICTS, detail=detail)
    return told.get(Answer.CONTRADICTS) or applied or rejected


def absent_since(
    evidence: Sequence[Evidence], finding: Evidence, settled_at: datetime
) -> datetime | None:
    """Return since when a source has said "absent" and nobody anything else, or None.

    What it said before ``settled_at`` does not count, nor does ``finding`` itself.
    """
    heard = [one for one in evidence if one.evidence_id != finding.evidence_id]
    same = [one for one in heard if (one.source, one.answer) == (finding.source, Answer.ABSENT)]
    others = [one.received_at for one in heard if one not in same]
    since = max([settled_at, *others])
    return min((one.observed_at for one in same if one.observed_at >= since), default=None)


def _is_of_all(source: str, answer: str, attempt: int) -> bool:
    """Tell whether an answer speaks of the whole effect.

    A worker's refusal is that of its own attempt; a message may be older than the last one, and of
    several attempts a provider lists each.
    """
    of_one = source in (WORKER, LATE_WORKER, LISTING) or source.startswith(_WEBHOOK)
    return answer != Answer.REJECTED or attempt <= 1 or not of_one


def _is_enough(one: Evidence, evidence: Sequence[Evidence], effect_class: EffectClass) -> bool:
    if not one.source.startswith(_PERSON):
        return True
    # Of each person the newest word counts: who said otherwise before has taken that back.
    words = {each.source: each.answer for each in evidence if each.source.startswith(_PERSON)}
    agree = sum(answer == one.answer for answer in words.values())
    return agree >= TRAITS[effect_class].approvers

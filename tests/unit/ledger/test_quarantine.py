"""What people may decide of a quarantined effect, row by row of the effect classes' table."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from ledger.effect import Ending, Event, Evidence, OpenEffect
from ledger.evidence import Answer
from ledger.listing import ORPHANED
from ledger.quarantine import (
    ADVICE,
    Cause,
    Decision,
    Known,
    Resolution,
    Status,
    Word,
    cause_of,
    choices,
    next_word,
    resolve,
    standing,
    superseded,
    why_no_migration,
    why_no_retry,
)
from ledger.state import State
from tallystick.effect_class import TRAITS, EffectClass
from tallystick.errors import EffectNotRetryable, IllegalTransition
from tallystick.resolution import Lifecycle
from tallystick.tool_contract import Contract
from tests.builders import a_contract_of

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
BEFORE = OpenEffect(
    State.QUARANTINED,
    fence=4,
    attempt=1,
    reason="inconclusive for good",
    first_dispatched_at=NOW - timedelta(seconds=90),
)
KNOWN = Known(Lifecycle.ACTIVE)
ONCE = ("UNKNOWN", "NON_RETRYABLE")
SEVERAL = ("PURE", "IDEMPOTENT", "REPLAYABLE")
ENDS = (State.SUCCEEDED, State.FAILED, State.ABANDONED)


def contract(effect_class: str, **changes: Any) -> Contract:
    return Contract.parse(a_contract_of(effect_class, **changes))


def told(answer: Answer, at: datetime = NOW) -> Evidence:
    return Evidence(UUID(int=1), 4, "http", answer, None, at, at, "")


def said(to_state: State, by: str = "ada", reason: str = "seen in the console") -> Resolution:
    return Resolution(to_state, reason, "ticket 7", by)


def decide(
    effect_class: str,
    resolution: Resolution,
    last: Word | None = None,
    *,
    before: OpenEffect = BEFORE,
    known: Known = KNOWN,
) -> Decision:
    return resolve(before, contract(effect_class), resolution, last, known, NOW)


def proposed(resolution: Resolution, before: OpenEffect = BEFORE) -> Word:
    return next_word(None, before, resolution, Status.PROPOSED, NOW)


# --- one person -----------------------------------------------------------------------------------


@pytest.mark.parametrize("effect_class", SEVERAL)
@pytest.mark.parametrize("to_state", ENDS)
def test_one_person_ends_what_may_run_several_times(effect_class, to_state):
    decision = decide(effect_class, said(to_state))
    step = decision.step
    assert decision.word is None
    assert step is not None
    assert (step.transition, step.to_state, step.actor) == ("T11", to_state, "person:ada")
    assert step.reason == "seen in the console (evidence: ticket 7)"
    assert isinstance(step.after, Ending)


@pytest.mark.parametrize("effect_class", SEVERAL)
def test_a_person_may_allow_a_new_attempt(effect_class):
    step = decide(effect_class, said(State.RETRYABLE)).step
    assert step is not None
    assert (step.to_state, step.fence) == (State.RETRYABLE, 5)


def test_a_reason_without_evidence_stands_alone():
    step = decide("IDEMPOTENT", Resolution(State.RETRYABLE, "try it", None, "ada")).step
    assert step is not None
    assert step.reason == "try it"


@pytest.mark.parametrize("effect_class", ONCE)
@pytest.mark.parametrize("attempt", [0, 1])
def test_what_may_run_once_is_never_made_retryable(effect_class, attempt):
    before = replace(BEFORE, attempt=attempt)
    for last in (None, proposed(said(State.FAILED, "grace"))):
        with pytest.raises(EffectNotRetryable):
            decide(effect_class, said(State.RETRYABLE), last, before=before)


@pytest.mark.parametrize("state", [s for s in State if s.is_open and s is not State.QUARANTINED])
@pytest.mark.parametrize("effect_class", ["IDEMPOTENT", "NON_RETRYABLE"])
@pytest.mark.parametrize("to_state", [State.FAILED, State.RETRYABLE])
def test_only_what_is_quarantined_is_resolved(state, effect_class, to_state):
    with pytest.raises(IllegalTransition):
        decide(effect_class, said(to_state), before=replace(BEFORE, state=state))


# --- two people -----------------------------------------------------------------------------------


@pytest.mark.parametrize("effect_class", ONCE)
@pytest.mark.parametrize("to_state", ENDS)
def test_it_takes_two_to_end_what_may_run_once(effect_class, to_state):
    first = decide(effect_class, said(to_state))
    assert first.step is None
    assert first.word is not None
    assert (first.word.status, first.word.fence) == (Status.PROPOSED, BEFORE.fence)
    second = decide(effect_class, said(to_state, "grace", "I agree"), first.word)
    assert second.word is not None
    assert (second.word.status, second.word.proposed_by) == (Status.CONFIRMED, "ada")
    assert second.step is not None
    assert (second.step.to_state, second.step.actor) == (to_state, "person:grace")
    assert "I agree (evidence: ticket 7)" in second.step.reason
    assert "proposed by person:ada: seen in the console (evidence: ticket 7)" in second.step.reason


def test_the_same_person_changes_nothing_or_proposes_anew():
    last = proposed(said(State.FAILED))
    assert decide("UNKNOWN", said(State.FAILED), last) == Decision()
    for other in (said(State.FAILED, reason="better said"), said(State.SUCCEEDED)):
        decision = decide("UNKNOWN", other, last)
        assert decision.step is None
        assert decision.word is not None
        assert (decision.word.step, decision.word.status) == (2, Status.PROPOSED)


def test_who_says_otherwise_proposes_that():
    decision = decide("UNKNOWN", said(State.SUCCEEDED, "grace"), proposed(said(State.FAILED)))
    assert decision.step is None
    assert decision.word is not None
    assert decision.word.resolution.by == "grace"


def test_a_word_on_an_earlier_quarantine_counts_no_more():
    earlier = proposed(said(State.FAILED), replace(BEFORE, fence=2))
    assert standing(earlier, BEFORE) is None
    decision = decide("UNKNOWN", said(State.FAILED, "grace"), earlier)
    assert decision.step is None


@pytest.mark.parametrize(
    ("to_state", "answer", "stands"),
    [
        (State.FAILED, Answer.APPLIED, False),
        (State.FAILED, Answer.ABSENT, True),
        (State.SUCCEEDED, Answer.REJECTED, False),
        (State.SUCCEEDED, Answer.APPLIED, True),
        (State.ABANDONED, Answer.CONTRADICTS, False),
    ],
)
def test_what_later_evidence_speaks_against_is_proposed_anew(to_state, answer, stands):
    last = proposed(said(to_state))
    known = Known(Lifecycle.ACTIVE, [told(answer, NOW + timedelta(seconds=1))])
    decision = decide("UNKNOWN", said(to_state, "grace"), last, known=known)
    assert (decision.step is not None) == stands
    before = Known(Lifecycle.ACTIVE, [told(answer, NOW - timedelta(seconds=1))])
    assert decide("UNKNOWN", said(to_state, "grace"), last, known=before).step is not None


@pytest.mark.parametrize("status", [Status.WITHDRAWN, Status.CONFIRMED])
def test_only_a_proposal_stands(status):
    last = next_word(proposed(said(State.FAILED)), BEFORE, said(State.FAILED), status, NOW)
    assert standing(last, BEFORE) is None
    assert decide("UNKNOWN", said(State.FAILED, "eve"), last).step is None


# --- what may be done -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effect_class", "changes", "known"),
    [
        *[(once, {}, KNOWN) for once in ONCE],
        ("IDEMPOTENT", {}, Known(Lifecycle.RETIRED)),
        ("PURE", {}, Known(Lifecycle.RETIRED)),
        ("IDEMPOTENT", {}, Known(Lifecycle.ACTIVE, was_closed=True)),
        ("IDEMPOTENT", {}, Known(Lifecycle.ACTIVE, is_orphan=True)),
        ("REPLAYABLE", {}, Known(Lifecycle.ACTIVE, [told(Answer.ABSENT), told(Answer.APPLIED)])),
        ("IDEMPOTENT", {}, Known(Lifecycle.ACTIVE, [told(Answer.CONTRADICTS)])),
        ("IDEMPOTENT", {}, Known(Lifecycle.ACTIVE, refusal="The credential changed.")),
        ("IDEMPOTENT", {"first_dispatched_at": NOW - timedelta(days=99)}, KNOWN),
        ("REPLAYABLE", {"attempt": 99}, KNOWN),
    ],
)
def test_why_nothing_is_sent_again(effect_class, changes, known):
    before = replace(BEFORE, **changes)
    why_not = why_no_retry(before, contract(effect_class), known, NOW)
    assert why_not is not None
    with pytest.raises(EffectNotRetryable) as refused:
        decide(effect_class, said(State.RETRYABLE), before=before, known=known)
    assert refused.value.detail == why_not, "what is shown is what is said"
    (retry,) = [
        one
        for one in choices(before, contract(effect_class), known, NOW)
        if one.name == State.RETRYABLE
    ]
    assert retry.why_not == why_not


@pytest.mark.parametrize(
    ("state", "fence", "may"),
    [
        *[(state, 1, state is State.PLANNED) for state in State if state.is_open],
        (State.QUARANTINED, 0, True),
    ],
)
def test_only_what_nobody_ever_had_to_send_goes_to_another_version(state, fence, may):
    before = replace(BEFORE, state=state, fence=fence, attempt=0)
    assert (why_no_migration(before, replace(KNOWN, evidence=[told(Answer.ABSENT)])) is None) == may
    for known in (
        replace(KNOWN, is_orphan=True),
        *(
            replace(KNOWN, evidence=[told(one)])
            for one in (Answer.APPLIED, Answer.IN_PROGRESS, Answer.REJECTED)
        ),
    ):
        assert why_no_migration(before, known) is not None
    if may:
        step = superseded(before, by="person:ada", reason="moved", now=NOW)
        assert (step.transition, step.to_state) == ("T8", State.CANCELLED)


@pytest.mark.parametrize("effect_class", EffectClass)
def test_every_choice_says_how_many_people_it_takes(effect_class):
    people = TRAITS[effect_class].approvers
    told = {one.name: one.people for one in choices(BEFORE, contract(effect_class), KNOWN, NOW)}
    assert told == {
        "SUCCEEDED": people,
        "FAILED": people,
        "RETRYABLE": 1,
        "migrate": 1,
        "ABANDONED": people,
    }


# --- why it is here -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transition", "from_state", "reason", "cause"),
    [
        ("T10", "NEW", "contract_retired", Cause.RETIRED),
        ("T10", "NEW", f"{ORPHANED}: the provider has it", Cause.ORPHAN),
        ("T10", "RETRYABLE", "contract_retired", Cause.NO_ATTEMPT_LEFT),
        ("T8", "RETRYABLE", "not wanted", Cause.GIVEN_UP),
        ("T12", "FAILED", "it was FAILED, and late_worker says applied", Cause.CONTRADICTED),
        ("T6", "RECONCILING", "evidence contradicts: another amount", Cause.CONTRADICTED),
        ("T6", "RECONCILING", "absent, and never sent again", Cause.ABSENT),
        ("T6", "RECONCILING", "settled: absent; All 3 attempts are used.", Cause.ABSENT),
        ("T6", "RECONCILING", "inconclusive for good: asked 20 times", Cause.INCONCLUSIVE),
    ],
)
def test_each_way_into_quarantine_has_its_cause(transition, from_state, reason, cause):
    event = Event(4, transition, from_state, "QUARANTINED", 1, "reconciler", reason, NOW)
    assert cause_of(event) is cause


def test_each_cause_has_its_advice():
    assert ADVICE.keys() == set(Cause)

"""What time, evidence and people do to an effect, row by row of the effect classes' table."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ledger.effect import Ending, OpenEffect, Step
from ledger.settlement import (
    CHECKS_MAX,
    Answer,
    Finding,
    Resolution,
    backoff_seconds,
    cancel,
    overdue,
    resolve,
    settle,
)
from ledger.state import State
from tallystick.errors import EffectNotRetryable, IllegalTransition, InvalidRequest
from tallystick.tool_contract import Contract
from tests.builders import a_contract, a_contract_of, http_evidence

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
BEFORE = OpenEffect(
    State.RECONCILING,
    fence=3,
    attempt=1,
    reason="claimed",
    due_at=NOW + timedelta(seconds=60),
    first_dispatched_at=NOW - timedelta(seconds=90),
    unknown_since=NOW - timedelta(seconds=60),
)


def contract(effect_class: str, **changes) -> Contract:
    facts = {"settle_seconds": 30, "evidence": http_evidence(9), "attempts_max": None}
    return Contract.parse(a_contract_of(effect_class, **(facts | changes)))


def settled(
    effect_class: str, answer: Answer | None, before: OpenEffect = BEFORE, **changes
) -> Step:
    asked_at = changes.pop("asked_at", NOW)
    finding = Finding(answer, asked_at, "detail") if answer else None
    return settle(
        before, contract(effect_class, **changes), finding, actor="reconciler", now=NOW, jitter=0.5
    )


@pytest.mark.parametrize(
    ("effect_class", "answer", "to_state"),
    [
        # Positive and definitive negative evidence closes an effect of every class.
        *[
            (c, Answer.APPLIED, State.SUCCEEDED)
            for c in ("IDEMPOTENT", "REPLAYABLE", "UNKNOWN", "NON_RETRYABLE")
        ],
        *[
            (c, Answer.REJECTED, State.FAILED)
            for c in ("IDEMPOTENT", "REPLAYABLE", "UNKNOWN", "NON_RETRYABLE")
        ],
        # A contradiction is for a person.
        *[(c, Answer.CONTRADICTS, State.QUARANTINED) for c in ("IDEMPOTENT", "NON_RETRYABLE")],
        # Settled "absent" allows a new attempt only where the provider or the class makes it safe.
        ("IDEMPOTENT", Answer.ABSENT, State.RETRYABLE),
        ("REPLAYABLE", Answer.ABSENT, State.RETRYABLE),
        ("UNKNOWN", Answer.ABSENT, State.QUARANTINED),
        ("NON_RETRYABLE", Answer.ABSENT, State.QUARANTINED),
        # Inconclusive answers are asked again.
        *[
            (c, Answer.UNAVAILABLE, State.UNKNOWN)
            for c in ("IDEMPOTENT", "REPLAYABLE", "UNKNOWN", "NON_RETRYABLE")
        ],
        *[(c, Answer.IN_PROGRESS, State.UNKNOWN) for c in ("IDEMPOTENT", "NON_RETRYABLE")],
        # No source at all is inconclusive for good.
        ("IDEMPOTENT", None, State.QUARANTINED),
        ("REPLAYABLE", None, State.RETRYABLE),
        ("UNKNOWN", None, State.QUARANTINED),
        ("NON_RETRYABLE", None, State.QUARANTINED),
    ],
)
def test_what_evidence_leads_to(effect_class, answer, to_state):
    facts: dict[str, Any] = {"max_duplicates": 1} if effect_class == "REPLAYABLE" else {}
    step = settled(effect_class, answer, **facts)
    assert (step.transition, step.to_state, step.fence) == ("T6", to_state, 4)


def test_absent_before_the_settle_window_changes_nothing_but_waits():
    step = settled("IDEMPOTENT", Answer.ABSENT, asked_at=NOW - timedelta(seconds=31))
    assert step.to_state is State.UNKNOWN
    assert isinstance(step.after, OpenEffect)
    assert step.after.unknown_since == BEFORE.unknown_since, (
        "waiting does not start the window again"
    )


def test_the_lag_of_the_source_widens_the_settle_window():
    lagging = http_evidence(9, lag_seconds=45)
    assert settled("IDEMPOTENT", Answer.ABSENT, evidence=lagging).to_state is State.UNKNOWN


def test_a_source_that_is_not_read_after_write_never_says_absent():
    eventual = http_evidence(9, consistency="eventual")
    for effect_class in ("IDEMPOTENT", "REPLAYABLE", "NON_RETRYABLE"):
        assert settled(effect_class, Answer.ABSENT, evidence=eventual).to_state is State.UNKNOWN


def test_no_new_attempt_once_the_providers_key_is_not_sure_to_be_honoured():
    key = a_contract()["idempotency"]
    retention = {"idempotency": key | {"retention_seconds": 149}}
    assert settled("IDEMPOTENT", Answer.ABSENT, **retention).to_state is State.QUARANTINED
    retention["idempotency"]["retention_seconds"] = 151
    assert settled("IDEMPOTENT", Answer.ABSENT, **retention).to_state is State.RETRYABLE


def test_no_new_attempt_when_all_are_used():
    assert settled("IDEMPOTENT", Answer.ABSENT, attempts_max=1).to_state is State.QUARANTINED


def test_a_provider_that_never_answers_is_inconclusive_for_good():
    exhausted = replace(BEFORE, checks=CHECKS_MAX - 1)
    assert settled("IDEMPOTENT", Answer.UNAVAILABLE, exhausted).to_state is State.QUARANTINED
    step = settled("REPLAYABLE", Answer.UNAVAILABLE, exhausted, max_duplicates=1)
    assert step.to_state is State.RETRYABLE
    assert isinstance(step.after, OpenEffect)
    assert step.after.unaccounted == 1
    spent = replace(exhausted, unaccounted=1)
    step = settled("REPLAYABLE", Answer.UNAVAILABLE, spent, max_duplicates=1)
    assert step.to_state is State.QUARANTINED


def test_backoff_grows_to_a_bound_and_jitter_spreads_it():
    waits = [backoff_seconds(checks, 1.0) for checks in range(1, 40)]
    assert waits == sorted(waits)
    assert waits[-1] == 600
    assert all(backoff_seconds(5, 0.0) <= backoff_seconds(5, j) <= waits[4] for j in (0.1, 0.9))


@pytest.mark.parametrize(
    ("state", "effect_class", "transition", "to_state"),
    [
        ("DISPATCHED", "NON_RETRYABLE", "T4", State.UNKNOWN),
        ("DISPATCHED", "IDEMPOTENT", "T4", State.UNKNOWN),
        ("DISPATCHED", "PURE", "T4", State.RETRYABLE),
        ("RECONCILING", "IDEMPOTENT", "T6", State.UNKNOWN),
        ("PLANNED", "IDEMPOTENT", "T9", State.REFUSED),
        ("RETRYABLE", "IDEMPOTENT", "T10", State.QUARANTINED),
    ],
)
def test_what_is_overdue(state, effect_class, transition, to_state):
    step = overdue(replace(BEFORE, state=State(state)), contract(effect_class), actor="s", now=NOW)
    assert (step.transition, step.to_state) == (transition, to_state)


@pytest.mark.parametrize("state", ["UNKNOWN", "QUARANTINED"])
def test_nothing_else_is_overdue(state):
    with pytest.raises(IllegalTransition):
        overdue(replace(BEFORE, state=State(state)), contract("IDEMPOTENT"), actor="s", now=NOW)


QUARANTINED = replace(BEFORE, state=State.QUARANTINED, due_at=None)


def word(to_state: State, second: str | None = None) -> Resolution:
    return Resolution(to_state, "seen in the provider's console", "ticket 7", "ada", second)


@pytest.mark.parametrize("to_state", [State.SUCCEEDED, State.FAILED, State.ABANDONED])
def test_a_person_closes_a_quarantined_effect(to_state):
    step = resolve(QUARANTINED, contract("IDEMPOTENT"), word(to_state), NOW)
    assert (step.transition, step.to_state, step.actor) == ("T11", to_state, "person:ada")
    assert "ticket 7" in step.reason
    assert isinstance(step.after, Ending)


@pytest.mark.parametrize("effect_class", ["UNKNOWN", "NON_RETRYABLE"])
def test_what_may_run_once_is_resolved_by_who_names_a_second_person(effect_class):
    for second in (None, "ada"):
        with pytest.raises(InvalidRequest):
            resolve(QUARANTINED, contract(effect_class), word(State.FAILED, second), NOW)
    step = resolve(QUARANTINED, contract(effect_class), word(State.FAILED, "grace"), NOW)
    assert step.actor == "person:ada", "the second one is a claim of the first"
    assert step.reason.endswith("(evidence: ticket 7; claimed to agree: grace)")


@pytest.mark.parametrize("effect_class", ["UNKNOWN", "NON_RETRYABLE"])
@pytest.mark.parametrize("attempt", [0, 1])
def test_what_may_run_once_is_never_made_retryable(effect_class, attempt):
    before = replace(QUARANTINED, attempt=attempt)
    with pytest.raises(EffectNotRetryable):
        resolve(before, contract(effect_class), word(State.RETRYABLE, "grace"), NOW)


@pytest.mark.parametrize("effect_class", ["PURE", "REPLAYABLE", "IDEMPOTENT"])
def test_a_person_may_allow_a_new_attempt(effect_class):
    step = resolve(QUARANTINED, contract(effect_class), word(State.RETRYABLE), NOW)
    assert step.to_state is State.RETRYABLE


@pytest.mark.parametrize("state", [s for s in State if s.is_open and s is not State.QUARANTINED])
def test_only_what_is_quarantined_is_resolved(state):
    with pytest.raises(IllegalTransition):
        resolve(replace(BEFORE, state=state), contract("IDEMPOTENT"), word(State.FAILED), NOW)


@pytest.mark.parametrize(
    ("state", "effect_class", "to_state"),
    [
        ("PLANNED", "NON_RETRYABLE", State.CANCELLED),
        ("RETRYABLE", "PURE", State.CANCELLED),
        ("RETRYABLE", "IDEMPOTENT", State.QUARANTINED),
        ("RETRYABLE", "REPLAYABLE", State.QUARANTINED),
    ],
)
def test_what_can_be_given_up(state, effect_class, to_state):
    before = replace(BEFORE, state=State(state))
    step = cancel(before, contract(effect_class), actor="admin", reason="not wanted", now=NOW)
    assert (step.transition, step.to_state) == ("T8", to_state)


@pytest.mark.parametrize("state", ["DISPATCHED", "UNKNOWN", "RECONCILING", "QUARANTINED"])
def test_what_is_under_way_cannot_be_given_up(state):
    with pytest.raises(IllegalTransition):
        cancel(
            replace(BEFORE, state=State(state)),
            contract("IDEMPOTENT"),
            actor="admin",
            reason="not wanted",
            now=NOW,
        )

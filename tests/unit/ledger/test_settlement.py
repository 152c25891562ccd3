"""What time and evidence do to an effect, row by row of the effect classes' table."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from ledger.effect import Ending, Evidence, OpenEffect, Step
from ledger.evidence import Answer
from ledger.settlement import (
    CHECKS_MAX,
    backoff_seconds,
    cancel,
    left_behind,
    overdue,
    settle,
)
from ledger.state import State
from tallystick.errors import IllegalTransition
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


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def heard(answer: Answer, seconds: float = 0, source: str = "http") -> Evidence:
    """Return what a source said so many seconds ago."""
    at = ago(seconds)
    return Evidence(UUID(int=int(seconds * 10)), 3, source, answer, None, at, at, "detail")


# The window ended 30 seconds ago, and the provider said "absent" since.
ONCE = heard(Answer.ABSENT, 10)


def settled(
    effect_class: str,
    answer: Answer | None,
    before: OpenEffect = BEFORE,
    earlier: Sequence[Evidence] = (ONCE,),
    **changes,
) -> Step:
    finding = heard(answer, changes.pop("seconds", 0)) if answer else None
    return settle(
        before,
        contract(effect_class, **changes),
        finding,
        earlier,
        actor="reconciler",
        now=NOW,
        jitter=0.5,
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
    if answer is None:
        facts["evidence"] = None
    step = settled(effect_class, answer, **facts)
    assert (step.transition, step.to_state, step.fence) == ("T6", to_state, 4)


def test_absent_before_the_settle_window_changes_nothing_but_waits():
    step = settled("IDEMPOTENT", Answer.ABSENT, earlier=(), seconds=31)
    assert (step.to_state, step.reason) == (State.UNKNOWN, "absent, but not settled yet")
    assert isinstance(step.after, OpenEffect)
    assert step.after.unknown_since == BEFORE.unknown_since, (
        "waiting does not start the window again"
    )


def test_the_lag_of_the_source_widens_the_settle_window():
    lagging = http_evidence(9, lag_seconds=45)
    assert settled("IDEMPOTENT", Answer.ABSENT, evidence=lagging).to_state is State.UNKNOWN


@pytest.mark.parametrize(
    ("earlier", "to_state"),
    [
        ([], State.UNKNOWN),
        ([heard(Answer.ABSENT, 0.9)], State.UNKNOWN),
        ([heard(Answer.ABSENT, 1)], State.RETRYABLE),
        ([heard(Answer.ABSENT, 30)], State.RETRYABLE),
        # Said before the window was over, or by somebody else.
        ([heard(Answer.ABSENT, 31)], State.UNKNOWN),
        ([heard(Answer.ABSENT, 10, "late_worker")], State.UNKNOWN),
        # Anything else in between starts it anew.
        *[
            ([heard(Answer.ABSENT, 10), heard(answer, 5, source)], State.UNKNOWN)
            for answer in (Answer.UNAVAILABLE, Answer.IN_PROGRESS)
            for source in ("http", "webhook:acme", "person:ada")
        ],
        ([heard(Answer.IN_PROGRESS, 11), heard(Answer.ABSENT, 10)], State.RETRYABLE),
    ],
)
def test_absent_is_believed_when_it_is_said_twice(earlier, to_state):
    assert settled("IDEMPOTENT", Answer.ABSENT, earlier=earlier).to_state is to_state


def test_absent_is_asked_for_again_when_the_source_must_have_caught_up():
    step = settled("IDEMPOTENT", Answer.ABSENT, earlier=[heard(Answer.ABSENT, 0.5)])
    assert isinstance(step.after, OpenEffect)
    assert step.after.due_at == NOW + timedelta(seconds=0.5)
    assert step.after.checks == 0, "it is no failure of the source"
    lagging = http_evidence(9, lag_seconds=15)
    earlier = [heard(Answer.ABSENT, 14)]
    step = settled("IDEMPOTENT", Answer.ABSENT, earlier=earlier, evidence=lagging)
    assert isinstance(step.after, OpenEffect)
    assert step.after.due_at == NOW + timedelta(seconds=1)
    earlier = [heard(Answer.ABSENT, 15)]
    step = settled("IDEMPOTENT", Answer.ABSENT, earlier=earlier, evidence=lagging)
    assert step.to_state is State.RETRYABLE


@pytest.mark.parametrize(
    ("source", "told", "answer", "to_state"),
    [
        ("late_worker", Answer.APPLIED, Answer.ABSENT, State.SUCCEEDED),
        ("late_worker", Answer.APPLIED, Answer.UNAVAILABLE, State.SUCCEEDED),
        ("late_worker", Answer.REJECTED, Answer.UNAVAILABLE, State.FAILED),
        ("webhook:acme", Answer.APPLIED, None, State.SUCCEEDED),
        ("webhook:acme", Answer.REJECTED, None, State.FAILED),
        ("webhook:acme", Answer.CONTRADICTS, Answer.ABSENT, State.QUARANTINED),
        ("webhook:acme", Answer.APPLIED, Answer.REJECTED, State.QUARANTINED),
        ("person:ada", Answer.REJECTED, Answer.APPLIED, State.QUARANTINED),
        ("person:ada", Answer.APPLIED, Answer.UNAVAILABLE, State.SUCCEEDED),
    ],
)
def test_what_was_told_before_settles_as_well(source, told, answer, to_state):
    step = settled("IDEMPOTENT", answer, earlier=[heard(told, 5, source)])
    assert step.to_state is to_state
    if to_state is not State.QUARANTINED:
        assert isinstance(step.after, Ending)
        assert step.after.evidence_id == heard(told, 5).evidence_id


def test_where_only_messages_count_they_are_waited_for():
    webhook = {"source": "acme", "id": "/id", "state": "/state", "applied": ["applied"]}
    evidence = {"source": "webhook", "webhook": webhook}
    step = settled("NON_RETRYABLE", None, earlier=(), evidence=evidence)
    assert step.to_state is State.UNKNOWN
    assert isinstance(step.after, OpenEffect)
    assert step.after.checks == 1
    exhausted = replace(BEFORE, checks=CHECKS_MAX - 1)
    step = settled("NON_RETRYABLE", None, exhausted, earlier=(), evidence=evidence)
    assert step.to_state is State.QUARANTINED


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


@pytest.mark.parametrize("evidence", [None, http_evidence(9)])
@pytest.mark.parametrize("lease_seconds", [-5, 5])
def test_what_another_timeline_dispatched_has_its_lease_all_the_same(lease_seconds, evidence):
    lease_until = NOW + timedelta(seconds=lease_seconds)
    before = replace(BEFORE, state=State.DISPATCHED, due_at=lease_until)
    step = left_behind(before, contract("IDEMPOTENT", evidence=evidence), actor="s", now=NOW)
    assert (step.transition, step.to_state) == ("T4", State.UNKNOWN)
    assert isinstance(step.after, OpenEffect)
    assert step.after.unknown_since == max(NOW, lease_until), "the settle window is after the lease"
    assert step.after.due_at == (NOW if evidence else max(NOW, lease_until))


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

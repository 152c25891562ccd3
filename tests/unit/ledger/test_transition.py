"""The table of transitions, walked whole."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from uuid import UUID

import pytest

from ledger.effect import (
    Attempt,
    Ending,
    Event,
    OpenEffect,
    Outcome,
    first_step,
    last_step,
    reopening,
    replay,
    step,
)
from ledger.state import CLOSED, NEW, OPEN, State
from ledger.transition import TRANSITIONS, check_step
from tallystick.errors import IllegalTransition

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LEGAL = {(one.id, one.from_state, one.to_state) for one in TRANSITIONS}
ATTEMPT = Attempt(1, 1, UUID(int=1), 1, NOW, NOW)
IDS = sorted({one.id for one in TRANSITIONS})


def take(name: str, from_state: str, to_state: State):
    facts = {"actor": "a", "reason": "r", "at": NOW}
    if from_state == NEW:
        return first_step(name, to_state, **facts)
    if not State(from_state).is_open:
        outcome = Outcome(1, State(from_state), 3, Ending(), "a", "r", NOW)
        taken = reopening(outcome, [ATTEMPT], **facts)
        check_step(name, from_state, to_state)
        return taken
    before = OpenEffect(State(from_state), 3, 1, "", first_dispatched_at=NOW)
    if to_state.is_open:
        return step(before, name, to_state, **facts)
    return last_step(before, name, to_state, **facts)


@pytest.mark.parametrize(("name", "from_state", "to_state"), sorted(LEGAL))
def test_each_legal_step_raises_the_fence_by_one(name, from_state, to_state):
    taken = take(name, from_state, to_state)
    assert taken.to_state is to_state
    assert taken.fence == (0 if from_state == NEW else 4)


@pytest.mark.parametrize(
    ("name", "from_state", "to_state"),
    sorted(set(product(IDS, [NEW, *sorted(State)], State)) - LEGAL),
)
def test_every_other_step_is_refused(name, from_state, to_state):
    with pytest.raises(IllegalTransition):
        take(name, from_state, to_state)


def test_a_closed_state_is_left_for_quarantine_alone():
    left = {(one.id, one.to_state) for one in TRANSITIONS if one.from_state in CLOSED}
    assert left == {("T12", State.QUARANTINED)}
    assert {one.from_state for one in TRANSITIONS if one.id == "T12"} == CLOSED


def test_what_is_opened_again_knows_its_attempts():
    for attempts in ([], [ATTEMPT], [ATTEMPT, replace(ATTEMPT, attempt=2)]):
        outcome = Outcome(1, State.FAILED, 3, Ending(), "a", "r", NOW)
        opened = reopening(outcome, attempts, actor="a", reason="r", at=NOW).after
        assert isinstance(opened, OpenEffect)
        assert (opened.state, opened.fence, opened.due_at) == (State.QUARANTINED, 4, None)
        assert opened.attempt == len(attempts)
        assert opened.first_dispatched_at == (NOW if attempts else None)


def test_no_step_dispatches_from_doubt():
    sources = {one.from_state for one in TRANSITIONS if one.to_state is State.DISPATCHED}
    assert sources == {State.PLANNED, State.RETRYABLE}


def test_every_open_state_can_be_left():
    assert {State(one.from_state) for one in TRANSITIONS if one.from_state != NEW} > OPEN


HISTORY = [
    Event(0, "T1", NEW, "PLANNED", 0, "a", "", NOW),
    Event(1, "T2", "PLANNED", "DISPATCHED", 1, "a", "", NOW),
    Event(2, "T4", "DISPATCHED", "UNKNOWN", 1, "a", "", NOW),
]


def test_a_history_replays_to_the_state():
    assert replay(HISTORY) == (State.UNKNOWN, 2, 1)
    again = [
        *HISTORY[:2],
        Event(2, "T3", "DISPATCHED", "FAILED", 1, "a", "", NOW),
        Event(3, "T12", "FAILED", "QUARANTINED", 1, "webhook:acme", "", NOW),
    ]
    assert replay(again) == (State.QUARANTINED, 3, 1)
    closed = Event(4, "T11", "QUARANTINED", "SUCCEEDED", 1, "person:ada", "", NOW)
    assert replay([*again, closed]) == (State.SUCCEEDED, 4, 1)


@pytest.mark.parametrize(
    "broken",
    [
        [],
        HISTORY[1:],
        [HISTORY[0], HISTORY[2]],
        [HISTORY[0], HISTORY[0]],
        [HISTORY[0], replace(HISTORY[1], from_state="RETRYABLE")],
        [HISTORY[0], replace(HISTORY[1], transition="T7")],
    ],
)
def test_a_history_that_does_not_hang_together_is_refused(broken):
    with pytest.raises((ValueError, IllegalTransition)):
        replay(broken)

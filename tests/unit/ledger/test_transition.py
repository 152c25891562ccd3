"""The table of transitions, walked whole."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product

import pytest

from ledger.effect import Event, OpenEffect, first_step, last_step, replay, step
from ledger.state import CLOSED, NEW, OPEN, State
from ledger.transition import TRANSITIONS
from tallystick.errors import IllegalTransition

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LEGAL = {(one.id, one.from_state, one.to_state) for one in TRANSITIONS}
IDS = sorted({one.id for one in TRANSITIONS})


def take(name: str, from_state: str, to_state: State):
    facts = {"actor": "a", "reason": "r", "at": NOW}
    if from_state == NEW:
        return first_step(name, to_state, **facts)
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
    sorted(set(product(IDS, [NEW, *sorted(OPEN)], State)) - LEGAL),
)
def test_every_other_step_is_refused(name, from_state, to_state):
    with pytest.raises(IllegalTransition):
        take(name, from_state, to_state)


def test_nothing_leaves_a_closed_state():
    assert not {one.from_state for one in TRANSITIONS} & CLOSED


def test_no_step_dispatches_from_doubt():
    sources = {one.from_state for one in TRANSITIONS if one.to_state is State.DISPATCHED}
    assert sources == {State.PLANNED, State.RETRYABLE}


def test_every_open_state_can_be_left():
    assert {State(one.from_state) for one in TRANSITIONS if one.from_state != NEW} == OPEN


HISTORY = [
    Event(0, "T1", NEW, "PLANNED", 0, "a", "", NOW),
    Event(1, "T2", "PLANNED", "DISPATCHED", 1, "a", "", NOW),
    Event(2, "T4", "DISPATCHED", "UNKNOWN", 1, "a", "", NOW),
]


def test_a_history_replays_to_the_state():
    assert replay(HISTORY) == (State.UNKNOWN, 2, 1)


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

"""What evidence amounts to, and what it does to an effect in each state: the whole table."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from uuid import UUID

import pytest

from ledger.effect import Evidence
from ledger.evidence import (
    REPEATS_MAX,
    Act,
    Answer,
    act,
    bearing,
    conclusion,
    is_new,
    is_news,
)
from ledger.state import State
from tallystick.effect_class import EffectClass

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)

# Each state, and what each answer does to an effect in it: told once more by hand.
ACTS = """
               applied absent in_progress rejected unavailable contradicts
PLANNED        stop    keep   stop        stop     keep        stop
DISPATCHED     keep    keep   keep        keep     keep        keep
UNKNOWN        wake    keep   keep        wake     keep        wake
RECONCILING    keep    keep   keep        keep     keep        keep
RETRYABLE      doubt   keep   doubt       keep     keep        doubt
QUARANTINED    keep    keep   keep        keep     keep        keep
SUCCEEDED      keep    keep   keep        reopen   keep        reopen
FAILED         reopen  keep   keep        keep     keep        reopen
REFUSED        reopen  keep   keep        keep     keep        reopen
CANCELLED      reopen  keep   keep        keep     keep        reopen
ABANDONED      reopen  keep   keep        keep     keep        reopen
"""
HEAD, *ROWS = [line.split() for line in ACTS.strip().splitlines()]
TABLE = {
    (State(state), Answer(answer)): Act(told)
    for state, *row in ROWS
    for answer, told in zip(HEAD, row, strict=True)
}
SOURCES = ("http", "plugin", "listing", "webhook:acme", "worker", "late_worker", "person:ada")


def test_the_table_is_whole():
    assert TABLE.keys() == set(product(State, Answer))


@pytest.mark.parametrize(("state", "answer"), TABLE)
@pytest.mark.parametrize("source", SOURCES)
def test_what_each_answer_does_in_each_state(state: State, answer: Answer, source: str):
    for effect_class in set(EffectClass) - {EffectClass.PURE}:
        done = act(state, effect_class, 1, source=source, answer=answer)
        assert done is TABLE[state, answer]


@pytest.mark.parametrize(("state", "answer"), TABLE)
def test_nothing_contradicts_what_changes_nothing(state: State, answer: Answer):
    done = act(state, EffectClass.PURE, 1, source="webhook:acme", answer=answer)
    assert done is Act.KEEP


@pytest.mark.parametrize(
    ("source", "reopens"),
    [
        ("http", True),
        ("person:ada", True),
        ("webhook:acme", False),
        ("late_worker", False),
        ("listing", False),
    ],
)
def test_a_refusal_may_be_that_of_an_earlier_attempt(source: str, reopens: bool):
    done = act(State.SUCCEEDED, EffectClass.IDEMPOTENT, 2, source=source, answer=Answer.REJECTED)
    assert done is (Act.REOPEN if reopens else Act.KEEP)


def told(answer: str, source: str = "http", *, fence: int = 1, number: int = 1) -> Evidence:
    at = NOW + timedelta(seconds=number)
    return Evidence(UUID(int=number), fence, source, answer, None, at, at, "")


def concluded(*evidence: Evidence, effect_class: str = "IDEMPOTENT", attempt: int = 1):
    found = conclusion(evidence, EffectClass(effect_class), attempt)
    return found and found.answer


@pytest.mark.parametrize("source", SOURCES)
def test_one_clear_answer_settles(source: str):
    for answer in ("applied", "rejected", "contradicts"):
        assert concluded(told("absent"), told(answer, source), told("in_progress")) == answer
    for answer in ("absent", "in_progress", "unavailable"):
        assert concluded(told(answer, source)) is None
    assert concluded() is None


def test_whichever_came_first_two_answers_that_disagree_are_a_contradiction():
    applied, rejected = told("applied", "webhook:acme"), told("rejected", "late_worker", number=2)
    assert concluded(applied, rejected) == concluded(rejected, applied) == "contradicts"
    assert concluded(applied, told("contradicts")) == "contradicts"


def test_the_newest_of_equal_answers_is_named():
    first, second = told("applied", number=1), told("applied", number=2)
    found = conclusion([first, second], EffectClass.IDEMPOTENT, 1)
    assert found is second


@pytest.mark.parametrize("effect_class", ["UNKNOWN", "NON_RETRYABLE"])
def test_one_person_does_not_settle_what_takes_two(effect_class: str):
    ada, again = told("applied", "person:ada"), told("applied", "person:ada", number=2)
    assert concluded(ada, again, effect_class=effect_class) is None
    grace = told("applied", "person:grace", number=3)
    assert concluded(ada, grace, effect_class=effect_class) == "applied"
    other = told("rejected", "person:grace", number=3)
    assert concluded(ada, other, effect_class=effect_class) is None
    assert concluded(ada) == "applied", "where one is enough"


def test_what_a_person_takes_back_is_not_counted():
    wrong, right = told("applied", "person:ada"), told("rejected", "person:ada", number=2)
    grace = told("applied", "person:grace", number=3)
    assert concluded(wrong, right, grace, effect_class="UNKNOWN") is None
    assert concluded(wrong, right) == "rejected", "where one is enough"


def test_what_a_source_says_for_ever_is_not_heard_for_ever():
    heard = [told("applied", number=number) for number in range(REPEATS_MAX)]

    def is_kept(answer: str, source: str, fence: int) -> bool:
        return is_new(heard, source=source, answer=Answer(answer), fence=fence, evidence_id=None)

    assert not is_kept("applied", "http", 1)
    assert is_kept("rejected", "http", 1)
    assert is_kept("applied", "person:ada", 1)
    assert is_kept("applied", "http", 2), "of another attempt"


@pytest.mark.parametrize(
    ("source", "answer"),
    [("http", "rejected"), ("person:ada", "rejected"), ("webhook:acme", None)],
)
def test_a_refusal_settles_where_it_speaks_of_all_attempts(source: str, answer: str | None):
    assert concluded(told("rejected", source), attempt=2) == answer


def test_what_was_said_before_an_attempt_says_nothing_of_it_but_that_it_happened():
    before = [told(answer, fence=1) for answer in Answer]
    later = [told(answer, fence=5) for answer in Answer]
    assert bearing([*before, *later], 5) == [told("applied", fence=1), *later]


# --- what is listed again and again --------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "does", "expected"),
    [
        (State.SUCCEEDED, Act.KEEP, (False, False)),
        (State.FAILED, Act.KEEP, (False, False)),
        (State.FAILED, Act.REOPEN, (True, False)),
        (State.DISPATCHED, Act.KEEP, (True, False)),
        (State.UNKNOWN, Act.WAKE, (True, False)),
        (State.QUARANTINED, Act.KEEP, (True, False)),
        # What could be sent is stopped, however often that was said.
        (State.PLANNED, Act.STOP, (True, True)),
        (State.RETRYABLE, Act.DOUBT, (True, True)),
    ],
)
def test_what_a_listing_repeats_is_no_news(state: State, does: Act, expected: tuple[bool, bool]):
    def tells(*kept: Evidence) -> bool:
        return is_news(kept, state, does, answer=Answer.APPLIED, provider_reference="inv_1")

    known = replace(told("applied", "listing"), provider_reference="inv_1")
    assert (tells(), tells(known)) == expected
    others = [
        replace(known, source="http"),
        replace(known, answer="rejected"),
        replace(known, provider_reference="inv_2"),
    ]
    assert tells(*others) is expected[0]

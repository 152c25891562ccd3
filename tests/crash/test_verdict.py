"""The judge of the crash test can say no: each of its rules is shown a case that breaks it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from ledger.effect import Event
from tests.crash import verdict
from tests.crash.books import Line
from tests.crash.ledger import Answer, Attempt, Record, Standing
from tests.crash.scenario import SETTLE_SECONDS
from tests.crash.verdict import Case, Rule, judge

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
CONTRACT, OTHER_CONTRACT = UUID(int=1), UUID(int=2)


def at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def event(fence: int, transition: str, from_state: str, to_state: str, **changes: object) -> Event:
    seconds, attempt = float(fence), 1 if fence else 0
    made = Event(fence, transition, from_state, to_state, attempt, "one", "reason", at(seconds))
    return replace(made, **changes)


def line(entry: str, seconds: float, *, fence: int = 1, key: str = "key") -> Line:
    when = at(seconds).timestamp()
    return Line(entry, "invoices", "effect", fence, key, "{}", f"{entry}-{seconds}", when)


def a_case(state: str = "SUCCEEDED", **changes: object) -> Case:
    """Return an effect that was sent once, booked, and reported."""
    outcome = {"provider_reference": "booking-1.2"}
    record = Record(
        effect_id="effect",
        run="run",
        identity="effect:one",
        tool="tool",
        effect_class="IDEMPOTENT",
        contract_id=CONTRACT,
        told={"state": state, "outcome": outcome},
        events=[
            event(0, "T1", "NEW", "PLANNED"),
            event(1, "T2", "PLANNED", "DISPATCHED"),
            event(2, "T3", "DISPATCHED", "SUCCEEDED"),
        ],
        attempts=[Attempt(1, 1, CONTRACT, at(3))],
        outcomes=[Standing("SUCCEEDED", 2)],
    )
    return Case(replace(record, **changes), [line("request", 1.1)], [line("booking", 1.2)])


def settled_as_absent(booked: float) -> Case:
    events = [
        *a_case().record.events[:2],
        event(2, "T4", "DISPATCHED", "UNKNOWN"),
        event(3, "T5", "UNKNOWN", "RECONCILING"),
        event(4, "T6", "RECONCILING", "QUARANTINED", reason="absent", at=at(1.5)),
    ]
    case = a_case("QUARANTINED", events=events, open=[Standing("QUARANTINED", 4)], outcomes=[])
    case.record.evidence.append(Answer("http", "absent", at(1.4)))
    return replace(case, bookings=[line("booking", booked)])


def test_a_good_case_breaks_no_rule():
    case = a_case()
    assert judge([case.record], [*case.requests, *case.bookings]) == []


BROKEN: list[tuple[Rule, Case]] = [
    (verdict.is_settled, a_case("RETRYABLE")),
    (verdict.events_replay_to_the_state, a_case("FAILED")),
    (verdict.events_replay_to_the_state, a_case(events=a_case().record.events[:2])),
    (verdict.events_replay_to_the_state, a_case(events=a_case().record.events[1:])),
    (verdict.events_replay_to_the_state, a_case(open=[Standing("UNKNOWN", 2)])),
    (verdict.events_replay_to_the_state, a_case(outcomes=[Standing("SUCCEEDED", 1)])),
    (verdict.events_replay_to_the_state, a_case(attempts=[])),
    (verdict.attempts_carry_the_recorded_contract, a_case(attempts=[])),
    (verdict.attempts_carry_the_recorded_contract, a_case(contract_id=OTHER_CONTRACT)),
    (verdict.requests_follow_a_dispatch, replace(a_case(), requests=[line("request", 0.9)])),
    (
        verdict.requests_follow_a_dispatch,
        replace(a_case(), requests=[line("request", 1.1, fence=2)]),
    ),
    (verdict.requests_follow_a_dispatch, replace(a_case(), requests=[line("request", 1.1)] * 2)),
    (verdict.classes_are_kept, replace(a_case(), bookings=[line("booking", 1.2)] * 2)),
    (verdict.classes_are_kept, replace(a_case(), requests=[line("request", 1.1, key="")])),
    (
        verdict.classes_are_kept,
        replace(a_case(), requests=[line("request", 1.1), line("request", 1.1, key="other")]),
    ),
    (
        verdict.classes_are_kept,
        replace(a_case(effect_class="UNKNOWN"), requests=[line("request", 1.1)] * 2),
    ),
    (verdict.classes_are_kept, a_case(effect_class="PURE")),
    (
        verdict.classes_are_kept,
        replace(a_case(effect_class="REPLAYABLE"), bookings=[line("booking", 1.2)] * 2),
    ),
    (verdict.outcome_agrees_with_the_books, replace(a_case(), bookings=[])),
    (verdict.outcome_agrees_with_the_books, replace(a_case(), bookings=[line("booking", 1.3)])),
    (verdict.outcome_agrees_with_the_books, a_case("FAILED")),
    (verdict.quarantine_has_a_reason, settled_as_absent(booked=1.6)),
    (verdict.quarantine_has_a_reason, settled_as_absent(booked=1.2)),
    (verdict.what_was_settled_as_absent_stays_absent, settled_as_absent(booked=1.6)),
]


@pytest.mark.parametrize(("rule", "case"), BROKEN)
def test_a_broken_rule_is_found(rule: Rule, case: Case):
    assert list(rule(case)), case.history()


def test_every_rule_is_shown_a_case_that_breaks_it():
    assert {rule for rule, _ in BROKEN} == set(verdict.RULES)


def test_a_provider_that_is_slower_than_its_settle_window_breaks_its_own_word():
    slow = settled_as_absent(booked=1.2 + SETTLE_SECONDS)
    assert list(verdict.what_was_settled_as_absent_stays_absent(slow)) == []


def test_what_the_ledger_has_not_is_found_in_the_books():
    assert len(judge([], [line("request", 1.1)])) == 1


def test_a_key_of_two_effects_is_found():
    records = [a_case().record, a_case(effect_id="other").record]
    lines = [line("request", 1.1), replace(line("request", 1.1), effect_id="other")]
    assert any("the key" in fault for fault in judge(records, lines))


def test_a_run_of_two_versions_is_found():
    records = [a_case().record, a_case(effect_id="other", contract_id=OTHER_CONTRACT).record]
    assert any("2 versions" in fault for fault in judge(records, []))

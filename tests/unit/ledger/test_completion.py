"""What a worker's report leads to."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from ledger.completion import Report, Verdict, decide, is_owner, is_repeated
from ledger.effect import Ending, Event, Evidence, OpenEffect
from ledger.state import State
from tallystick.tool_contract import Contract
from tests.builders import a_contract, a_contract_of

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
WORKER = UUID(int=1)
CONTRACT = Contract.parse(a_contract())
BEFORE = OpenEffect(
    State.DISPATCHED,
    fence=1,
    attempt=1,
    reason="dispatched",
    worker_id=WORKER,
    nonce=UUID(int=10),
    due_at=NOW,
    first_dispatched_at=NOW,
)


def told(verdict: str, **facts) -> Report:
    return Report(WORKER, "agent", 1, Verdict(verdict), **facts)


def evidence(answer: str) -> Evidence:
    return Evidence(UUID(int=5), 1, "http", answer, None, NOW, NOW, "")


def outcome(report: Report, *known: Evidence, contract=CONTRACT, before=BEFORE):
    return decide(before, contract, report, known, (), NOW)


@pytest.mark.parametrize(
    ("report", "transition", "to_state"),
    [
        (told("succeeded"), "T3", State.SUCCEEDED),
        (told("failed", error_code="declined"), "T3", State.FAILED),
        (told("failed", not_sent=True), "T3", State.FAILED),
        (told("unknown"), "T4", State.UNKNOWN),
    ],
)
def test_what_a_report_leads_to(report, transition, to_state):
    step = outcome(report)
    assert (step.transition, step.to_state, step.fence) == (transition, to_state, 2)


def test_a_pure_effect_is_never_unknown():
    pure = Contract.parse(a_contract_of("PURE"))
    assert outcome(told("unknown"), contract=pure).to_state is State.RETRYABLE


@pytest.mark.parametrize(
    ("verdict", "answer", "to_state"),
    [
        ("succeeded", "rejected", State.UNKNOWN),
        ("succeeded", "contradicts", State.UNKNOWN),
        ("succeeded", "applied", State.SUCCEEDED),
        ("succeeded", "absent", State.SUCCEEDED),  # asked too early, as an unsettled answer is
        ("failed", "applied", State.UNKNOWN),
        ("failed", "rejected", State.FAILED),
    ],
)
def test_stored_evidence_that_disagrees_makes_it_unknown(verdict, answer, to_state):
    assert outcome(told(verdict), evidence(answer)).to_state is to_state


def test_failed_needs_every_earlier_attempt_accounted_for():
    doubtful = replace(BEFORE, unaccounted=1)
    assert outcome(told("failed"), before=doubtful).to_state is State.UNKNOWN
    assert outcome(told("succeeded"), before=doubtful).to_state is State.SUCCEEDED


def test_that_nothing_was_sent_is_said_of_one_attempt_alone():
    second = replace(BEFORE, attempt=2)
    assert outcome(told("failed", not_sent=True), before=second).to_state is State.UNKNOWN
    pure = Contract.parse(a_contract_of("PURE"))
    step = outcome(told("failed", not_sent=True), before=second, contract=pure)
    assert step.to_state is State.FAILED


def test_an_effect_that_is_done_succeeds_though_its_output_breaks_the_contract():
    step = decide(BEFORE, CONTRACT, told("succeeded"), (), ("/invoice_id: missing",), NOW)
    assert step.to_state is State.SUCCEEDED
    assert isinstance(step.after, Ending)
    assert step.after.invalid_result == ("/invoice_id: missing",)


@pytest.mark.parametrize(
    ("before", "owner"),
    [
        (BEFORE, True),
        (replace(BEFORE, due_at=NOW - timedelta(days=1)), True),  # late, but not superseded
        (replace(BEFORE, fence=2), False),
        (replace(BEFORE, worker_id=UUID(int=2)), False),
        (replace(BEFORE, state=State.UNKNOWN), False),
        (None, False),
    ],
)
def test_who_may_report(before, owner):
    assert is_owner(told("succeeded"), before) is owner


@pytest.mark.parametrize(
    ("verdict", "to_state", "actor", "repeated"),
    [
        ("succeeded", "SUCCEEDED", f"worker:{WORKER} of agent", True),
        ("unknown", "RETRYABLE", f"worker:{WORKER} of agent", True),
        ("failed", "SUCCEEDED", f"worker:{WORKER} of agent", False),
        ("succeeded", "SUCCEEDED", f"worker:{WORKER} of another", False),
        ("unknown", "UNKNOWN", "reconciler:a", False),
    ],
)
def test_the_same_report_again(verdict, to_state, actor, repeated):
    event = Event(2, "T3", "DISPATCHED", to_state, 1, actor, "", NOW)
    assert is_repeated(told(verdict), event) is repeated
    assert not is_repeated(told(verdict), None)

"""Whether a worker may send: the guards of T2 and T7, in the order in which they are asked."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from ledger.admission import Worker, decide
from ledger.effect import OpenEffect
from ledger.state import State
from tallystick.errors import (
    ApprovalExpired,
    ApprovalRejected,
    ApprovalStale,
    BudgetExhausted,
    CapabilityNotGranted,
    ContractMigrating,
    ContractRetired,
    ContractSuspended,
    CredentialPolicyChanged,
    NeedsHuman,
    NotFound,
    PolicyBlocked,
)
from tallystick.tool_contract import Contract
from tests.builders import a_contract, a_contract_of

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
CONTRACT = Contract.parse(a_contract())
ME = Worker(UUID(int=1), UUID(int=10), "agent")
PLANNED = OpenEffect(State.PLANNED, fence=0, attempt=0, reason="planned")
DISPATCHED = replace(
    PLANNED,
    state=State.DISPATCHED,
    fence=1,
    attempt=1,
    worker_id=ME.worker_id,
    nonce=ME.nonce,
    due_at=NOW + timedelta(seconds=5),
    first_dispatched_at=NOW,
)
RETRYABLE = replace(DISPATCHED, state=State.RETRYABLE, fence=4, worker_id=None, nonce=None)


def test_a_planned_effect_is_dispatched_for_one_lease():
    decision = decide(PLANNED, CONTRACT, None, ME, NOW)
    assert decision.owned
    assert decision.step is not None
    assert (decision.step.transition, decision.step.fence, decision.step.attempt) == ("T2", 1, 1)
    assert isinstance(decision.step.after, OpenEffect)
    assert decision.step.after.due_at == NOW + timedelta(seconds=30)
    assert decision.step.after.first_dispatched_at == NOW


def test_a_retryable_effect_is_dispatched_again():
    decision = decide(RETRYABLE, CONTRACT, None, ME, NOW)
    assert decision.owned
    assert decision.step is not None
    assert (decision.step.transition, decision.step.fence, decision.step.attempt) == ("T7", 5, 2)
    assert isinstance(decision.step.after, OpenEffect)
    assert decision.step.after.first_dispatched_at == RETRYABLE.first_dispatched_at


@pytest.mark.parametrize(
    ("worker", "now", "owned"),
    [
        (ME, NOW, True),  # the answer was lost, and is asked for again
        (ME, NOW + timedelta(seconds=5), False),  # the lease is over
        (Worker(ME.worker_id, UUID(int=11), "agent"), NOW, False),  # asked anew
        (Worker(UUID(int=2), ME.nonce, "agent"), NOW, False),  # another process
    ],
)
def test_who_owns_a_dispatched_effect(worker, now, owned):
    decision = decide(DISPATCHED, CONTRACT, None, worker, now)
    assert (decision.owned, decision.step, decision.refusal) == (owned, None, None)


@pytest.mark.parametrize("state", ["UNKNOWN", "RECONCILING", "QUARANTINED"])
def test_nothing_is_dispatched_straight_from_doubt(state):
    before = replace(DISPATCHED, state=State(state), worker_id=None, nonce=None)
    decision = decide(before, CONTRACT, None, ME, NOW)
    assert (decision.owned, decision.step) == (False, None)


FINAL = [
    ContractRetired,
    CapabilityNotGranted,
    CredentialPolicyChanged,
    ApprovalStale,
    ApprovalRejected,
    ApprovalExpired,
]
PASSING = [
    ContractSuspended,
    ContractMigrating,
    NotFound,
    PolicyBlocked,
    BudgetExhausted,
    NeedsHuman,
]


@pytest.mark.parametrize("refusal", FINAL)
def test_a_refusal_for_good_closes_what_was_never_sent(refusal):
    decision = decide(PLANNED, CONTRACT, refusal("no"), ME, NOW)
    assert decision.step is not None
    assert (decision.step.transition, decision.step.to_state) == ("T9", State.REFUSED)
    assert decision.step.reason == refusal.code
    assert not decision.owned


@pytest.mark.parametrize("refusal", FINAL)
def test_a_refusal_for_good_quarantines_what_was_attempted(refusal):
    decision = decide(RETRYABLE, CONTRACT, refusal("no"), ME, NOW)
    assert decision.step is not None
    assert (decision.step.transition, decision.step.to_state) == ("T10", State.QUARANTINED)


@pytest.mark.parametrize("refusal", PASSING)
@pytest.mark.parametrize("before", [PLANNED, RETRYABLE])
def test_a_refusal_that_may_pass_changes_no_row(before, refusal):
    decision = decide(before, CONTRACT, refusal("not now"), ME, NOW)
    assert (decision.owned, decision.step) == (False, None)
    assert isinstance(decision.refusal, refusal)


def test_a_plan_past_its_deadline_is_refused():
    late = replace(PLANNED, deadline_at=NOW)
    decision = decide(late, CONTRACT, None, ME, NOW)
    assert decision.step is not None
    assert decision.step.to_state is State.REFUSED


@pytest.mark.parametrize(
    ("contract", "before"),
    [
        # all attempts are used
        (Contract.parse(a_contract(attempts_max=1)), RETRYABLE),
        # the provider's key may be forgotten before the lease is over
        (CONTRACT, replace(RETRYABLE, first_dispatched_at=NOW - timedelta(seconds=86400 - 59))),
        # a class that runs once
        (Contract.parse(a_contract_of("NON_RETRYABLE")), RETRYABLE),
    ],
)
def test_no_attempt_beyond_the_bounds(contract, before):
    decision = decide(before, contract, None, ME, NOW)
    assert not decision.owned
    assert decision.step is not None
    assert decision.step.to_state is State.QUARANTINED

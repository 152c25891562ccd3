"""When a person is asked, and how an approval moves."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from uuid import UUID

import pytest

from ledger.approval import (
    LEGAL,
    NEW,
    Approval,
    Question,
    Status,
    closed,
    decided,
    moved,
    outdated,
    question,
    requested,
    why_not,
)
from ledger.effect import Effect
from ledger.identity import EffectId
from tallystick.effect_class import EffectClass
from tallystick.errors import (
    ApprovalStale,
    ContractRetired,
    CredentialPolicyChanged,
    Forbidden,
    IllegalTransition,
)
from tallystick.policy import Decision, Verdict
from tallystick.tool_contract import Contract
from tests.builders import a_contract

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
EFFECT = Effect(
    id=EffectId(UUID(int=1), 7),
    run="run-1",
    identity="effect:1",
    idem_key=None,
    tool="billing.send_invoice",
    version="2.1.0",
    contract_id=UUID(int=2),
    presented_contract_id=UUID(int=2),
    contract_digest="sha256:",
    effect_class=EffectClass.IDEMPOTENT,
    capabilities=frozenset(),
    credential_version=1,
    principal="agent",
    origin="runtime",
    arguments={},
    key_id="k1",
    request_fingerprint=bytes(32),
    operation_fingerprint=bytes(32),
    planned_at=NOW,
)
ASKED = Question("A person has to look.", "large")
PENDING = requested(EFFECT, ASKED, NOW, approval_seconds=3600).after


def standing(status: Status) -> Approval:
    return replace(PENDING, status=status)


def verdict(decision: Decision, code: str | None = None) -> Verdict:
    return Verdict(decision, code, "large", "A person has to look.", "refunds", ())


ALLOW = verdict(Decision.ALLOW)
ASKS = verdict(Decision.NEEDS_HUMAN, "needs_human")


@pytest.mark.parametrize(
    ("approval", "said", "rule"),
    [
        # what the contract says, what the policy says, the rule for which a person is asked
        ("never", None, "nobody"),
        ("policy", None, None),
        ("always", None, None),
        ("never", ALLOW, "nobody"),
        ("policy", ALLOW, "nobody"),
        ("always", ALLOW, None),
        ("never", ASKS, "large"),
        ("policy", ASKS, "large"),
        ("always", ASKS, "large"),
    ],
)
def test_when_a_person_is_asked(approval: str, said: Verdict | None, rule: str | None):
    asked = question(Contract.parse(a_contract(approval=approval)), said)
    if rule == "nobody":
        assert asked is None
    else:
        assert asked is not None
        assert asked.rule == rule


def test_a_question_is_asked_for_a_while():
    step = requested(EFFECT, ASKED, NOW, approval_seconds=3600)
    assert (step.event.from_status, step.event.to_status, step.event.step) == ("new", "pending", 0)
    assert step.event.actor == "agent"
    assert step.after.expires_at == NOW + HOUR
    assert (step.after.question, step.after.rule) == ("A person has to look.", "large")


@pytest.mark.parametrize(("before", "after"), list(product(Status, Status)))
def test_the_law_of_approvals(before: Status, after: Status):
    if (before, after) not in LEGAL:
        with pytest.raises(IllegalTransition):
            moved(standing(before), after, actor="x", reason="y", now=NOW)
        return
    step = moved(standing(before), after, actor="x", reason="y", now=NOW)
    assert (step.after.status, step.after.step, step.event.step) == (after, 1, 1)


def test_nothing_follows_an_end_and_all_is_reached():
    ends = {Status.REJECTED, Status.EXPIRED, Status.STALE, Status.CONSUMED}
    assert not any(before in ends for before, _ in LEGAL)
    reached, found = {NEW}, {NEW}
    while found:
        found = {after for before, after in LEGAL if before in found} - reached
        reached |= found
    assert reached == {NEW, *Status}


def test_two_people_take_part():
    with pytest.raises(Forbidden):
        decided(EFFECT, PENDING, Status.APPROVED, by="agent", reason="", now=NOW)
    step = decided(EFFECT, PENDING, Status.APPROVED, by="grace", reason="known", now=NOW)
    assert (step.after.decided_by, step.after.decided_at) == ("grace", NOW)
    assert step.event.actor == "person:grace"


def test_nobody_decides_too_late():
    assert PENDING.at(NOW + HOUR).status is Status.EXPIRED
    for to_status in (Status.APPROVED, Status.REJECTED):
        with pytest.raises(IllegalTransition):
            decided(EFFECT, PENDING, to_status, by="grace", reason="", now=NOW + HOUR)


@pytest.mark.parametrize(
    ("status", "now", "code"),
    [
        (Status.APPROVED, NOW, None),
        (Status.CONSUMED, NOW, None),
        (Status.CONSUMED, NOW + HOUR, None),  # what was used does not run out
        (Status.PENDING, NOW, "needs_human"),
        (Status.REJECTED, NOW, "approval_rejected"),
        (Status.REJECTED, NOW + HOUR, "approval_rejected"),
        (Status.EXPIRED, NOW, "approval_expired"),
        (Status.PENDING, NOW + HOUR, "approval_expired"),
        (Status.APPROVED, NOW + HOUR, "approval_expired"),
        (Status.STALE, NOW, "approval_stale"),
    ],
)
def test_why_an_effect_may_not_run(status: Status, now: datetime, code: str | None):
    refusal = why_not(standing(status), now)
    assert (refusal.code if refusal else None) == code


@pytest.mark.parametrize(
    ("status", "now", "to_status"),
    [
        (Status.PENDING, NOW, Status.STALE),
        (Status.APPROVED, NOW, Status.STALE),
        (Status.PENDING, NOW + HOUR, Status.EXPIRED),
        (Status.APPROVED, NOW + HOUR, Status.EXPIRED),
        (Status.REJECTED, NOW, None),
        (Status.CONSUMED, NOW + HOUR, None),
    ],
)
def test_what_becomes_of_an_approval_whose_effect_is_gone(
    status: Status, now: datetime, to_status: Status | None
):
    step = closed(standing(status), actor="x", reason="y", now=now)
    assert (step.after.status if step else None) is to_status


def test_what_was_approved_under_other_circumstances_is_stale():
    changed = CredentialPolicyChanged("It changed.")
    told = outdated(standing(Status.APPROVED), changed)
    assert isinstance(told, ApprovalStale)
    assert told.facts == {"because": "credential_policy_changed"}
    assert outdated(standing(Status.PENDING), changed) is changed
    retired = ContractRetired("It is gone.")
    assert outdated(standing(Status.APPROVED), retired) is retired

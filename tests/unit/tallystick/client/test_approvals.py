"""What the clients make of approvals, of policies, and of runs."""

from datetime import UTC, datetime

import httpx
import pytest

from tallystick import errors
from tallystick.client import PolicyRevision
from tests.unit.tallystick.client.far_side import (
    ARGUMENTS,
    INVOICE,
    RUN,
    Service,
    an_effect,
    problem,
)

APPROVAL = {
    "approval_id": f"{RUN}.7",
    "effect_id": f"{RUN}.7",
    "status": "rejected",
    "question": "Refunds above 100 are for a person.",
    "rule": "large-refund",
    "expires_at": "2026-01-03T03:04:05Z",
    "decided_by": "grace",
    "reason": "It is not hers.",
}
WAITING = {"effect_id": f"{RUN}.7", "approval_id": f"{RUN}.7", "status": "pending"}
ENTRY = {"kind": "refusal", "tool": "orders.refund", "code": "not_found", "true_code": "not_owner"}


def page(*entries, following=None, subject=None):
    told = {"run": "run/1", "run_id": RUN, "subject": subject}
    return httpx.Response(200, json=told | {"entries": list(entries), "next": following})


def test_a_call_that_waits_for_a_person_is_raised_before_its_body_runs(connect):
    service = Service(problem(403, "needs_human", facts=WAITING, retryable=True))
    client = connect(service)
    ran = []
    with pytest.raises(errors.NeedsHuman) as raised:
        client.call(INVOICE, ARGUMENTS, ran.append, run="run-1", effect="invoice-1")
    assert raised.value.facts == WAITING
    assert client.call(INVOICE, ARGUMENTS, lambda _: "sent", run="run-1", effect="e") == "sent"
    assert (ran, len(service.asked)) == ([], 3)


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (403, "policy_blocked", errors.PolicyBlocked),
        (409, "approval_rejected", errors.ApprovalRejected),
        (409, "approval_expired", errors.ApprovalExpired),
        (409, "approval_stale", errors.ApprovalStale),
        (429, "budget_exhausted", errors.BudgetExhausted),
        (404, "not_found", errors.NotFound),
    ],
)
def test_a_gate_that_says_no_is_asked_once(connect, status, code, expected):
    facts = {"rule": "a-rule", "policy": {"policy": "safe-refund", "revision": 3}}
    service = Service(problem(status, code, facts=facts, retryable=False))
    ran = []
    with pytest.raises(expected) as raised:
        connect(service).call(INVOICE, ARGUMENTS, ran.append, run="run-1")
    assert raised.value.facts == facts
    assert (ran, len(service.asked)) == ([], 1)


def test_an_effect_says_what_it_is_held_to_and_who_was_asked(connect):
    service = Service()
    service.effect = an_effect(policy={"policy": "safe-refund", "revision": 3}, approval=APPROVAL)
    shown = connect(service).show(f"{RUN}.7")
    assert shown.policy == PolicyRevision("safe-refund", 3)
    assert shown.approval is not None
    assert (shown.approval.status, shown.approval.rule) == ("rejected", "large-refund")
    service.effect = an_effect()
    plain = connect(service).show(f"{RUN}.7")
    assert (plain.policy, plain.approval) == (None, None)


def test_an_approval_is_read_by_its_id(connect):
    events = [{"step": 0, "to_status": "pending"}]
    service = Service(httpx.Response(200, json=APPROVAL | {"events": events}))
    approval = connect(service).approval(f"{RUN}.7")
    assert (approval.approval_id, approval.decided_by) == (f"{RUN}.7", "grace")
    assert approval.reason == "It is not hers."
    assert approval.expires_at == datetime(2026, 1, 3, 3, 4, 5, tzinfo=UTC)
    assert approval.document["events"] == events
    assert service.asked == [("GET", f"/v1/approvals/{RUN}.7", None)]


def test_a_run_begins_with_its_subject(connect):
    service = Service(httpx.Response(201, json={"run": "run/1"}))
    assert connect(service).begin_run("run/1", {"customer_id": "C-1", "shop": 7}) is None
    subject = {"customer_id": "C-1", "shop": 7}
    assert service.asked == [("PUT", "/v1/runs/run%2F1", {"subject": subject})]


def test_a_run_of_somebody_else_is_refused(connect):
    service = Service(problem(409, "effect_conflict"))
    with pytest.raises(errors.EffectConflict):
        connect(service).begin_run("run-1", {"customer_id": "C-1"})


def test_a_subject_that_is_not_json_is_not_sent(connect):
    service = Service()
    with pytest.raises(errors.InvalidRequest):
        connect(service).begin_run("run-1", {"customer_id": object()})
    assert service.asked == []


def test_the_whole_trace_of_a_run_is_read(connect):
    service = Service(
        page(ENTRY, following="2026,effect,1"),
        page(ENTRY | {"tool": "orders.get"}, subject={"customer_id": "C-1"}),
    )
    trace = connect(service).run("run/1")
    assert (trace.run, trace.run_id, trace.subject) == ("run/1", RUN, {"customer_id": "C-1"})
    assert [entry["tool"] for entry in trace.entries] == ["orders.refund", "orders.get"]
    assert [path for _, path, _ in service.asked] == [
        "/v1/runs/run%2F1?limit=500",
        "/v1/runs/run%2F1?limit=500&after=2026%2Ceffect%2C1",
    ]


@pytest.mark.parametrize(
    ("method", "argument", "strange"),
    [
        ("approval", "x.1", APPROVAL | {"expires_at": "tomorrow"}),
        ("approval", "x.1", APPROVAL | {"status": None}),
        ("show", "x.1", an_effect(policy={"policy": "safe-refund"})),
        ("show", "x.1", an_effect(approval={"status": "pending"})),
        ("run", "run-1", {"run": "run-1", "run_id": RUN, "entries": ["called"]}),
        ("run", "run-1", {"run": "run-1", "run_id": RUN, "entries": [], "next": 7}),
    ],
)
def test_an_answer_of_another_form_is_an_outage(connect, method, argument, strange):
    service = Service(httpx.Response(200, json=strange))
    with pytest.raises(errors.RegistryUnavailable, match="documented form"):
        getattr(connect(service), method)(argument)

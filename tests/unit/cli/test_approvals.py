"""Approvals and runs, as a person sees them."""

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from cli import approval_views

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
APPROVAL_ID = "0198c5f2-7a3b-7c1d-8e2f-0123456789ab.9223372036854775807"
PATH = f"/v1/approvals/{APPROVAL_ID}"
APPROVAL: dict[str, Any] = {
    "approval_id": APPROVAL_ID,
    "effect_id": APPROVAL_ID,
    "run": "run/187",
    "tool": "orders.refund",
    "version": "1.0.0",
    "effect_class": "NON_RETRYABLE",
    "status": "pending",
    "question": "Refunds above 100 are for a person.",
    "rule": "large-refund",
    "policy": {"policy": "safe-refund", "revision": 3},
    "contract_digest": "sha256:" + "c" * 64,
    "fingerprint": "ab" * 32,
    "credential_version": 1,
    "requested_by": "agent",
    "requested_at": "2026-01-02T03:04:05Z",
    "expires_at": "2026-01-02T15:04:05Z",
    "decided_by": None,
    "decided_at": None,
    "reason": None,
    "arguments": {
        "order_id": "LK-1",
        "amount": 120.5,
        "card": {"number": {"x-redacted": True}, "name": "[redacted]"},
    },
    "events": [],
}


def seen(parts, columns=80):
    written = io.StringIO()
    console = Console(width=columns, file=written)
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Text))
    return written.getvalue()


# --- what a reviewer needs ------------------------------------------------------------------------


def test_one_look_is_enough_to_judge():
    text = seen(approval_views.approval(APPROVAL, now=NOW))
    assert "orders.refund@1.0.0  pending  expires in 3 h" in text
    assert 'order_id  "LK-1"' in text
    assert "amount    120.5" in text
    assert "Refunds above 100 are for a person." in text
    assert "large-refund" in text
    assert "safe-refund revision 3" in text
    assert "NON_RETRYABLE: a second call would do it again" in text
    assert "agent" in text
    assert "run/187" in text


def test_what_was_redacted_cannot_be_taken_for_what_was_written():
    text = seen(approval_views.approval(APPROVAL, now=NOW))
    assert '{"number": [redacted], "name": "[redacted]"}' in text


def test_the_contract_asks_where_no_rule_does():
    asked = APPROVAL | {"rule": None, "policy": None}
    assert "the contract itself asks" in seen(approval_views.approval(asked, now=NOW))


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("pending", f"registry approvals approve {APPROVAL_ID}"),
        ("approved", "it runs when the worker asks again"),
        ("consumed", f"registry effects show {APPROVAL_ID}"),
        ("rejected", "Nothing runs on it any more"),
        ("expired", "Nothing runs on it any more"),
        ("stale", "Nothing runs on it any more"),
    ],
)
def test_it_is_said_what_to_do_next(status, told):
    assert told in seen(approval_views.approval(APPROVAL | {"status": status}, now=NOW))


@pytest.mark.parametrize(
    ("left", "told"),
    [
        (timedelta(days=3, hours=5), "expires in 3 days"),
        (timedelta(days=1, hours=23), "expires in 47 h"),
        (timedelta(hours=1, minutes=30), "expires in 90 min"),
        (timedelta(seconds=45), "expires in 45 s"),
        (timedelta(0), "has run out"),
        (timedelta(seconds=-1), "has run out"),
    ],
)
def test_the_time_left_is_told_in_words(left, told):
    expires_at = (NOW + left).isoformat()
    waiting = APPROVAL | {"expires_at": expires_at}
    assert told in seen(approval_views.approval(waiting, now=NOW))
    over = waiting | {"status": "rejected"}
    assert "expires in" not in seen(approval_views.approval(over, now=NOW))


def test_who_decided_and_why_is_told():
    decided = {
        "status": "rejected",
        "decided_by": "grace",
        "decided_at": "2026-01-02T04:00:00Z",
        "reason": "It is not hers.",
        "events": [
            {
                "step": 1,
                "from_status": "pending",
                "to_status": "rejected",
                "actor": "person:grace",
                "reason": "It is not hers.",
                "at": "2026-01-02T04:00:00Z",
            }
        ],
    }
    text = seen(approval_views.approval(APPROVAL | decided, now=NOW))
    assert "grace" in text
    assert "2026-01-02 04:00:00Z" in text
    assert "It is not hers." in text
    assert "person:grace" in text


def test_the_list_fits_a_narrow_terminal_and_its_ids_can_be_copied(run, wire):
    long = {"arguments": {"memo": "m" * 5000}}
    wire.answer("GET /v1/approvals", {"approvals": [APPROVAL, APPROVAL | long], "next": "page-2"})
    out = run("approvals", "list").stdout
    assert max(map(len, out.splitlines())) <= 80
    assert out.count(APPROVAL_ID) == 2
    assert "orders.refund@1.0.0  asked by agent" in out
    assert "Refunds above 100 are for a person." in out
    assert "--after page-2" in out
    assert out.count("m") < 1000


# --- what is asked --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "query"),
    [
        ([], {"status": "pending", "limit": "50"}),
        (["--status", "APPROVED"], {"status": "approved", "limit": "50"}),
        (["--all", "--limit", "7", "--after", "a.1"], {"limit": "7", "after": "a.1"}),
    ],
)
def test_what_waits_is_listed_unless_told_otherwise(run, wire, options, query):
    wire.answer("GET /v1/approvals", {"approvals": [], "next": None})
    assert run("approvals", "list", *options).stdout == "No approval matches.\n"
    assert dict(wire.requests[0].url.params) == query


def test_a_status_and_all_are_not_asked_for_together(run, wire):
    assert run("approvals", "list", "--all", "--status", "pending").exit_code == 2
    assert wire.requests == []


def test_a_word_is_given_with_its_reason(run, wire):
    wire.answer(f"POST {PATH}/approve", APPROVAL | {"status": "approved"})
    wire.answer(f"POST {PATH}/reject", APPROVAL | {"status": "rejected"})
    assert "approved orders.refund@1.0.0" in run("approvals", "approve", APPROVAL_ID).stdout
    run("approvals", "approve", APPROVAL_ID, "--reason", "hers")
    refused = run("approvals", "reject", APPROVAL_ID, "--reason", "not hers").stdout
    assert "rejected orders.refund@1.0.0" in refused
    assert [body for _, body in wire.sent()] == [{}, {"reason": "hers"}, {"reason": "not hers"}]
    assert run("approvals", "reject", APPROVAL_ID).exit_code == 2


def test_whoever_asked_is_refused(run, wire):
    wire.refuse(f"POST {PATH}/approve", "forbidden", status=403)
    result = run("approvals", "approve", APPROVAL_ID)
    assert result.exit_code == 1
    assert "[forbidden]" in result.stderr


# --- runs -----------------------------------------------------------------------------------------

ENTRY = {
    "at": "2026-01-02T03:04:05.5Z",
    "effect_id": APPROVAL_ID,
    "tool": "orders.refund",
    "version": "1.0.0",
    "principal": "agent",
    "policy": {"policy": "safe-refund", "revision": 3},
}
DONE = ENTRY | {
    "kind": "effect",
    "decision": "allow",
    "state": "SUCCEEDED",
    "reason": "reported",
    "approval": None,
}
REFUSED = ENTRY | {
    "kind": "refusal",
    "gate": "permission",
    "code": "not_found",
    "true_code": "not_owner",
    "rule": None,
    "message": "No order LK-1 is available.",
}
BLOCKED = REFUSED | {
    "gate": "policy",
    "code": "policy_blocked",
    "true_code": "policy_blocked",
    "rule": "refund-requires-order-lookup",
}
RUN = {
    "run": "run/187",
    "run_id": "0198c5f2-7a3b-7c1d-8e2f-0123456789ab",
    "subject": {"customer_id": "C-1"},
    "entries": [DONE, REFUSED, BLOCKED],
    "next": None,
}


def shown(run, wire, **changes):
    wire.answers.clear()
    wire.answer("GET /v1/runs/run/187", RUN | changes)
    result = run("runs", "show", "run/187", env={"COLUMNS": "160"})
    assert result.exit_code == 0
    return result.stdout


def test_a_run_is_shown_a_line_a_call(run, wire):
    lines = shown(run, wire).splitlines()
    assert wire.requests[0].url.raw_path.startswith(b"/v1/runs/run%2F187?")
    assert any('acts for  {"customer_id": "C-1"}' in line for line in lines)
    calls = [line.split("  ") for line in lines if "orders.refund@1.0.0" in line]
    told = [[cell.strip() for cell in line if cell.strip()] for line in calls]
    assert told == [
        ["03:04:05", "orders.refund@1.0.0", "allow", "SUCCEEDED (reported)", "agent"],
        [
            "03:04:05",
            "orders.refund@1.0.0",
            "refused by permission",
            "not_owner, told not_found",
            "agent",
        ],
        [
            "03:04:05",
            "orders.refund@1.0.0",
            "refused by policy",
            "policy_blocked by refund-requires-order-lookup",
            "agent",
        ],
    ]


def test_a_call_that_waited_for_a_person_says_so(run, wire):
    consumed = APPROVAL | {"status": "consumed", "decided_by": "grace"}
    waited = DONE | {"decision": "needs_human", "approval": consumed}
    waiting = waited | {"approval": APPROVAL, "state": "PLANNED", "reason": None}
    text = shown(run, wire, entries=[waited, waiting])
    assert "needs_human: consumed, approved by grace" in text
    assert "needs_human: pending  " in text


def test_each_day_is_told_once(run, wire):
    next_day = DONE | {"at": "2026-01-03T00:00:01Z"}
    text = shown(run, wire, entries=[DONE, DONE, next_day])
    assert text.count("2026-01-02") == text.count("2026-01-03") == 1


def test_a_run_of_nothing_and_a_run_of_more(run, wire):
    assert "Nothing was called." in shown(run, wire, entries=[], subject=None)
    assert "--after page-2" in shown(run, wire, next="page-2")


def test_a_run_begins_with_whom_it_acts_for(run, wire):
    said = {"run": "run-1", "run_id": "x", "set_by": "admin", "set_at": "2026-01-02T03:04:05Z"}
    wire.answer("PUT /v1/runs/run-1", said | {"subject": {"customer_id": "C-1"}})
    options = ["--subject", "customer_id=C-1=2", "--subject", "shop:=42"]
    result = run("runs", "begin", "run-1", *options)
    assert result.exit_code == 0
    assert 'acts for  {"customer_id": "C-1"}' in result.stdout
    assert wire.sent()[0][1] == {"subject": {"customer_id": "C-1=2", "shop": 42}}


@pytest.mark.parametrize("wrong", [[], ["customer_id"], ["=C-1"], ["customer_id="], ["shop:=x"]])
def test_a_subject_of_another_form_is_wrong_usage(run, wire, wrong):
    options = [each for member in wrong for each in ("--subject", member)]
    assert run("runs", "begin", "run-1", *options).exit_code == 2
    assert wire.requests == []


# --- grants ---------------------------------------------------------------------------------------


def test_a_capability_is_taken_back(run, wire):
    wire.answer("DELETE /v1/grants", {})
    result = run("grants", "remove", "agent", "invoice:write:acme", "--json")
    held = {"principal": "agent", "capability": "invoice:write:acme"}
    assert json.loads(result.stdout) == held | {"granted": False}
    assert dict(wire.requests[0].url.params) == held

"""What the policy of a refund flow promises: each rule, each demonstration, each kind of check."""

from typing import Any

import pytest

from tallystick.policy import Call, Decision, History, Policy, captured, decide
from tallystick.policy.lint import lint

POLICY = """\
version: "0.1"
id: careful-refund
title: Refund an order, and write to the customer

defaults:
  unknown_tools: block

tools:
  lookup_order:
    risk: read
  check_refund_eligibility:
    risk: read
  issue_refund:
    risk: high_risk
  send_email:
    risk: write

facts:
  - name: order_total
    from_tool: lookup_order
    path: total
  - name: customer_email
    from_tool: lookup_order
    path: customer_email
  - name: refund_eligible
    from_tool: check_refund_eligibility
    path: eligible

budgets:
  max_total_calls: 8
  max_write_calls: 2
  max_high_risk_calls: 1

rules:
  - name: look-before-refund
    type: require_prior_call
    tool: issue_refund
    prior_tool: lookup_order
    effect: block

  - name: only-eligible-orders
    type: require_fact
    tool: issue_refund
    fact: refund_eligible
    op: eq
    value: true
    effect: block

  - name: no-more-than-was-paid
    type: compare
    tool: issue_refund
    left: { source: arg, key: amount }
    op: gt
    right: { source: fact, key: order_total }
    effect: block

  - name: a-person-sees-large-refunds
    type: compare
    tool: issue_refund
    left: { source: arg, key: amount }
    op: gte
    right: { source: const, value: 100 }
    effect: needs_human

  - name: write-to-the-customer-alone
    type: compare
    tool: send_email
    left: { source: arg, key: to }
    op: ne
    right: { source: fact, key: customer_email }
    effect: block
"""

LOOK = ("lookup_order", {"order_id": "ORD-7"}, {"total": 150, "customer_email": "kim@example.com"})
CHECK = ("check_refund_eligibility", {"order_id": "ORD-7"}, {"eligible": True})
DENIED = ("check_refund_eligibility", {"order_id": "ORD-7"}, {"eligible": False})
MAIL = ("send_email", {"to": "kim@example.com"}, {"sent": True})


def refund(amount: Any) -> tuple[str, dict[str, Any], Any]:
    return ("issue_refund", {"order_id": "ORD-7", "amount": amount}, {"refunded": amount})


def run(*calls: tuple[str, dict[str, Any], Any]) -> list[tuple[str, str | None]]:
    """Make calls in order, of which only those run that may; return what became of each."""
    policy, history = Policy.parse(POLICY), History()
    outcomes: list[tuple[str, str | None]] = []
    for tool, arguments, result in calls:
        call = Call(tool, arguments)
        verdict = decide(policy, call, history)
        outcomes.append((verdict.decision.value, verdict.rule))
        if verdict.decision is Decision.ALLOW:
            history = history.dispatched(call, policy)
            history = history.succeeded(tool, captured(policy, call, result))
    return outcomes


ALLOWED = ("allow", None)


def test_the_policy_is_read_and_has_nothing_to_mend():
    policy = Policy.parse(POLICY)
    assert (policy.id, len(policy.rules), len(policy.facts)) == ("careful-refund", 5, 3)
    assert lint(policy) == ()


def test_a_good_refund_runs_from_end_to_end():
    assert run(LOOK, CHECK, refund(42), MAIL) == [ALLOWED] * 4


def test_a_bad_refund_is_blocked_before_it_runs():
    assert run(refund(42)) == [("block", "look-before-refund")]


def test_a_large_refund_waits_for_a_person():
    last = ("needs_human", "a-person-sees-large-refunds")
    assert run(LOOK, CHECK, refund(120)) == [ALLOWED, ALLOWED, last]


@pytest.mark.parametrize(
    ("calls", "decision", "rule"),
    [
        # Which tools are allowed.
        ([("wire_money", {}, {})], "block", "defaults.unknown_tools"),
        # Which tools require prior evidence, and in which order.
        ([CHECK, refund(42)], "block", "look-before-refund"),
        ([LOOK, refund(42)], "block", "only-eligible-orders"),
        ([LOOK, DENIED, refund(42)], "block", "only-eligible-orders"),
        ([CHECK, LOOK, refund(42)], "allow", None),
        # What one tool returned bounds what another is asked for.
        ([LOOK, CHECK, refund(200)], "block", "no-more-than-was-paid"),
        ([LOOK, CHECK, refund(150.01)], "block", "no-more-than-was-paid"),
        ([LOOK, CHECK, refund("42")], "block", "no-more-than-was-paid"),
        ([LOOK, CHECK, refund(None)], "block", "no-more-than-was-paid"),
        # Which calls a person approves.
        ([LOOK, CHECK, refund(150)], "needs_human", "a-person-sees-large-refunds"),
        ([LOOK, CHECK, refund(100)], "needs_human", "a-person-sees-large-refunds"),
        ([LOOK, CHECK, refund(99.99)], "allow", None),
        # To whom an email goes.
        ([MAIL], "block", "write-to-the-customer-alone"),
        ([LOOK, MAIL], "allow", None),
        (
            [LOOK, ("send_email", {"to": "someone@example.org"}, {})],
            "block",
            "write-to-the-customer-alone",
        ),
        ([LOOK, ("send_email", {}, {})], "block", "write-to-the-customer-alone"),
        # Budgets, and limits on side effects.
        ([LOOK, CHECK, refund(10), refund(10)], "block", "budgets.max_high_risk_calls"),
        ([LOOK, MAIL, MAIL, MAIL], "block", "budgets.max_write_calls"),
        ([LOOK, CHECK, refund(10), MAIL, MAIL], "block", "budgets.max_write_calls"),
        ([LOOK] * 9, "block", "budgets.max_total_calls"),
        ([LOOK] * 8, "allow", None),
    ],
)
def test_each_kind_of_check(calls: list[Any], decision: str, rule: str | None):
    outcomes = run(*calls)
    assert outcomes[-1] == (decision, rule)
    assert outcomes[:-1] == [ALLOWED] * (len(calls) - 1)


def test_a_call_that_was_held_back_spends_nothing():
    tries = [refund(500), refund(500), refund(120), refund(42)]
    outcomes = [decision for decision, _ in run(LOOK, CHECK, *tries)]
    assert outcomes == ["allow", "allow", "block", "block", "needs_human", "allow"]


@pytest.mark.parametrize(
    ("path", "transform", "result"),
    [
        ("total", None, {"total": 150}),
        ("order.total", None, {"order": {"total": 150}}),
        ("order.lines[0].sum", None, {"order": {"lines": [{"sum": 150}]}}),
        ("lines[*].sum", "[sum]", {"lines": [{"sum": 100}, {"sum": 50}]}),
        ("total", "[trim, number]", {"total": " 150.00 "}),
    ],
)
def test_facts_come_from_nested_paths_and_through_transformations(
    path: str, transform: str | None, result: Any
):
    fact = f'path: "{path}"' + (f"\n    transform: {transform}" if transform else "")
    text = POLICY.replace('"0.1"', '"0.2"').replace("path: total", fact)
    policy = Policy.parse(text)
    (total, _) = captured(policy, Call("lookup_order", {}), result)
    assert (total.name, total.value) == ("order_total", 150)

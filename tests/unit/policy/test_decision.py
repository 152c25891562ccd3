"""What each part of a policy does to a call, and what a model is told of it."""

from decimal import Decimal
from typing import Any

import pytest

from tallystick.errors import BudgetExhausted, NeedsHuman, PolicyBlocked
from tallystick.policy import Call, Decision, History, Policy, Tally, decide
from tests.policies import (
    AMOUNT,
    ORDER_TOTAL,
    TOTAL,
    a_rule,
    after,
    ask,
    compare,
    const,
    made,
    policy_of,
    spent,
)

ALLOW, NEEDS_HUMAN, BLOCK = Decision.ALLOW, Decision.NEEDS_HUMAN, Decision.BLOCK
UNTOLD = "cannot be told: a value is not there"
PER_ORDER = {**ORDER_TOTAL, "per": {"arg": "order_id"}}
THIS_ORDER = {"source": "arg", "key": "order_id"}


def with_rule(rule: Any, *facts: Any) -> Policy:
    return policy_of(rules=[rule], facts=list(facts))


def with_total(total: Any) -> History:
    return History(facts={("order_total", ""): total})


# --- tools that are not declared ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("defaults", "decision"),
    [
        ({}, BLOCK),
        ({"unknown_tools": "block"}, BLOCK),
        ({"unknown_tools": "needs_human"}, NEEDS_HUMAN),
        ({"unknown_tools": "allow"}, ALLOW),
    ],
)
def test_a_tool_that_is_not_declared(defaults: Any, decision: Decision):
    verdict = ask(policy_of(defaults=defaults), "delete_account")
    assert verdict.decision is decision
    assert verdict.rule == (None if decision is ALLOW else "defaults.unknown_tools")


def test_rules_and_budgets_count_for_a_tool_that_is_not_declared():
    policy = policy_of(
        defaults={"unknown_tools": "allow"},
        budgets={"max_high_risk_calls": 1},
        rules=[a_rule("require_prior_call", tool="erase", prior_tool="lookup_order")],
    )
    assert ask(policy, "erase").rule == "rule"
    assert ask(policy, "erase", made(lookup_order=1)).decision is ALLOW
    assert ask(policy, "wipe", made(erase=1)).rule == "budgets.max_high_risk_calls"


# --- the types of rules ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "history", "decision"),
    [
        ("require_prior_call", History(), BLOCK),
        ("require_prior_call", made(lookup_order=1), ALLOW),
        ("require_prior_call", made(send_email=1), BLOCK),
        ("require_prior_call", History(tallies={"lookup_order": Tally(3, 0)}), BLOCK),
        ("forbid_prior_call", History(), ALLOW),
        ("forbid_prior_call", made(lookup_order=1), BLOCK),
        ("forbid_prior_call", History(tallies={"lookup_order": Tally(3, 0)}), BLOCK),
        ("forbid_prior_call", made(send_email=1), ALLOW),
    ],
)
def test_a_prior_call_is_required_to_have_succeeded_and_forbidden_even_to_be_tried(
    type_: str, history: History, decision: Decision
):
    policy = with_rule(a_rule(type_, prior_tool="lookup_order"))
    assert ask(policy, "issue_refund", history).decision is decision


@pytest.mark.parametrize(
    ("type_", "history", "decision"),
    [
        ("require_prior_call", History(), BLOCK),
        ("require_prior_call", made(lookup_order=1), ALLOW),
        ("require_prior_call", made(send_email=1), ALLOW),
        ("require_prior_call", made(issue_refund=1), BLOCK),
        ("forbid_prior_call", History(), ALLOW),
        ("forbid_prior_call", History(tallies={"send_email": Tally(1, 0)}), BLOCK),
        ("forbid_prior_call", made(lookup_order=1), BLOCK),
        ("forbid_prior_call", made(issue_refund=1), ALLOW),
    ],
)
def test_of_several_prior_tools_any_one_counts(type_: str, history: History, decision: Decision):
    policy = with_rule(a_rule(type_, prior_tool=["lookup_order", "send_email"]))
    assert ask(policy, "issue_refund", history).decision is decision


def test_a_rule_may_be_about_several_tools():
    policy = with_rule(a_rule("always", tool=["issue_refund", "send_email"]))
    assert ask(policy, "issue_refund").rule == "rule"
    assert ask(policy, "send_email").message.startswith('The rule "rule" refuses send_email: ')
    assert ask(policy, "lookup_order").decision is ALLOW


@pytest.mark.parametrize(
    ("op", "value", "total", "decision"),
    [
        ("eq", True, True, ALLOW),
        ("eq", True, False, BLOCK),
        ("eq", True, 1, BLOCK),
        ("eq", True, "true", BLOCK),
        ("eq", True, None, BLOCK),
        ("gte", 10, 10, ALLOW),
        ("gte", 10, 9.99, BLOCK),
        ("gte", 10, "10", BLOCK),
        ("in", ["a", "b"], "b", ALLOW),
        ("in", ["a", "b"], "c", BLOCK),
        ("exists", None, False, ALLOW),
        ("exists", None, None, BLOCK),
        ("not_exists", None, None, ALLOW),
        ("not_exists", None, 0, BLOCK),
    ],
)
def test_a_fact_is_required(op: str, value: Any, total: Any, decision: Decision):
    fields = {"fact": "order_total", "op": op} | ({} if value is None else {"value": value})
    policy = with_rule(a_rule("require_fact", **fields), ORDER_TOTAL)
    assert ask(policy, "issue_refund", with_total(total)).decision is decision


def test_a_fact_that_was_never_captured_is_not_there():
    policy = with_rule(a_rule("require_fact", fact="order_total", op="eq", value=1), ORDER_TOTAL)
    verdict = ask(policy, "issue_refund")
    assert verdict.decision is BLOCK
    assert verdict.message == 'The rule "rule" refuses issue_refund: call lookup_order first.'


@pytest.mark.parametrize(
    ("amount", "total", "decision"),
    [
        (150, 150, ALLOW),
        (150.01, 150, BLOCK),
        (0.3, 0.3, ALLOW),
        (1, None, BLOCK),
        (None, 150, BLOCK),
        (None, None, BLOCK),
        ("1", 150, BLOCK),
        (True, 150, BLOCK),
        ([1], 150, BLOCK),
        (1, "150", BLOCK),
        (float("nan"), 150, BLOCK),
    ],
)
def test_what_cannot_be_compared_is_held_against_the_call(
    amount: Any, total: Any, decision: Decision
):
    policy = with_rule(compare(AMOUNT, "gt", TOTAL), ORDER_TOTAL)
    assert ask(policy, "issue_refund", with_total(total), amount=amount).decision is decision


@pytest.mark.parametrize("op", ["eq", "ne", "in", "not_in", "contains", "not_contains"])
def test_two_values_that_are_both_not_there_are_not_alike(op: str):
    policy = with_rule(compare(AMOUNT, op, TOTAL), ORDER_TOTAL)
    assert ask(policy, "issue_refund").decision is BLOCK


@pytest.mark.parametrize("amount", [None, "5"])
def test_missing_pass_lets_through_what_cannot_be_told(amount: Any):
    policy = with_rule(compare(AMOUNT, "gt", const(100), missing="pass"))
    assert ask(policy, "issue_refund", amount=amount).decision is ALLOW
    assert ask(policy, "issue_refund", amount=101).decision is BLOCK


def test_always_is_for_every_call_to_which_it_applies():
    policy = with_rule(a_rule("always", effect="needs_human"))
    assert ask(policy, "issue_refund").decision is NEEDS_HUMAN
    assert ask(policy, "send_email").decision is ALLOW


@pytest.mark.parametrize(
    ("arguments", "decision"),
    [
        ({"amount": 200, "currency": "EUR"}, BLOCK),
        ({"amount": 200, "currency": "USD"}, ALLOW),
        ({"amount": 50, "currency": "EUR"}, ALLOW),
        ({"amount": 200}, BLOCK),
        ({"currency": "EUR"}, BLOCK),
        ({"amount": "200", "currency": 5}, BLOCK),
    ],
)
def test_a_rule_applies_when_all_its_conditions_hold_or_cannot_be_told(
    arguments: Any, decision: Decision
):
    currency = {"source": "arg", "key": "currency"}
    when = [
        {"left": AMOUNT, "op": "gt", "right": const(100)},
        {"left": currency, "op": "eq", "right": const("EUR")},
    ]
    policy = with_rule(a_rule("always", when=when))
    assert ask(policy, "issue_refund", **arguments).decision is decision


def test_a_condition_may_pass_over_what_is_not_there():
    when = [{"left": AMOUNT, "op": "gt", "right": const(100), "missing": "pass"}]
    policy = with_rule(a_rule("always", when=when))
    assert ask(policy, "issue_refund").decision is ALLOW
    assert ask(policy, "issue_refund", amount=101).decision is BLOCK


def test_both_sides_may_be_transformed_and_nested():
    to = {"source": "arg", "key": "message.to[0]", "transform": ["trim", "lower"]}
    email = {"name": "email", "from_tool": "lookup_order", "path": "customer.email"}
    fact = {"source": "fact", "key": "email", "transform": ["lower"]}
    policy = with_rule(compare(to, "ne", fact, tool="send_email"), email)
    history = after(policy, ("lookup_order", {}, {"customer": {"email": "Ana@Example.com"}}))
    mine, other = {"to": [" ANA@example.com"]}, {"to": ["eve@example.com"]}
    assert ask(policy, "send_email", history, message=mine).decision is ALLOW
    assert ask(policy, "send_email", history, message=other).decision is BLOCK
    assert ask(policy, "send_email", history, message={"to": []}).decision is BLOCK


# --- facts that are kept per something ------------------------------------------------------------


def test_the_fact_of_another_order_does_not_vouch_for_this_one():
    policy = with_rule(compare(AMOUNT, "gt", {**TOTAL, "for": THIS_ORDER}), PER_ORDER)
    history = after(
        policy,
        ("lookup_order", {"order_id": "A"}, {"total": 1000}),
        ("lookup_order", {"order_id": "B"}, {"total": 20}),
    )
    assert ask(policy, "issue_refund", history, order_id="A", amount=500).decision is ALLOW
    assert ask(policy, "issue_refund", history, order_id="B", amount=500).decision is BLOCK
    assert ask(policy, "issue_refund", history, order_id="B", amount=20).decision is ALLOW
    third = ask(policy, "issue_refund", history, order_id="C", amount=1)
    assert third.decision is BLOCK
    assert third.message == (
        'The rule "rule" refuses issue_refund: call lookup_order first, for this order_id.'
    )
    for odd in (None, ["A"], {"A": 1}, "A" * 1000):
        assert ask(policy, "issue_refund", history, order_id=odd, amount=1).decision is BLOCK


def test_keys_are_of_one_type_and_numbers_are_numbers():
    policy = with_rule(compare(AMOUNT, "gt", {**TOTAL, "for": THIS_ORDER}), PER_ORDER)
    history = after(policy, ("lookup_order", {"order_id": 1}, {"total": 10}))
    assert ask(policy, "issue_refund", history, order_id=1.0, amount=1).decision is ALLOW
    assert ask(policy, "issue_refund", history, order_id="1", amount=1).decision is BLOCK
    assert ask(policy, "issue_refund", history, order_id=True, amount=1).decision is BLOCK


def test_a_fact_may_be_required_for_what_this_call_is_about():
    about: Any = {"for": THIS_ORDER}
    rule = a_rule("require_fact", fact="order_total", op="gt", value=0, **about)
    policy = with_rule(rule, PER_ORDER)
    history = after(policy, ("lookup_order", {"order_id": "A"}, {"total": 10}))
    assert ask(policy, "issue_refund", history, order_id="A").decision is ALLOW
    assert ask(policy, "issue_refund", history, order_id="B").decision is BLOCK


@pytest.mark.parametrize(
    ("per", "argument"), [("order_id", "order_id"), ("order.id", "order"), ("/order/id", "order")]
)
def test_without_a_word_a_fact_is_the_one_of_the_same_argument(per: str, argument: str):
    policy = with_rule(compare(AMOUNT, "gt", TOTAL), {**ORDER_TOTAL, "per": {"arg": per}})

    def of(order: str) -> dict[str, Any]:
        return {argument: order if argument == per else {"id": order}}

    history = after(policy, ("lookup_order", of("A"), {"total": 20}))
    assert ask(policy, "issue_refund", history, **of("A"), amount=20).decision is ALLOW
    assert ask(policy, "issue_refund", history, **of("A"), amount=21).decision is BLOCK
    assert ask(policy, "issue_refund", history, **of("B"), amount=20).decision is BLOCK
    assert ask(policy, "issue_refund", history, amount=20).decision is BLOCK


# --- budgets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "history", "rule"),
    [
        ("lookup_order", made(lookup_order=4), None),
        ("lookup_order", made(lookup_order=3, send_email=2), "budgets.max_total_calls"),
        ("send_email", made(lookup_order=4), None),
        ("send_email", made(send_email=2), "budgets.max_write_calls"),
        ("send_email", made(send_email=1, issue_refund=1), "budgets.max_write_calls"),
        ("issue_refund", made(send_email=1), None),
        ("issue_refund", made(issue_refund=1), "budgets.max_high_risk_calls"),
        ("send_email", History(tallies={"send_email": Tally(2, 0)}), "budgets.max_write_calls"),
    ],
)
def test_a_run_has_so_many_calls_of_a_risk(tool: str, history: History, rule: str | None):
    budgets = {"max_total_calls": 5, "max_write_calls": 2, "max_high_risk_calls": 1}
    verdict = ask(policy_of(budgets=budgets), tool, history)
    assert verdict.rule == rule
    assert isinstance(verdict.refusal(), BudgetExhausted) is (rule is not None)


DAILY = {"name": "daily", "tools": ["issue_refund"], "max": 500, "amount": "amount"}


@pytest.mark.parametrize(
    ("amount", "used", "code"),
    [
        (500, "0", None),
        (500.01, "0", "budget_exhausted"),
        (0.1, "499.90", None),
        (0.1, "499.91", "budget_exhausted"),
        (0, "500", None),
        (-1, "0", "policy_blocked"),
        ("1", "0", "policy_blocked"),
        (True, "0", "policy_blocked"),
        (None, "0", "policy_blocked"),
        (1e-13, "0", "policy_blocked"),
        (1e16, "0", "policy_blocked"),
        (float("nan"), "0", "policy_blocked"),
    ],
)
def test_a_limit_counts_amounts_exactly(amount: Any, used: str, code: str | None):
    verdict = ask(
        policy_of(budgets={"limits": [DAILY]}), "issue_refund", spent(daily=used), amount=amount
    )
    assert verdict.code == code
    assert verdict.rule == (None if code is None else "budgets.limits.daily")


def test_a_limit_counts_the_calls_that_it_covers():
    limits = [
        {"name": "writes", "risk": "write", "max": 1},
        {"name": "all-calls", "max": 2},
    ]
    policy = policy_of(budgets={"limits": limits})
    history = spent(writes="1", all_calls="1")
    assert ask(policy, "lookup_order", history).decision is ALLOW
    assert ask(policy, "send_email", history).rule == "budgets.limits.writes"
    assert ask(policy, "lookup_order", spent(all_calls="2")).rule == "budgets.limits.all-calls"


# --- which part decides ---------------------------------------------------------------------------


def test_block_beats_needs_human_beats_allow():
    rules = [
        a_rule("always", name="ask", effect="needs_human"),
        a_rule("always", name="stop", when=[{"left": AMOUNT, "op": "gt", "right": const(5)}]),
    ]
    policy = policy_of(rules=rules)
    assert ask(policy, "issue_refund", amount=5).rule == "ask"
    assert ask(policy, "issue_refund", amount=6).rule == "stop"
    assert ask(policy, "send_email", amount=6).rule is None


def test_the_first_of_equally_grave_parts_is_named_and_budgets_come_before_rules():
    rules = [a_rule("always", name="one"), a_rule("always", name="two")]
    assert ask(policy_of(rules=rules), "issue_refund").rule == "one"
    spent_up = policy_of(rules=rules, budgets={"max_high_risk_calls": 0})
    assert ask(spent_up, "issue_refund").rule == "budgets.max_high_risk_calls"


def test_a_verdict_is_a_refusal_or_none():
    rules = [
        a_rule("always", name="stop"),
        a_rule("always", name="ask", tool="send_email", effect="needs_human"),
    ]
    policy = policy_of(rules=rules)
    stopped = ask(policy, "issue_refund").refusal()
    assert isinstance(stopped, PolicyBlocked)
    assert stopped.facts == {"rule": "stop", "policy": "refunds"}
    asked = ask(policy, "send_email").refusal()
    assert isinstance(asked, NeedsHuman)
    assert asked.retryable
    allowed = ask(policy, "lookup_order")
    assert (allowed.refusal(), allowed.code, allowed.message) == (None, None, "")


def test_a_call_is_decided_about_without_being_changed():
    arguments: Any = {"amount": [1, 2]}
    policy = with_rule(compare(AMOUNT, "contains", const(1)))
    decide(policy, Call("issue_refund", arguments), History())
    assert arguments == {"amount": [1, 2]}


# --- what a person can look into ------------------------------------------------------------------


def test_findings_tell_each_part_with_its_values():
    policy = policy_of(
        facts=[ORDER_TOTAL],
        budgets={"max_total_calls": 8, "limits": [DAILY]},
        rules=[
            a_rule("require_prior_call", name="look", prior_tool="lookup_order"),
            compare(AMOUNT, "gt", TOTAL, name="total"),
            a_rule(
                "always", name="huge", when=[{"left": AMOUNT, "op": "gt", "right": const(9000)}]
            ),
            a_rule("always", name="email", tool="send_email"),
        ],
    )
    history = after(policy, ("lookup_order", {"order_id": "A"}, {"total": 150}))
    verdict = ask(policy, "issue_refund", history, amount=200)
    assert [(found.rule, str(found)) for found in verdict.findings] == [
        ("budgets.max_total_calls", "does not fire: 1 of 8 calls are spent"),
        ("budgets.limits.daily", "does not fire: 0 of 500 are spent, this call costs 200"),
        ("look", "does not fire: lookup_order has succeeded 1 times"),
        ("total", "fires: amount = 200 gt order_total (from lookup_order) = 150 holds"),
        ("huge", "does not apply: amount = 200 gt 9000 does not hold"),
    ]
    told: Any = verdict.findings[3].to_json()
    assert told["comparison"] == {
        "left": {"source": "arg", "key": "amount", "value": 200},
        "op": "gt",
        "right": {
            "source": "fact",
            "key": "order_total",
            "from_tool": "lookup_order",
            "value": 150,
        },
        "outcome": "holds",
    }
    assert (told["rule"], told["applied"], told["fired"]) == ("total", True, True)
    assert verdict.findings[1].before == Decimal(0)


def test_findings_tell_of_several_tools():
    policy = policy_of(
        facts=[{**ORDER_TOTAL, "from_tool": ["lookup_order", "send_email"]}],
        rules=[
            a_rule("require_prior_call", name="look", prior_tool=["lookup_order", "send_email"]),
            a_rule("forbid_prior_call", name="once", prior_tool=["issue_refund", "lookup_order"]),
            compare(AMOUNT, "gt", TOTAL, name="total"),
        ],
    )
    tallies = {"lookup_order": Tally(3, 2), "send_email": Tally(1, 1), "issue_refund": Tally(1, 0)}
    verdict = ask(policy, "issue_refund", History(tallies), amount=1)
    assert [str(found) for found in verdict.findings] == [
        "does not fire: lookup_order or send_email has succeeded 3 times",
        "fires: issue_refund or lookup_order was called 4 times",
        "fires: amount = 1 gt order_total (from lookup_order or send_email) = null " + UNTOLD,
    ]
    told: Any = verdict.findings[2].to_json()
    assert told["comparison"]["right"]["from_tool"] == ["lookup_order", "send_email"]

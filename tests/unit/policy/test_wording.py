"""What a model is told: the rule and what to do, and no value that it does not know."""

from typing import Any

import pytest

from tests.policies import (
    AMOUNT,
    ORDER_TOTAL,
    TOTAL,
    a_rule,
    after,
    ask,
    compare,
    const,
    policy_of,
)

PER_ORDER = {**ORDER_TOTAL, "per": {"arg": "order_id"}}
DAILY = {"name": "daily", "tools": ["issue_refund"], "max": 500, "amount": "amount"}
OTHER = {"source": "arg", "key": "other"}
REFUSES = 'The rule "rule" refuses issue_refund: '
ASKS = 'The rule "rule" wants a person\'s approval for issue_refund.'


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (a_rule("always"), REFUSES + "it is not allowed."),
        (
            a_rule("always", effect="needs_human"),
            ASKS,
        ),
        (
            a_rule("always", message="ask the customer for a reason"),
            'The rule "rule" holds issue_refund back: ask the customer for a reason.',
        ),
        (
            a_rule("require_prior_call", prior_tool="send_email", effect="needs_human"),
            ASKS + " Or call send_email first.",
        ),
        (
            a_rule("forbid_prior_call", prior_tool="lookup_order"),
            REFUSES + "it is not allowed once lookup_order was called.",
        ),
        (
            a_rule("require_fact", fact="order_total", op="eq", value=1),
            REFUSES + "what lookup_order returned does not allow it.",
        ),
        (
            compare(AMOUNT, "gt", TOTAL),
            REFUSES + 'the argument "amount" does not fit what lookup_order returned.',
        ),
        (
            compare(AMOUNT, "gt", const(7)),
            REFUSES + 'the argument "amount" has a value that it does not let through.',
        ),
        (
            compare(AMOUNT, "starts_with", const("x")),
            REFUSES + 'the argument "amount" is not of the type that it takes.',
        ),
        (
            compare(OTHER, "eq", const("x")),
            REFUSES + 'give the argument "other".',
        ),
        (
            compare(OTHER, "not_exists"),
            REFUSES + 'give the argument "other".',
        ),
        (
            compare(OTHER, "eq", {**OTHER, "key": "third"}),
            REFUSES + 'give the arguments "other" and "third".',
        ),
        (
            compare(AMOUNT, "lt", {**AMOUNT, "key": "most"}),
            REFUSES + 'the arguments "amount" and "most" have values that it does not let through.',
        ),
        (
            compare(AMOUNT, "starts_with", {**AMOUNT, "key": "most"}),
            REFUSES + 'the arguments "amount" and "most" are not of the types that it takes.',
        ),
        (
            compare(AMOUNT, "eq", {**AMOUNT, "transform": ["text", "number"]}),
            REFUSES + 'the argument "amount" has a value that it does not let through.',
        ),
        (
            a_rule("require_prior_call", prior_tool=["send_email", "issue_refund"]),
            REFUSES + "call send_email or issue_refund first.",
        ),
        (
            a_rule("forbid_prior_call", prior_tool=["send_email", "lookup_order"]),
            REFUSES + "it is not allowed once send_email or lookup_order was called.",
        ),
        (
            compare(TOTAL, "gt", const(1)),
            REFUSES + "what lookup_order returned does not allow it.",
        ),
        (
            compare(const(1), "lt", const(2)),
            REFUSES + "it is not allowed.",
        ),
    ],
)
def test_a_message_names_the_rule_and_what_to_do(rule: Any, told: str):
    policy = policy_of(rules=[rule], facts=[ORDER_TOTAL])
    history = after(policy, ("lookup_order", {}, {"total": 12.75}))
    verdict = ask(policy, "issue_refund", history, amount=99.5, most=100)
    assert verdict.message == told


ORDER = {"order_id": "A"}
SEEN = ("lookup_order", ORDER, {"total": 5})
SILENT = ("lookup_order", ORDER, {})
EXISTS = a_rule("require_fact", fact="order_total", op="exists")
EQUALS = a_rule("require_fact", fact="order_total", op="eq", value=5)
HOLDS = 'The rule "rule" holds issue_refund back: no more than was paid. '
CALL_FIRST = "call lookup_order first, for this order_id."
HAS_NONE = "what lookup_order returned for this order_id has no order_total."


@pytest.mark.parametrize(
    ("rule", "calls", "told"),
    [
        (EXISTS, (), REFUSES + CALL_FIRST),
        (EQUALS, (), REFUSES + CALL_FIRST),
        (compare(TOTAL, "not_exists"), (), REFUSES + CALL_FIRST),
        (compare(AMOUNT, "gt", TOTAL), (), REFUSES + CALL_FIRST),
        (EXISTS, (SILENT,), REFUSES + HAS_NONE),
        (EQUALS, (SILENT,), REFUSES + HAS_NONE),
        (compare(AMOUNT, "gt", TOTAL), (SILENT,), REFUSES + HAS_NONE),
        (
            compare(AMOUNT, "gt", {**TOTAL, "transform": ["lower"]}),
            (SEEN,),
            REFUSES + HAS_NONE,
        ),
        ({**EXISTS, "effect": "needs_human"}, (), f"{ASKS} Or {CALL_FIRST}"),
        ({**EXISTS, "effect": "needs_human"}, (SILENT,), ASKS),
        (
            compare(AMOUNT, "gt", TOTAL, message="no more than was paid"),
            (),
            HOLDS + "Call lookup_order first, for this order_id.",
        ),
        (
            compare(AMOUNT, "gt", TOTAL, message="no more than was paid."),
            (SILENT,),
            HOLDS + "What lookup_order returned for this order_id has no order_total.",
        ),
        (
            compare(AMOUNT, "gt", TOTAL, message="no more than was paid", effect="needs_human"),
            (),
            HOLDS + "Or call lookup_order first, for this order_id.",
        ),
        (compare(AMOUNT, "gt", TOTAL, message="no more than was paid"), (SEEN,), HOLDS[:-1]),
        # Its own words say what to call.
        (
            a_rule(
                "require_prior_call", prior_tool="lookup_order", message="no more than was paid"
            ),
            (),
            HOLDS[:-1],
        ),
        # A "when" that cannot be told is no call to get around the rule.
        (
            a_rule("always", when=[{"left": TOTAL, "op": "gt", "right": const(1)}]),
            (),
            REFUSES + "it is not allowed.",
        ),
    ],
)
def test_of_a_fact_that_is_not_there_a_message_tells_what_is_missing(
    rule: Any, calls: Any, told: str
):
    policy = policy_of(rules=[rule], facts=[PER_ORDER])
    history = after(policy, *calls)
    assert ask(policy, "issue_refund", history, **ORDER, amount=99.5).message == told


def test_without_what_a_fact_is_kept_per_a_message_asks_for_that():
    policy = policy_of(rules=[EXISTS], facts=[PER_ORDER])
    assert ask(policy, "issue_refund").message == REFUSES + 'give the argument "order_id".'
    latest = {"name": "latest", "from_tool": "send_email", "path": "order_id"}
    by_latest: Any = {"for": {"source": "fact", "key": "latest"}}
    policy = policy_of(rules=[{**EXISTS, **by_latest}], facts=[PER_ORDER, latest])
    assert ask(policy, "issue_refund").message == REFUSES + "call send_email first."


def test_of_a_fact_from_several_tools_the_first_is_told_unless_it_is_the_call_itself():
    tools = ["lookup_order", "issue_refund"]
    rule = {**EXISTS, "tool": ["lookup_order", "issue_refund", "send_email"]}
    policy = policy_of(rules=[rule], facts=[{**ORDER_TOTAL, "from_tool": tools}])
    told = {tool: ask(policy, tool).message.partition(": ")[2] for tool in [*tools, "send_email"]}
    assert told == {
        "lookup_order": "call issue_refund first.",
        "issue_refund": "call lookup_order first.",
        "send_email": "call lookup_order first.",
    }
    silent = after(policy, ("issue_refund", {}, {}))
    assert ask(policy, "send_email", silent).message.endswith(
        ": what lookup_order or issue_refund returned has no order_total."
    )


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (
            {"budgets": {"max_total_calls": 0}},
            'The budget "max_total_calls" is spent: this run has no more such calls.',
        ),
        (
            {"budgets": {"limits": [{**DAILY, "per": "tenant", "window": "1d"}]}},
            'The budget "daily" has not enough left for this call of issue_refund until later.',
        ),
        (
            {"budgets": {"limits": [{**DAILY, "amount": "sum"}]}},
            (
                'The budget "daily" refuses issue_refund: '
                'give the argument "sum" as a number from 0 on.'
            ),
        ),
        (
            {"tools": {}},
            "The policy does not know the tool issue_refund, and refuses it.",
        ),
        (
            {"tools": {}, "defaults": {"unknown_tools": "needs_human"}},
            "The policy does not know the tool issue_refund: a person has to approve the call.",
        ),
    ],
)
def test_a_message_tells_of_a_budget_or_an_unknown_tool(parts: Any, told: str):
    assert ask(policy_of(**parts), "issue_refund", amount=501).message == told

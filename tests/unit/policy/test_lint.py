"""What can hardly be meant is told, with its place; what may be meant is not."""

from typing import Any

import pytest

from tallystick.policy import Policy
from tallystick.policy.lint import LintCode, Severity, lint
from tests.policies import (
    AMOUNT,
    ORDER_TOTAL,
    TOTAL,
    a_document,
    a_rule,
    compare,
    const,
    policy_of,
)

BUDGETS = {"max_total_calls": 9, "max_write_calls": 4, "max_high_risk_calls": 2}
NEEDS_LOOK = a_rule("require_prior_call", name="look", prior_tool="lookup_order")
READS_TOTAL = compare(AMOUNT, "gt", TOTAL, name="reads")
OVER = {"left": AMOUNT, "op": "gt", "right": const(10)}
UNDER = {"left": AMOUNT, "op": "lt", "right": const(5)}
LOWER = {**AMOUNT, "transform": ["lower"]}
ASK = {"effect": "needs_human"}
LOOK_OR_MAIL = ["lookup_order", "send_email"]


def needs(tool: Any, prior_tool: Any, **fields: Any) -> Any:
    return a_rule(
        "require_prior_call",
        name="-".join([*_listed(tool), *_listed(prior_tool)]),
        tool=tool,
        **{"prior_tool": prior_tool, **fields},
    )


def _listed(tools: Any) -> list[str]:
    return [tools] if isinstance(tools, str) else tools


def limit(**fields: Any) -> Any:
    return {"budgets": {**BUDGETS, "limits": [{"name": "a", "max": 5, **fields}]}}


# code, severity, pointer, parts of the policy
FOUND: list[tuple[str, str, str, dict[str, Any]]] = [
    ("undeclared_tool", "error", "/rules/0/tool", {"rules": [a_rule("always", tool="refund")]}),
    (
        "undeclared_tool",
        "error",
        "/rules/0/prior_tool",
        {"rules": [needs("issue_refund", "look_up_order")]},
    ),
    (
        "undeclared_tool",
        "error",
        "/facts/0/from_tool",
        {"facts": [{**ORDER_TOTAL, "from_tool": "lookup"}], "rules": [READS_TOTAL]},
    ),
    (
        "undeclared_tool",
        "error",
        "/facts/0/from_tool/1",
        {
            "facts": [{**ORDER_TOTAL, "from_tool": ["lookup_order", "lookup"]}],
            "rules": [READS_TOTAL],
        },
    ),
    (
        "undeclared_tool",
        "error",
        "/rules/0/tool/1",
        {"rules": [a_rule("always", tool=["issue_refund", "refund"])]},
    ),
    ("undeclared_tool", "error", "/budgets/limits/0/tools", limit(tools=["send_emails"])),
    (
        "repeated_tool",
        "warning",
        "/rules/0/tool/1",
        {"rules": [a_rule("always", tool=["issue_refund", "issue_refund"])]},
    ),
    (
        "repeated_tool",
        "warning",
        "/rules/0/prior_tool/2",
        {"rules": [needs("issue_refund", ["lookup_order", "send_email", "lookup_order"])]},
    ),
    (
        "repeated_tool",
        "warning",
        "/facts/0/from_tool/1",
        {
            "facts": [{**ORDER_TOTAL, "from_tool": ["lookup_order", "lookup_order"]}],
            "rules": [READS_TOTAL],
        },
    ),
    (
        "undeclared_tool",
        "warning",
        "/rules/0/tool",
        {"defaults": {"unknown_tools": "allow"}, "rules": [a_rule("always", tool="refund")]},
    ),
    ("unread_fact", "warning", "/facts/0", {"facts": [ORDER_TOTAL]}),
    (
        "fact_never_captured",
        "error",
        "/facts/0",
        {
            "facts": [ORDER_TOTAL],
            "rules": [READS_TOTAL, a_rule("always", name="stop", tool="lookup_order")],
        },
    ),
    (
        "fact_never_captured",
        "error",
        "/facts/0",
        {
            "facts": [{**ORDER_TOTAL, "from_tool": ["lookup_order", "send_email"]}],
            "rules": [READS_TOTAL, a_rule("always", name="stop", tool=LOOK_OR_MAIL)],
        },
    ),
    ("never_fires", "error", "/rules/0", {"rules": [compare(const(1), "gt", const(2))]}),
    ("never_fires", "error", "/rules/0", {"rules": [compare(const("a"), "not_exists")]}),
    (
        "never_fires",
        "error",
        "/rules/0/when/0",
        {"rules": [a_rule("always", when=[{**OVER, "left": const(1)}])]},
    ),
    (
        "never_fires",
        "error",
        "/rules/1",
        {
            "rules": [
                a_rule("always", name="stop", tool="send_email"),
                a_rule("forbid_prior_call", prior_tool="send_email"),
            ]
        },
    ),
    (
        "never_fires",
        "warning",
        "/budgets/max_high_risk_calls",
        {"tools": {"lookup_order": {"risk": "read"}}, "budgets": {"max_high_risk_calls": 1}},
    ),
    (
        "never_fires",
        "warning",
        "/budgets/limits/0",
        {"tools": {"lookup_order": {"risk": "read"}}, **limit(risk="write")},
    ),
    ("always_fires", "warning", "/rules/0", {"rules": [compare(const(2), "gt", const(1))]}),
    (
        "always_fires",
        "warning",
        "/rules/0/when/0",
        {"rules": [a_rule("always", when=[{**UNDER, "left": const(1)}])]},
    ),
    ("misfit_constant", "error", "/rules/0", {"rules": [compare(AMOUNT, "gt", const("100"))]}),
    ("misfit_constant", "error", "/rules/0", {"rules": [compare(AMOUNT, "in", const("EUR"))]}),
    (
        "misfit_constant",
        "error",
        "/rules/0",
        {"rules": [compare(AMOUNT, "starts_with", const(1), missing="pass")]},
    ),
    ("misfit_constant", "error", "/rules/0", {"rules": [compare(LOWER, "gt", const(5))]}),
    ("misfit_constant", "error", "/rules/0", {"rules": [compare(const(5), "contains", AMOUNT)]}),
    (
        "misfit_constant",
        "error",
        "/rules/0",
        {"rules": [compare({**AMOUNT, "key": "items[*].n"}, "eq", const(5))]},
    ),
    (
        "misfit_constant",
        "error",
        "/rules/0/when/0",
        {"rules": [a_rule("always", when=[{**OVER, "right": const(True)}])]},
    ),
    (
        "contradictory_conditions",
        "error",
        "/rules/0/when",
        {"rules": [a_rule("always", when=[OVER, UNDER])]},
    ),
    (
        "contradictory_rules",
        "error",
        "/rules/1",
        {
            "rules": [
                compare(AMOUNT, "gt", const(10), name="a"),
                compare(AMOUNT, "lte", const(10), name="b"),
            ]
        },
    ),
    (
        "contradictory_rules",
        "error",
        "/rules/1",
        {
            "facts": [ORDER_TOTAL],
            "rules": [
                a_rule("require_fact", name="a", fact="order_total", op="eq", value=1),
                a_rule("require_fact", name="b", fact="order_total", op="eq", value=2),
            ],
        },
    ),
    (
        "contradictory_rules",
        "error",
        "/rules/1",
        {
            "rules": [
                compare(AMOUNT, "gt", const(10), name="a"),
                compare(AMOUNT, "ne", const("all"), name="b"),
            ]
        },
    ),
    (
        "contradictory_rules",
        "error",
        "/rules/1",
        {
            "rules": [
                NEEDS_LOOK,
                a_rule("forbid_prior_call", name="not", prior_tool="lookup_order"),
            ]
        },
    ),
    (
        "contradictory_rules",
        "error",
        "/rules/1",
        {
            "rules": [
                a_rule("forbid_prior_call", name="not", prior_tool=LOOK_OR_MAIL),
                {**NEEDS_LOOK, "tool": ["issue_refund", "send_email"]},
            ]
        },
    ),
    (
        "contradictory_rules",
        "error",
        "/rules/1",
        {
            "rules": [
                compare(AMOUNT, "matches", const("^a"), name="a"),
                compare(AMOUNT, "not_matches", const("^a"), name="b"),
            ]
        },
    ),
    ("impossible_order", "error", "/rules/0", {"rules": [needs("send_email", "send_email")]}),
    (
        "impossible_order",
        "error",
        "/rules/0",
        {"rules": [needs(LOOK_OR_MAIL, LOOK_OR_MAIL)]},
    ),
    (
        "impossible_order",
        "error",
        "/rules/1",
        {
            "rules": [
                a_rule("always", name="stop", tool=LOOK_OR_MAIL),
                needs("issue_refund", LOOK_OR_MAIL),
            ]
        },
    ),
    (
        "impossible_order",
        "error",
        "/rules/1",
        {
            "rules": [
                needs("send_email", "issue_refund"),
                needs("issue_refund", "lookup_order"),
                needs("lookup_order", "send_email"),
            ]
        },
    ),
    (
        "impossible_order",
        "error",
        "/rules/0",
        {
            "facts": [ORDER_TOTAL],
            "rules": [compare(AMOUNT, "gt", TOTAL, tool="lookup_order")],
        },
    ),
    (
        "impossible_order",
        "error",
        "/rules/0",
        {
            "rules": [
                needs("issue_refund", "send_email"),
                a_rule("always", name="stop", tool="send_email"),
            ]
        },
    ),
    (
        "shadowed_rule",
        "warning",
        "/rules/0",
        {"rules": [NEEDS_LOOK, a_rule("always", name="stop")]},
    ),
    (
        "shadowed_rule",
        "warning",
        "/rules/1",
        {"rules": [NEEDS_LOOK, {**NEEDS_LOOK, "name": "again"}]},
    ),
    (
        "shadowed_rule",
        "warning",
        "/rules/0",
        {
            "rules": [
                NEEDS_LOOK,
                {**NEEDS_LOOK, "name": "again", "tool": ["send_email", "issue_refund"]},
            ]
        },
    ),
    (
        "shadowed_rule",
        "warning",
        "/rules/1",
        {"rules": [NEEDS_LOOK, {**NEEDS_LOOK, "name": "any", "prior_tool": LOOK_OR_MAIL}]},
    ),
    (
        "shadowed_rule",
        "warning",
        "/rules/0",
        {
            "rules": [
                a_rule("forbid_prior_call", name="one", prior_tool="issue_refund"),
                a_rule("forbid_prior_call", prior_tool=["send_email", "issue_refund"]),
            ]
        },
    ),
    (
        "shadowed_rule",
        "warning",
        "/rules/0",
        {
            "rules": [
                compare(AMOUNT, "gte", const(100), name="ask", **ASK),
                compare(AMOUNT, "gt", const(50), name="stop"),
            ]
        },
    ),
    ("zero_budget", "warning", "/budgets/max_write_calls", {"budgets": {"max_write_calls": 0}}),
    ("zero_budget", "warning", "/budgets/limits/0", limit(max=0)),
    (
        "loose_budget",
        "warning",
        "/budgets/max_write_calls",
        {"budgets": {"max_total_calls": 2, "max_write_calls": 3}},
    ),
    ("loose_budget", "warning", "/budgets/limits/0", limit(max=10)),
    ("loose_budget", "warning", "/budgets/limits/0", limit(per="tenant", slice=6)),
]


@pytest.mark.parametrize(("code", "severity", "pointer", "parts"), FOUND)
def test_what_can_hardly_be_meant_is_told(
    code: str, severity: str, pointer: str, parts: dict[str, Any]
):
    found = lint(policy_of(**parts))
    assert (code, severity, pointer) in [
        (each.code.value, each.severity.value, each.pointer) for each in found
    ], found


def test_every_code_has_a_case():
    assert {code for code, *_ in FOUND} == {code.value for code in LintCode}


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"budgets": BUDGETS},
        {"rules": [a_rule("always")]},
        {"rules": [NEEDS_LOOK], "defaults": {"unknown_tools": "needs_human"}},
        {"facts": [ORDER_TOTAL], "rules": [READS_TOTAL]},
        # At most once: it forbids what has come before.
        {"rules": [a_rule("forbid_prior_call", prior_tool="issue_refund")]},
        # One of several is enough, also where another one can never come first.
        {"rules": [needs("send_email", LOOK_OR_MAIL)]},
        {
            "rules": [
                needs("issue_refund", LOOK_OR_MAIL),
                a_rule("always", name="stop", tool="send_email"),
            ]
        },
        {
            "facts": [{**ORDER_TOTAL, "from_tool": ["issue_refund", "lookup_order"]}],
            "rules": [READS_TOTAL],
        },
        # It is about more tools than the other, or asks for fewer.
        {"rules": [NEEDS_LOOK, {**NEEDS_LOOK, "name": "more", "tool": "send_email"}]},
        {
            "rules": [
                a_rule("always", name="a", tool=["send_email", "issue_refund"], **ASK),
                a_rule("always", name="b", tool="send_email"),
            ]
        },
        {
            "rules": [
                {**NEEDS_LOOK, "prior_tool": LOOK_OR_MAIL},
                a_rule("forbid_prior_call", name="not", prior_tool="send_email"),
            ]
        },
        # True is not 1.
        {
            "rules": [
                compare(AMOUNT, "eq", const(True), name="a", missing="pass"),
                compare(AMOUNT, "eq", const(1), name="b", missing="pass"),
            ]
        },
        # A person may let through what no order allows.
        {"rules": [needs("send_email", "send_email", **ASK)]},
        {"rules": [needs("send_email", "issue_refund", when=[OVER]), NEEDS_LOOK]},
        # A fact that may be missing orders nothing.
        {
            "facts": [ORDER_TOTAL],
            "rules": [compare(AMOUNT, "gt", TOTAL, tool="lookup_order", missing="pass")],
        },
        {
            "facts": [ORDER_TOTAL],
            "rules": [
                a_rule("require_fact", tool="lookup_order", fact="order_total", op="not_exists")
            ],
        },
        # Ranges that leave something, and rules of which neither hides the other.
        {
            "rules": [
                compare(AMOUNT, "gt", const(10), name="a"),
                compare(AMOUNT, "lt", const(10), name="b"),
            ]
        },
        {
            "rules": [
                compare(AMOUNT, "gte", const(100), name="stop"),
                compare(AMOUNT, "gte", const(50), name="ask", **ASK),
            ]
        },
        {"rules": [a_rule("always", name="a", when=[OVER]), a_rule("always", name="b", **ASK)]},
        {"rules": [a_rule("always", when=[OVER, {**UNDER, "right": const(50)}])]},
        {"rules": [a_rule("always", when=[OVER, {**UNDER, "left": {**AMOUNT, "key": "tax"}}])]},
        {"rules": [compare(AMOUNT, "in", const([1, 2]))]},
        {"rules": [compare(AMOUNT, "eq", const(True))]},
        limit(per="tenant", max=5000),
        limit(amount="amount", max=5000, tools=["issue_refund"]),
    ],
)
def test_what_may_be_meant_is_not_told(parts: dict[str, Any]):
    assert lint(policy_of(**parts)) == ()


def test_a_finding_has_its_line_in_the_order_of_the_text():
    text = """\
version: "0.2"
id: odd
tools: {send_email: {risk: write}}
budgets:
  max_write_calls: 0
rules:
  - {name: a, type: always, tool: send_mail, effect: block}
  - {name: b, type: require_prior_call, tool: send_email, prior_tool: send_email, effect: block}
"""
    found = lint(Policy.parse(text))
    assert [each.to_json() for each in found] == [
        {
            "code": "zero_budget",
            "severity": "warning",
            "line": 5,
            "column": 20,
            "pointer": "/budgets/max_write_calls",
            "message": "it allows no such call at all",
        },
        {
            "code": "undeclared_tool",
            "severity": "error",
            "line": 7,
            "column": 35,
            "pointer": "/rules/0/tool",
            "message": 'the policy declares no tool "send_mail": did you mean "send_email"?',
        },
        {
            "code": "impossible_order",
            "severity": "error",
            "line": 8,
            "column": 5,
            "pointer": "/rules/1",
            "message": "it needs send_email before the first call of send_email",
        },
    ]


def test_a_value_without_a_text_has_no_lines():
    (finding,) = lint(Policy.of(a_document(facts=[ORDER_TOTAL])))
    assert (finding.mark, finding.severity) == (None, Severity.WARNING)


def test_messages_name_the_tools_of_lists():
    policy = policy_of(
        rules=[
            needs("issue_refund", LOOK_OR_MAIL),
            {**needs(LOOK_OR_MAIL, "issue_refund"), "name": "back"},
            a_rule("forbid_prior_call", name="not", tool=LOOK_OR_MAIL, prior_tool="issue_refund"),
        ]
    )
    assert [each.message for each in lint(policy)] == [
        "it needs lookup_order or send_email first, which in turn needs issue_refund first",
        "it needs issue_refund first, which in turn needs lookup_order or send_email first",
        "it never fires: issue_refund can never run",
        'together with the rule "back" it blocks every call of lookup_order and send_email',
    ]


def test_messages_name_what_is_in_the_way():
    policy = policy_of(
        rules=[
            needs("send_email", "issue_refund"),
            needs("issue_refund", "send_email"),
        ]
    )
    assert [each.message for each in lint(policy)] == [
        "it needs issue_refund first, which in turn needs send_email first",
        "it needs send_email first, which in turn needs issue_refund first",
    ]

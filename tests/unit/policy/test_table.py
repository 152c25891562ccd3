"""Tables of cases: read strictly, and told where a policy says something else."""

from decimal import Decimal
from typing import Any

import pytest

from tallystick.errors import InvalidPolicyTable, TooLarge
from tallystick.policy import Decision, Policy, Tally
from tallystick.policy.table import read_cases, read_history, run

POLICY = Policy.parse("""
version: "0.2"
id: shop
tools:
  look: {risk: read}
  pay: {risk: high_risk}
facts:
  - {name: total, from_tool: look, path: total, per: {arg: order}}
  - {name: mail, from_tool: look, path: mail}
budgets:
  max_high_risk_calls: 2
  limits:
    - {name: paid, tools: [pay], amount: amount, max: 100}
rules:
  - name: no-more-than-the-total
    type: compare
    tool: pay
    left: {source: arg, key: amount}
    op: gt
    right: {source: fact, key: total, for: {source: arg, key: order}}
    effect: block
""")
PAY = "{tool: pay, arguments: {order: O-1, amount: 5}}"


def case(expect="{decision: allow}", history="[]", call=PAY, name="it pays"):
    return f"- name: {name}\n  history: {history}\n  call: {call}\n  expect: {expect}\n"


def results(*cases):
    return run(POLICY, read_cases("".join(cases), POLICY))


def faults(text):
    with pytest.raises(InvalidPolicyTable) as caught:
        read_cases(text, POLICY)
    told: Any = caught.value.facts["faults"]
    return [(each["line"], each["column"], each["message"]) for each in told]


# what had happened, and what the policy says of a payment of 5 for O-1
@pytest.mark.parametrize(
    ("history", "decision", "rule"),
    [
        ("[]", "block", "no-more-than-the-total"),
        ("[{tool: look, arguments: {order: O-1}, result: {total: 5}}]", "allow", None),
        ("[{tool: look, arguments: {order: O-1}, result: {total: 4}}]", "block", None),
        ("[{tool: look, arguments: {order: O-2}, result: {total: 5}}]", "block", None),
        # A call that failed has no result, and one without a result gives no fact.
        ("[{tool: look, arguments: {order: O-1}, failed: true}]", "block", None),
        ("[{tool: look, arguments: {order: O-1}}]", "block", None),
        ("[{fact: total, for: O-1, value: 5}]", "allow", None),
        ("[{fact: total, for: O-2, value: 5}]", "block", "no-more-than-the-total"),
        ("[{fact: total, for: O-1, value: 5}, {limit: paid, spent: 95}]", "allow", None),
        ("[{limit: paid, spent: 95.01}]", "block", "budgets.limits.paid"),
        ("[{limit: paid, spent: 60}, {limit: paid, spent: 36}]", "block", "budgets.limits.paid"),
        # A budget counts dispatches, failed ones too.
        (f"[{PAY[:-1]}, failed: true, times: 2}}]", "block", "budgets.max_high_risk_calls"),
        (f"[{PAY[:-1]}, times: 0}}]", "block", "no-more-than-the-total"),
    ],
)
def test_a_case_tells_what_had_happened(history, decision, rule):
    [result] = results(case(f"{{decision: {decision}}}", history))
    assert result.passed
    assert result.verdict.decision is Decision(decision)
    if rule is not None:
        assert result.verdict.rule == rule


def test_what_comes_out_otherwise_is_told():
    [result] = results(case("{decision: allow, rule: other, code: needs_human}"))
    assert not result.passed
    assert [(each.what, each.expected, each.found) for each in result.mismatches] == [
        ("decision", "allow", "block"),
        ("rule", "other", "no-more-than-the-total"),
        ("code", "needs_human", "policy_blocked"),
    ]
    told = result.to_json()
    assert (told["name"], told["line"], told["passed"]) == ("it pays", 1, False)


def test_what_is_not_expected_is_not_compared():
    history = "[{fact: total, for: O-1, value: 5}]"
    first, second = results(
        case(history=history),
        case("{decision: allow, rule: some-rule}", history, name="another"),
    )
    assert first.passed
    assert [(each.what, each.found) for each in second.mismatches] == [("rule", None)]
    assert second.case.mark.line == 5


# a table, and each fault with its line and column
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (1, 1, "the document is empty")),
        ("{}", (1, 1, "a list belongs here, not a mapping")),
        ("[]", (1, 1, "a list of 1 to 2000 items belongs here")),
        ("- 1", (1, 3, "a mapping belongs here, not 1")),
        (case() + case(), (5, 3, 'a case called "it pays" is there already')),
        (case().replace("history", "histroy"), (2, 3, 'did you mean "history"?')),
        (case().replace("  expect: {decision: allow}\n", ""), (1, 3, '"expect" is missing')),
        (case("{decision: alow}"), (4, 22, 'did you mean "allow"?')),
        (case(call="{tool: pay, arguments: [1]}"), (3, 32, "a mapping belongs here, not a list")),
        (case(call="{tool: 'no tool'}"), (3, 16, "the name of a tool")),
        (case(history="[{fact: totl, value: 1}]"), (2, 20, 'did you mean "total"?')),
        (case(history="[{fact: total, value: 1}]"), (2, 13, 'say for which, with "for"')),
        (case(history="[{fact: mail, for: a, value: a}]"), (2, 31, "it is not kept per anything")),
        (case(history="[{fact: total, for: [], value: 1}]"), (2, 32, "a text, a number")),
        (case(history="[{limit: pad, spent: 1}]"), (2, 21, 'did you mean "paid"?')),
        (case(history="[{limit: paid, spent: -1}]"), (2, 34, "a number from 0")),
        (case(history="[{tool: look, failed: 1}]"), (2, 34, "true or false belongs here")),
        (
            case(history="[{tool: look, failed: true, result: {}}]"),
            (2, 48, "a call that failed has no result"),
        ),
        (case(history="[{tool: pay}]"), (2, 13, "this cannot have happened: ")),
        (case(history="[{tool: look, times: 1001}]"), (2, 33, "from 0 to 1000")),
        (case(call="&a {tool: pay}"), (3, 9, "an anchor")),
        (case() + "  name: again\n", (5, 3, "a key that the object has already")),
        ("- name: [", (1, 10, "not YAML")),
    ],
)
def test_a_fault_has_its_place(text, expected):
    line, column, message = expected
    found = faults(text)
    assert found
    assert (found[0][0], found[0][1]) == (line, column)
    assert message in found[0][2]


def test_all_faults_are_told_at_once():
    text = case("{decision: alow}") + case("{decision: blok}", name="two")
    assert [line for line, *_ in faults(text)] == [4, 8]


def test_a_table_has_a_greatest_length():
    with pytest.raises(TooLarge):
        read_cases("#" * (1024 * 1024 + 1), POLICY)


def test_a_history_is_read_by_itself():
    history = read_history(
        "- {tool: look, arguments: {order: O-1}, result: {total: 5, mail: a}}\n"
        "- {tool: pay, arguments: {order: O-1, amount: 2.5}, times: 2}\n",
        POLICY,
    )
    assert history.tallies == {"look": Tally(1, 1), "pay": Tally(2, 2)}
    assert history.facts == {("total", '"O-1"'): 5, ("mail", ""): "a"}
    assert history.spent == {"paid": Decimal(5)}
    with pytest.raises(InvalidPolicyTable):
        read_history("{}", POLICY)

"""Replay: a recorded run judged again; what the record does not have is said, and never guessed."""

import json
from typing import Any

import pytest

from tallystick.errors import InvalidTrace
from tallystick.policy import Decision, Policy
from tallystick.policy.replay import replay
from tallystick.policy.trace import read_calls

HIDDEN = {"x-redacted": True}
ALLOW, NEEDS_HUMAN, BLOCK = Decision.ALLOW, Decision.NEEDS_HUMAN, Decision.BLOCK


def a_policy(*rules, budgets="", per="{arg: order}"):
    text = f"""
version: "0.2"
id: shop
tools:
  look: {{risk: read}}
  note: {{risk: write}}
  pay: {{risk: high_risk}}
facts:
  - {{name: total, from_tool: look, path: total, per: {per}}}
  - {{name: mail, from_tool: look, path: mail}}
{budgets}
rules: [{", ".join(rules)}]
"""
    return Policy.parse(text)


WITHIN = """{name: within, type: compare, tool: pay, effect: block,
  left: {source: arg, key: amount}, op: gt,
  right: {source: fact, key: total, for: {source: arg, key: order}}}"""
LARGE = """{name: large, type: compare, tool: pay, effect: needs_human,
  left: {source: arg, key: amount}, op: gte, right: {source: const, value: 100}}"""
LOOKED = "{name: looked, type: require_prior_call, tool: pay, prior_tool: look, effect: block}"
MAILED = """{name: mailed, type: compare, tool: note, effect: block,
  left: {source: arg, key: to}, op: ne, right: {source: fact, key: mail}}"""
NO_PAY = "{name: no-pay, type: always, tool: pay, effect: block}"
NO_LOOK = "{name: no-look, type: always, tool: look, effect: block}"
MANY = "budgets: {max_total_calls: 2}"
LIMIT = "budgets: {limits: [{name: paid, tools: [pay], amount: amount, max: 100}]}"


def a_line(tool, arguments, decision="allow", gate=None, **members):
    line = {
        "at": "2026-11-30T10:00:00Z",
        "tool": tool,
        "arguments": arguments,
        "decision": decision,
        "gate": gate,
        "code": "ok" if gate is None else members.pop("code", "policy_blocked"),
        "true_code": "ok" if gate is None else "policy_blocked",
        "rule": None,
        "message": "",
        **members,
    }
    return line if gate else {"result": {}, **line}


def look(order: Any = "O-1", total=50, **members):
    result = members.pop("result", {"total": total, "mail": "ada@shop.example"})
    return a_line("look", {"order": order}, result=result, **members)


def pay(amount: Any = 42, order="O-1", **members):
    return a_line("pay", {"order": order, "amount": amount}, **members)


def refused_pay(amount=42, **members):
    return pay(amount, decision="block", gate="policy", **members)


def note(to: Any = "ada@shop.example", **members):
    return a_line("note", {"to": to}, **members)


def again(policy, *lines):
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    return replay(policy, read_calls(text))


def decisions(policy, *lines):
    return [each.decision for each in again(policy, *lines)]


def test_the_same_policy_says_the_same():
    told = again(a_policy(WITHIN, LOOKED), look(), pay(), refused_pay(60))
    assert [each.decision for each in told] == [ALLOW, ALLOW, BLOCK]
    assert not any(each.is_changed for each in told)
    assert all(each.is_known for each in told)


def test_a_stricter_policy_holds_back_what_ran():
    _, paid = again(a_policy(WITHIN, LARGE), look(total=150), pay(120))
    assert (paid.decision, paid.rule, paid.code) == (NEEDS_HUMAN, "large", "needs_human")
    assert paid.is_changed
    assert paid.message == 'The rule "large" wants a person\'s approval for pay.'


def test_a_laxer_policy_lets_pass_what_was_refused():
    [paid] = again(a_policy(), refused_pay())
    assert (paid.decision, paid.is_changed, paid.is_known) == (ALLOW, True, True)


def test_facts_are_captured_anew():
    # The record knows nothing of facts, but has the results that they are in.
    policy = a_policy(WITHIN)
    assert decisions(policy, look(total=50), pay(50)) == [ALLOW, ALLOW]
    assert decisions(policy, look(total=50), pay(51)) == [ALLOW, BLOCK]
    assert decisions(policy, look("O-2", total=50), pay(42, "O-1")) == [ALLOW, BLOCK]


def test_what_the_policy_holds_back_has_never_been():
    policy = a_policy(NO_LOOK, LOOKED)
    assert decisions(policy, look(), pay()) == [BLOCK, BLOCK]


def test_what_failed_has_no_result():
    failed = a_line("look", {"order": "O-1"}, gate="service", code="service_timeout")
    assert decisions(a_policy(LOOKED), failed, pay()) == [ALLOW, BLOCK]


def test_a_result_that_broke_its_contract_vouches_for_nothing():
    # It was a call of the tool all the same.
    broken = look(true_code="invalid_result")
    policy = a_policy(LOOKED, WITHIN)
    assert [each.rule for each in again(policy, broken, pay())] == [None, "within"]


def test_what_was_not_tried_again_has_not_run():
    unsettled = pay(decision="block", gate="service", code="effect_not_retryable")
    [told] = again(a_policy(), unsettled)
    assert not told.recorded.ran


def test_budgets_count_what_is_let_through_now():
    policy = a_policy(NO_LOOK, budgets=MANY)
    assert decisions(policy, look(), note(), note(), note()) == [BLOCK, ALLOW, ALLOW, BLOCK]
    assert decisions(a_policy(budgets=LIMIT), pay(60), pay(40), pay(1)) == [ALLOW, ALLOW, BLOCK]


def test_each_run_of_a_trace_has_a_history_of_its_own():
    policy = a_policy(LOOKED, budgets=MANY)
    lines = [look(run="a"), look(run="b"), pay(run="a"), pay(run="b")]
    assert decisions(policy, *lines, pay(run="c")) == [ALLOW, ALLOW, ALLOW, ALLOW, BLOCK]


# --- what the record does not have ----------------------------------------------------------------


def test_a_call_that_never_ran_has_no_result():
    never = look(decision="block", gate="policy")
    first, paid = again(a_policy(WITHIN), never, pay())
    assert (first.decision, first.is_changed) == (ALLOW, True)
    assert (paid.decision, paid.is_changed, paid.is_known) == (None, True, False)
    assert paid.message == (
        'The record does not tell for "within": call 1 (look) has no result, for it never ran.'
    )
    # Nor does it tell whether it would have succeeded.
    _, paid = again(a_policy(LOOKED), never, pay())
    assert paid.decision is None


def test_what_does_not_hang_on_it_is_known():
    never = look(decision="block", gate="policy")
    assert decisions(a_policy(WITHIN), never, note()) == [ALLOW, ALLOW]
    # A rule that blocks for sure leaves nothing open.
    assert decisions(a_policy(WITHIN, NO_PAY), never, pay()) == [ALLOW, BLOCK]
    # A later look-up that ran is one.
    assert decisions(a_policy(LOOKED), never, look(), pay()) == [ALLOW, ALLOW, ALLOW]


def test_a_redacted_result_is_not_known():
    hidden = look(result={"total": HIDDEN, "mail": "ada@shop.example"})
    _, paid, noted = again(a_policy(WITHIN, MAILED), hidden, pay(), note())
    assert (paid.decision, noted.decision) == (None, ALLOW)
    assert paid.message.endswith("the record of look is redacted.")


def test_what_is_inside_of_something_redacted_is_not_known():
    policy = a_policy(MAILED)
    assert decisions(policy, look(result=HIDDEN), note()) == [ALLOW, None]
    # Until another result has it.
    assert decisions(policy, look(result=HIDDEN), look(), note()) == [ALLOW, ALLOW, ALLOW]


def test_redacted_arguments_are_not_known():
    _, paid = again(a_policy(WITHIN), look(), pay(amount=HIDDEN))
    assert paid.decision is None
    assert "its arguments are redacted" in paid.message
    _, noted = again(a_policy(MAILED), look(), note(to=HIDDEN))
    assert noted.decision is None


def test_a_redacted_key_hides_the_fact():
    assert decisions(a_policy(WITHIN), look(HIDDEN), pay()) == [ALLOW, None]


def test_a_redacted_amount_hides_what_is_left():
    told = again(a_policy(budgets=LIMIT), pay(amount=HIDDEN), pay(1))
    assert [each.decision for each in told] == [None, None]
    assert told[1].message.startswith('The record does not tell for "budgets.limits.paid": ')


def test_what_perhaps_ran_perhaps_has_spent():
    policy = a_policy(MAILED, budgets=MANY)
    lines = [look(result=HIDDEN), note(), note(), note()]
    # The second is not known, so that perhaps there is room for one more.
    assert decisions(policy, *lines) == [ALLOW, None, None, None]


def test_a_persons_word_is_in_the_record():
    policy = a_policy(
        LARGE, "{name: once, type: forbid_prior_call, tool: note, prior_tool: pay, effect: block}"
    )
    approved = pay(120, decision="needs_human", approved_by="grace")
    held = pay(120, decision="needs_human", gate="policy", code="needs_human")
    assert decisions(policy, approved, note()) == [NEEDS_HUMAN, BLOCK]
    assert decisions(policy, held, note()) == [NEEDS_HUMAN, ALLOW]
    # Nobody was asked about this one.
    assert decisions(policy, pay(120), note()) == [NEEDS_HUMAN, None]


@pytest.mark.parametrize("gate", ["contract", "arguments", "permission"])
def test_what_an_earlier_gate_refuses_stays_refused(gate):
    line = pay(decision="block", gate=gate)
    if gate == "contract":
        line["arguments"] = None
    [told] = again(a_policy(), line)
    assert (told.decision, told.is_changed, told.is_known) == (None, False, True)
    assert told.message == f"The gate of the {gate} refuses it, whatever the policy says."


def test_a_resolution_is_no_call_of_a_tool():
    ending = a_line("finish", {"text": "done"}, ends_run=True)
    looked, ended, paid = again(a_policy(LOOKED, budgets=MANY), look(), ending, pay())
    assert [each.decision for each in (looked, ended, paid)] == [ALLOW, None, ALLOW]
    assert (ended.is_changed, ended.is_known) == (False, True)
    assert ended.message.startswith("It ends the run: ")


def test_a_proposed_call_has_a_persons_word():
    once = "{name: once, type: forbid_prior_call, tool: note, prior_tool: pay, effect: block}"
    executed = pay(120, approved_by="grace")
    assert decisions(a_policy(LARGE, once), executed, note()) == [NEEDS_HUMAN, BLOCK]


# --- the trace ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 2 is none of a trace: "),
        ("[]", "it is not an object"),
        ('{"tool": "a"}', "it has no decision"),
        ('{"decision": "maybe"}', "it has no decision"),
        ('{"decision": "allow", "gate": "garden"}', "it has no such gate"),
        ('{"decision": "allow", "tool": "a"}', "it names no tool with its arguments"),
        ('{"decision": "allow", "tool": 1, "arguments": {}}', "it names no tool"),
        ('{"decision": "allow", "tool": "a", "arguments": {}, "rule": 1}', '"rule" is not a text'),
        ('{"decision": "allow", "tool": "a", "tool": "b"}', "line 2"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_line(line, told):
    calls = read_calls(f"{json.dumps(look())}\n{line}\n")
    assert next(calls).call.tool == "look"
    with pytest.raises(InvalidTrace) as caught:
        next(calls)
    assert told in caught.value.detail
    assert caught.value.facts == {"line": 2}


def test_members_of_tomorrow_are_no_matter():
    [call] = read_calls(json.dumps({**look(), "weather": "fine"}))
    assert call.succeeded


def test_what_the_runtime_itself_looked_up_is_no_call_of_the_run():
    looked_up = a_line("look", {"order": "O-1"}, asked_for="pay")
    calls = list(read_calls("\n".join(map(json.dumps, (looked_up, pay())))))
    assert [each.call.tool for each in calls] == ["pay"]


def test_a_result_that_was_withheld_has_cost_its_budget_and_vouches_for_nothing():
    withheld = a_line("look", {"order": "O-2"}, gate="permission", code="not_found")
    refused = a_line("look", {"order": "O-2"}, "block", "permission", code="not_found")
    (call, early) = read_calls("\n".join(map(json.dumps, (withheld, refused))))
    assert (call.ran, call.succeeded, call.outcome) == (True, False, BLOCK)
    assert (early.ran, early.reached_policy, early.outcome) == (False, False, BLOCK)

    assert decisions(a_policy(LOOKED), withheld, pay()) == [ALLOW, BLOCK]
    assert decisions(a_policy(budgets=MANY), withheld, look(), look()) == [ALLOW, ALLOW, BLOCK]
    assert decisions(a_policy(budgets=MANY), refused, look(), look()) == [None, ALLOW, ALLOW]

"""Whether a call may run: one pure decision over a policy, a call and a history.

Every part of the policy is asked, and the gravest answer wins: BLOCK over NEEDS_HUMAN over ALLOW.
What cannot be told, because a value is not there or is of another type, is told against the call.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from tallystick.canonical import Json
from tallystick.errors import BudgetExhausted, NeedsHuman, PolicyBlocked, Refusal
from tallystick.policy.call import Call
from tallystick.policy.facts import key_text
from tallystick.policy.finding import UNKNOWN_TOOLS, Absence, Comparison, Finding, Outcome
from tallystick.policy.history import History
from tallystick.policy.limits import limits_of, units_of
from tallystick.policy.policy import Policy
from tallystick.policy.terms import (
    Condition,
    Decision,
    Operand,
    Risk,
    Rule,
    RuleType,
    Source,
)
from tallystick.policy.transformations import transformed
from tallystick.policy.wording import sentence_for

__all__ = ["Decision", "Verdict", "decide"]

_REFUSALS: Final = {leaf.code: leaf for leaf in (PolicyBlocked, BudgetExhausted, NeedsHuman)}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a policy says of a call.

    Args:
        decision: What becomes of the call.
        code: The code of its refusal; None if it may run.
        rule: The part of the policy that decided: a rule's name, or the place of a budget or
            default in the document, with dots; None if none did.
        message: What the model is told; empty if the call may run.
        policy: The policy's id.
        findings: What each part that is about such calls had to say, for people.
    """

    decision: Decision
    code: str | None
    rule: str | None
    message: str
    policy: str
    findings: tuple[Finding, ...]

    def refusal(self) -> Refusal | None:
        """Return the error that says so; None if the call may run."""
        if self.code is None:
            return None
        return _REFUSALS[self.code](self.message, facts={"rule": self.rule, "policy": self.policy})


def decide(policy: Policy, call: Call, history: History) -> Verdict:
    """Decide about a call.

    Args:
        policy: The policy in force.
        call: The call, its arguments already held to its contract.
        history: What has happened in its run.
    """
    findings = (
        *_unknown_tool(policy, call),
        *_call_budgets(policy, call, history),
        *_limits(policy, call, history),
        *_rules(policy, call, history),
    )
    decisive: Finding | None = None
    for finding in findings:
        if finding.fired:
            if finding.effect is Decision.BLOCK:
                decisive = finding
                break
            decisive = decisive or finding
    if decisive is None:
        return Verdict(Decision.ALLOW, None, None, "", policy.id, findings)
    return Verdict(
        decision=decisive.effect,
        code=decisive.code,
        rule=decisive.rule,
        message=sentence_for(decisive, call.tool),
        policy=policy.id,
        findings=findings,
    )


def _unknown_tool(policy: Policy, call: Call) -> Iterator[Finding]:
    if policy.risk_of(call.tool) is None:
        effect = policy.unknown_tools
        yield Finding(UNKNOWN_TOOLS, effect, None, applied=True, fired=effect is not Decision.ALLOW)


def _call_budgets(policy: Policy, call: Call, history: History) -> Iterator[Finding]:
    if not policy.budgets:
        return
    rank = policy.counted_risk_of(call.tool).rank
    made = [0] * len(Risk)
    for tool, tally in history.tallies.items():
        made[policy.counted_risk_of(tool).rank] += tally.dispatched
    for budget in policy.budgets:
        if rank >= budget.risk.rank:
            rule, spent = f"budgets.{budget.name}", sum(made[budget.risk.rank :])
            fired = spent >= budget.max
            yield Finding(rule, Decision.BLOCK, budget, True, fired, before=spent, units=1)  # noqa: FBT003


def _limits(policy: Policy, call: Call, history: History) -> Iterator[Finding]:
    for limit in limits_of(policy, call.tool):
        units = units_of(limit, call)
        spent = history.spent.get(limit.name, Decimal(0))
        yield Finding(
            f"budgets.limits.{limit.name}",
            Decision.BLOCK,
            limit,
            applied=True,
            fired=units is None or spent + units > limit.max,
            before=spent,
            units=units,
        )


def _rules(policy: Policy, call: Call, history: History) -> Iterator[Finding]:
    rules = policy.rules_of(call.tool)
    if rules:
        arguments = dict(call.arguments)
        for rule in rules:
            yield _judged(rule, arguments, history)


def _judged(rule: Rule, arguments: dict[str, Json], history: History) -> Finding:
    when: tuple[Comparison, ...] = ()
    for condition in rule.when:
        compared = _compared(condition, arguments, history)
        when = (*when, compared)
        if not _is_taken_to_hold(compared):
            return Finding(rule.name, rule.effect, rule, applied=False, fired=False, when=when)
    comparison: Comparison | None = None
    before: int | None = None
    if rule.condition is not None:
        comparison = _compared(rule.condition, arguments, history)
        fired = (
            comparison.outcome is not Outcome.HOLDS
            if rule.type is RuleType.REQUIRE_FACT
            else _is_taken_to_hold(comparison)
        )
    elif rule.type is RuleType.ALWAYS:
        fired = True
    else:
        is_forbidden = rule.type is RuleType.FORBID_PRIOR_CALL
        before = 0
        for tool in rule.prior_tools:
            before += _calls(tool, history, of_any_outcome=is_forbidden)
        fired = (before > 0) is is_forbidden
    return Finding(rule.name, rule.effect, rule, True, fired, comparison, when, before)  # noqa: FBT003


def _calls(tool: str, history: History, *, of_any_outcome: bool) -> int:
    """Return how many prior calls of a tool count.

    What must have come before has succeeded. What must not have come before has not even been
    tried: nobody knows what a call did that never answered.
    """
    tally = history.tallies.get(tool)
    if tally is None:
        return 0
    # Of a history that was told in parts, successes may be all that is known.
    return max(tally.dispatched, tally.succeeded) if of_any_outcome else tally.succeeded


def _is_taken_to_hold(comparison: Comparison) -> bool:
    outcome = comparison.outcome
    if outcome is Outcome.HOLDS or outcome is Outcome.FAILS:
        return outcome is Outcome.HOLDS
    return not comparison.condition.missing_passes


def _compared(condition: Condition, arguments: dict[str, Json], history: History) -> Comparison:
    left = _value(condition.left, arguments, history)
    right = _value(condition.right, arguments, history)
    law = condition.law
    if law.fits(left, right):
        outcome = Outcome.HOLDS if law.holds(left, right) else Outcome.FAILS
    else:
        outcome = Outcome.ABSENT if left is None or right is None else Outcome.MISFIT
    absent: tuple[Absence, ...] = ()
    if left is None or right is None:
        absent = tuple(
            _absence(operand, arguments, history)
            for operand, value in ((condition.left, left), (condition.right, right))
            if value is None and operand.source is not Source.CONST
        )
    return Comparison(condition, outcome, left, right, absent)


def _value(operand: Operand, arguments: dict[str, Json], history: History) -> Json:
    if operand.source is Source.CONST:
        return operand.value
    if operand.path is not None:
        value = operand.path.find(arguments)
    else:
        key = _key(operand, arguments, history)
        value = None if key is None else history.facts.get((operand.key, key))
    return transformed(value, operand.transform) if operand.transform else value


def _key(operand: Operand, arguments: dict[str, Json], history: History) -> str | None:
    selector = operand.selector
    return "" if selector is None else key_text(_value(selector, arguments, history))


def _absence(operand: Operand, arguments: dict[str, Json], history: History) -> Absence:
    if operand.source is Source.ARG:
        return Absence(operand, was_read=False)
    key = _key(operand, arguments, history)
    if key is None and operand.selector is not None:
        return _absence(operand.selector, arguments, history)
    return Absence(operand, was_read=(operand.key, key) in history.facts)

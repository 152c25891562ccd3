"""Budgets that allow nothing, or that nothing can spend."""

from collections.abc import Iterator
from decimal import Decimal

from tallystick.canonical import pointer_join
from tallystick.policy.linting.lint_finding import LintCode, LintFinding, warning_at
from tallystick.policy.policy import Policy
from tallystick.policy.terms import CallBudget, Decision, Limit, Risk


def budget_findings(policy: Policy) -> Iterator[LintFinding]:
    """Tell which budgets can hardly be meant."""
    for budget in policy.budgets:
        for code, message in _of_call_budget(policy, budget):
            yield warning_at(policy, pointer_join("budgets", budget.name), code, message)
    for index, limit in enumerate(policy.limits):
        for code, message in _of_limit(policy, limit):
            yield warning_at(policy, pointer_join("budgets", "limits", index), code, message)


def _of_call_budget(policy: Policy, budget: CallBudget) -> Iterator[tuple[LintCode, str]]:
    if budget.max == 0:
        yield LintCode.ZERO_BUDGET, "it allows no such call at all"
    rank = budget.risk.rank
    for wider in policy.budgets:
        if wider.risk.rank < rank and wider.max < budget.max:
            yield LintCode.LOOSE_BUDGET, f'it is never spent: "{wider.name}" is smaller'
    has_such = any(risk.rank >= rank for risk in policy.tools.values())
    if not has_such and policy.unknown_tools is Decision.BLOCK:
        yield LintCode.NEVER_FIRES, f"no tool has the risk {budget.risk.value}"


def _of_limit(policy: Policy, limit: Limit) -> Iterator[tuple[LintCode, str]]:
    if limit.max == 0:
        yield LintCode.ZERO_BUDGET, "it allows nothing at all"
    elif limit.slice > limit.max:
        yield LintCode.LOOSE_BUDGET, "its slice is larger than the whole"
    if limit.amount is None and limit.per == "run":
        for wider in policy.budgets:
            if wider.risk is Risk.READ and Decimal(wider.max) < limit.max:
                yield LintCode.LOOSE_BUDGET, f'it is never spent: "{wider.name}" is smaller'
    counts = any(limit.covers(tool, risk) for tool, risk in policy.tools.items())
    # Of a tool that is not declared, that alone is told.
    if not counts and not limit.tools and policy.unknown_tools is Decision.BLOCK:
        yield LintCode.NEVER_FIRES, "it counts no call of any tool"

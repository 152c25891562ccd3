"""Comparisons whose outcome no call changes."""

from collections.abc import Iterator

from tallystick.canonical import pointer_join
from tallystick.policy.linting.lint_finding import LintCode, LintFinding, error_at, warning_at
from tallystick.policy.linting.values import bound_of, can_all_hold, fits_nothing
from tallystick.policy.operators import ALONE, LAWS
from tallystick.policy.policy import Policy
from tallystick.policy.terms import Condition, Decision, Rule, RuleType, Source


def constant_findings(policy: Policy) -> Iterator[LintFinding]:
    """Tell which comparisons always come to the same."""
    for rule in policy.rules:
        pointer = pointer_join("rules", rule.index)
        yield from _of_condition(policy, rule, pointer)
        for index, condition in enumerate(rule.when):
            yield from _of_when(policy, condition, f"{pointer}/when/{index}")
        if _contradict(rule.when):
            message = "no value meets its conditions together"
            place = f"{pointer}/when"
            yield error_at(policy, place, LintCode.CONTRADICTORY_CONDITIONS, message)


def outcome_of(rule: Rule) -> bool | None:
    """Return whether a rule fires for each call to which it applies; None if calls differ."""
    if rule.type is RuleType.ALWAYS:
        return True
    if rule.condition is None:
        return None
    if rule.type is RuleType.REQUIRE_FACT and fits_nothing(rule.condition):
        return True
    holds = _truth(rule.condition)
    return not holds if rule.type is RuleType.REQUIRE_FACT and holds is not None else holds


def blocks_all(rule: Rule) -> bool:
    """Return whether a rule by itself blocks every call of its tool."""
    return rule.effect is Decision.BLOCK and not rule.when and outcome_of(rule) is True


def _truth(condition: Condition) -> bool | None:
    """Return what a condition is taken to be for every call; None if calls differ."""
    if fits_nothing(condition):
        return not condition.missing_passes
    left, right = condition.left, condition.right
    if left.source is Source.CONST and condition.operator in ALONE:
        return LAWS[condition.operator].holds(left.value, None)
    if left.source is right.source is Source.CONST:
        return LAWS[condition.operator].holds(left.value, right.value)
    return None


def _of_condition(policy: Policy, rule: Rule, pointer: str) -> Iterator[LintFinding]:
    condition = rule.condition
    if condition is None:
        return
    outcome = outcome_of(rule)
    fires = "fires" if outcome else "never fires"
    if fits_nothing(condition):
        message = f"{_misfit(condition)}: the rule {fires}"
        yield error_at(policy, pointer, LintCode.MISFIT_CONSTANT, message)
    elif outcome is True:
        message = 'it fires for every call: if that is meant, say "type: always"'
        yield warning_at(policy, pointer, LintCode.ALWAYS_FIRES, message)
    elif outcome is False:
        message = "it never fires: what it compares is the same for every call"
        yield error_at(policy, pointer, LintCode.NEVER_FIRES, message)


def _of_when(policy: Policy, condition: Condition, pointer: str) -> Iterator[LintFinding]:
    truth = _truth(condition)
    if fits_nothing(condition):
        yield error_at(policy, pointer, LintCode.MISFIT_CONSTANT, _misfit(condition))
    elif truth is False:
        message = "the condition never holds, so that the rule never applies"
        yield error_at(policy, pointer, LintCode.NEVER_FIRES, message)
    elif truth is True:
        message = "the condition always holds"
        yield warning_at(policy, pointer, LintCode.ALWAYS_FIRES, message)


def _misfit(condition: Condition) -> str:
    return f'"{condition.operator.value}" does not compare values of these types'


def _contradict(conditions: tuple[Condition, ...]) -> bool:
    found = [bound for bound in map(bound_of, conditions) if bound is not None]
    return any(
        not can_all_hold(bound for operand, bound in found if operand == each) for each, _ in found
    )

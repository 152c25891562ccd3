"""Rules that stand in one another's way: one hides the other, or both together leave nothing."""

from collections.abc import Iterator
from itertools import combinations

from tallystick.canonical import pointer_join
from tallystick.policy.linting.lint_finding import LintCode, LintFinding, error_at, warning_at
from tallystick.policy.linting.outcomes import outcome_of
from tallystick.policy.linting.values import Bound, bound_of, can_all_hold, negated
from tallystick.policy.operators import ORDERED
from tallystick.policy.policy import Policy
from tallystick.policy.terms import SEVERITY, Decision, Operand, Rule, RuleType


def overlap_findings(policy: Policy) -> Iterator[LintFinding]:
    """Tell which rules of one tool stand in one another's way."""
    for rule in policy.rules:
        rivals = policy.rules_of(rule.tools[0])
        hiding = next((other for other in rivals if _hides(other, rule)), None)
        if hiding is not None:
            message = f'the rule "{hiding.name}" stops all that this one would stop'
            place = pointer_join("rules", rule.index)
            yield warning_at(policy, place, LintCode.SHADOWED_RULE, message)
    for one, other in combinations(policy.rules, 2):
        if _leave_nothing(one, other):
            shared = " and ".join(sorted(set(one.tools) & set(other.tools)))
            message = f'together with the rule "{one.name}" it blocks every call of {shared}'
            place = pointer_join("rules", other.index)
            yield error_at(policy, place, LintCode.CONTRADICTORY_RULES, message)


def _hides(other: Rule, rule: Rule) -> bool:
    """Return whether one rule fires, as gravely, wherever another does."""
    if other is rule or SEVERITY[other.effect] < SEVERITY[rule.effect]:
        return False
    if not _fires_with(other, rule):
        return False
    # Of two that fire alike, one hides the other: the first, or the graver one.
    is_mutual = SEVERITY[other.effect] == SEVERITY[rule.effect] and _fires_with(rule, other)
    return not is_mutual or other.index < rule.index


def _fires_with(other: Rule, rule: Rule) -> bool:
    """Return whether one rule surely fires wherever another does."""
    if not set(rule.tools) <= set(other.tools):
        return False
    if other.when and not _is_same(other.when, rule.when):
        return False
    if outcome_of(other) is True:
        return True
    if outcome_of(rule) is not None or other.type is not rule.type:
        return False
    match rule.type:
        case RuleType.REQUIRE_PRIOR_CALL:
            return set(other.prior_tools) <= set(rule.prior_tools)
        case RuleType.FORBID_PRIOR_CALL:
            return set(other.prior_tools) >= set(rule.prior_tools)
        case _:
            return _is_same(other.condition, rule.condition) or _fires_above(other, rule)


def _is_same(one: object, other: object) -> bool:
    # To Python, the constants true and 1 are equal.
    return one == other and repr(one) == repr(other)


def _fires_above(other: Rule, rule: Rule) -> bool:
    if other.type is not RuleType.COMPARE or other.condition is None or rule.condition is None:
        return False
    wide, narrow = bound_of(other.condition), bound_of(rule.condition)
    if wide is None or narrow is None or wide[0] != narrow[0]:
        return False
    if other.condition.missing_passes and not rule.condition.missing_passes:
        return False
    if not {wide[1].operator, narrow[1].operator} <= ORDERED:
        return False
    outside = negated(wide[1])
    return outside is not None and not can_all_hold((narrow[1], outside))


def _leave_nothing(one: Rule, other: Rule) -> bool:
    """Return whether two rules, of which neither blocks all, together do."""
    if any(rule.when or rule.effect is not Decision.BLOCK for rule in (one, other)):
        return False
    if set(one.tools).isdisjoint(other.tools):
        return False
    match (one.type, other.type):
        case (RuleType.REQUIRE_PRIOR_CALL, RuleType.FORBID_PRIOR_CALL):
            return set(one.prior_tools) <= set(other.prior_tools)
        case (RuleType.FORBID_PRIOR_CALL, RuleType.REQUIRE_PRIOR_CALL):
            return set(other.prior_tools) <= set(one.prior_tools)
        case _:
            pass
    first, second = _left_over(one), _left_over(other)
    if first is None or second is None or first[0] != second[0]:
        return False
    each = (first[1], second[1])
    return not can_all_hold(each) and all(can_all_hold([bound]) for bound in each)


def _left_over(rule: Rule) -> tuple[Operand, Bound] | None:
    """Return what a rule leaves to the calls that it does not stop, if that is one bound."""
    if rule.condition is None or rule.condition.missing_passes or outcome_of(rule) is not None:
        return None
    found = bound_of(rule.condition)
    if found is None or rule.type is RuleType.REQUIRE_FACT:
        return found
    outside = negated(found[1])
    return None if outside is None else (found[0], outside)

"""Orders of calls that no run can have."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from tallystick.canonical import pointer_join
from tallystick.policy.linting.lint_finding import LintCode, LintFinding, error_at
from tallystick.policy.linting.outcomes import blocks_all
from tallystick.policy.operators import Operator
from tallystick.policy.policy import Policy
from tallystick.policy.terms import Decision, Rule, RuleType, Source

# Of each of these groups of tools, one has to have succeeded.
_Needs: TypeAlias = tuple[tuple[str, ...], ...]


def order_findings(policy: Policy) -> Iterator[LintFinding]:
    """Tell which rules no order of calls satisfies, and which facts therefore never come."""
    needs = {rule.name: _needs(rule) for rule in policy.rules}
    callable_tools = _callable(policy, needs)
    for rule in policy.rules:
        pointer = pointer_join("rules", rule.index)
        for group in needs[rule.name]:
            if _is_barred(policy, group, callable_tools):
                message = _obstacle(policy, rule, group, needs)
                yield error_at(policy, pointer, LintCode.IMPOSSIBLE_ORDER, message)
        if rule.type is RuleType.FORBID_PRIOR_CALL and _is_barred(
            policy, rule.prior_tools, callable_tools
        ):
            message = f"it never fires: {_any(rule.prior_tools)} can never run"
            yield error_at(policy, pointer, LintCode.NEVER_FIRES, message)
    for index, fact in enumerate(policy.facts):
        if _is_barred(policy, fact.tools, callable_tools):
            message = f'the fact "{fact.name}" never comes: {_any(fact.tools)} can never run'
            place = pointer_join("facts", index)
            yield error_at(policy, place, LintCode.FACT_NEVER_CAPTURED, message)


def _is_barred(policy: Policy, tools: tuple[str, ...], callable_tools: frozenset[str]) -> bool:
    # Of a tool that is not declared, that alone is told.
    return all(tool in policy.tools and tool not in callable_tools for tool in tools)


def _needs(rule: Rule) -> _Needs:
    """Return without which successes a rule blocks every call that it is about."""
    if rule.effect is not Decision.BLOCK or rule.when:
        return ()
    if rule.type is RuleType.REQUIRE_PRIOR_CALL:
        return (rule.prior_tools,)
    condition = rule.condition
    if condition is None or condition.missing_passes:
        return ()
    satisfied_without = (
        Operator.NOT_EXISTS if rule.type is RuleType.REQUIRE_FACT else Operator.EXISTS
    )
    if condition.operator is satisfied_without:
        return ()
    sides = (condition.left, condition.right)
    groups = (side.tools for side in sides if side.source is Source.FACT)
    return tuple(dict.fromkeys(groups))


def _callable(policy: Policy, needs: Mapping[str, _Needs]) -> frozenset[str]:
    """Return the tools that some run can call."""
    known = set(policy.tools)
    if policy.unknown_tools is not Decision.BLOCK:
        known |= {tool for groups in needs.values() for group in groups for tool in group}
    known -= {tool for rule in policy.rules if blocks_all(rule) for tool in rule.tools}
    wanted = {
        tool: {group for rule in policy.rules_of(tool) for group in needs[rule.name]}
        for tool in known
    }
    found: set[str] = set()
    while more := {
        tool for tool in known - found if not any(found.isdisjoint(group) for group in wanted[tool])
    }:
        found |= more
    return frozenset(found)


def _obstacle(
    policy: Policy, rule: Rule, group: tuple[str, ...], needs: Mapping[str, _Needs]
) -> str:
    needed = _any(group)
    if set(group) <= set(rule.tools):
        return f"it needs {needed} before the first call of {needed}"
    seen, pending = set(group), [*group]
    while pending:
        for other in policy.rules_of(pending.pop()):
            for wanted in needs[other.name]:
                held = [tool for tool in wanted if tool in rule.tools]
                if held:
                    return f"it needs {needed} first, which in turn needs {_any(held)} first"
                pending += set(wanted) - seen
                seen |= set(wanted)
    return f"it needs {needed} first, which can never run"


def _any(tools: tuple[str, ...] | list[str]) -> str:
    return " or ".join(dict.fromkeys(tools))

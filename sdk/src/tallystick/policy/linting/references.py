"""Names that lead nowhere: tools that are not declared, facts that nobody reads."""

from collections.abc import Iterator

from tallystick.canonical import pointer_join
from tallystick.policy.fault import Guesses
from tallystick.policy.linting.lint_finding import LintCode, LintFinding, error_at, warning_at
from tallystick.policy.policy import Policy
from tallystick.policy.terms import Decision, Operand, Rule, Source


def reference_findings(policy: Policy) -> Iterator[LintFinding]:
    """Tell which names lead nowhere."""
    # Where unknown tools may run, a rule about one may be meant.
    tell = warning_at if policy.unknown_tools is Decision.ALLOW else error_at
    guesses = Guesses()
    for tool, pointer in _named_tools(policy):
        if tool not in policy.tools:
            meant = guesses.guess(tool, policy.tools)
            message = f'the policy declares no tool "{tool}"{meant}'
            yield tell(policy, pointer, LintCode.UNDECLARED_TOOL, message)
    for tools, pointer in _lists(policy):
        for place, tool in enumerate(tools):
            if tool in tools[:place]:
                message = f'the list has the tool "{tool}" already'
                at = pointer + pointer_join(place)
                yield warning_at(policy, at, LintCode.REPEATED_TOOL, message)
    read = {operand.key for rule in policy.rules for operand in fact_operands(rule)}
    for index, fact in enumerate(policy.facts):
        if fact.name not in read:
            message = f'no rule reads the fact "{fact.name}"'
            yield warning_at(policy, pointer_join("facts", index), LintCode.UNREAD_FACT, message)


def fact_operands(rule: Rule) -> Iterator[Operand]:
    """Return the operands of a rule that are facts, also those that only select a value."""
    for condition in (*rule.when, *([rule.condition] if rule.condition else ())):
        for side in (condition.left, condition.right):
            for operand in (side, side.selector):
                if operand is not None and operand.source is Source.FACT:
                    yield operand


def _named_tools(policy: Policy) -> Iterator[tuple[str, str]]:
    for index, limit in enumerate(policy.limits):
        for tool in sorted(limit.tools):
            yield tool, pointer_join("budgets", "limits", index, "tools")
    for tools, pointer in _lists(policy):
        for place, tool in enumerate(tools):
            yield tool, pointer + pointer_join(place) if len(tools) > 1 else pointer


def _lists(policy: Policy) -> Iterator[tuple[tuple[str, ...], str]]:
    """Return where a tool, or some tools, are named, and the place."""
    for index, fact in enumerate(policy.facts):
        yield fact.tools, pointer_join("facts", index, "from_tool")
    for rule in policy.rules:
        yield rule.tools, pointer_join("rules", rule.index, "tool")
        if rule.prior_tools:
            yield rule.prior_tools, pointer_join("rules", rule.index, "prior_tool")

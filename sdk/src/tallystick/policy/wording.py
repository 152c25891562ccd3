"""What a model is told of a decision: which rule, and what to do. Never a value of a result.

Nor a constant of the policy: a threshold that is told is a threshold to stay just below.
"""

from collections.abc import Iterable, Iterator

from tallystick.policy.finding import Absence, Comparison, Finding, Outcome
from tallystick.policy.limits import amount_sentence
from tallystick.policy.terms import CallBudget, Decision, Limit, Operand, Rule, RuleType, Source


def sentence_for(finding: Finding, tool: str) -> str:
    """Return what the model is told of the part of the policy that decided about its call."""
    match finding.about:
        case None:
            if finding.effect is Decision.NEEDS_HUMAN:
                return (
                    f"The policy does not know the tool {tool}: a person has to approve the call."
                )
            return f"The policy does not know the tool {tool}, and refuses it."
        case CallBudget(name=name):
            return f'The budget "{name}" is spent: this run has no more such calls.'
        case Limit() as limit:
            if finding.units is None:
                return amount_sentence(limit, tool)
            later = " until later" if limit.window_seconds else ""
            return f'The budget "{limit.name}" has not enough left for this call of {tool}{later}.'
        case Rule() as rule:
            return _rule_sentence(rule, finding, tool)


def _rule_sentence(rule: Rule, finding: Finding, tool: str) -> str:
    call, gap = _missing_call(finding, tool), _gap(finding)
    is_asked = rule.effect is Decision.NEEDS_HUMAN
    if rule.message is not None:
        end = "" if rule.message.endswith((".", "!", "?")) else "."
        # Of a prior call that is missing, the rule's own words can tell; of a fact they cannot.
        more = (is_asked and call and f"or {call}") or call or gap
        return f'The rule "{rule.name}" holds {tool} back: {rule.message}{end}{_sentence(more)}'
    if rule.type is RuleType.REQUIRE_PRIOR_CALL:
        call = f"call {_any(rule.prior_tools)} first"
    if is_asked:
        way_out = _sentence(f"or {call}") if call else ""
        return f'The rule "{rule.name}" wants a person\'s approval for {tool}.{way_out}'
    return f'The rule "{rule.name}" refuses {tool}: {call or gap or _objection(rule, finding)}.'


def _sentence(clause: str) -> str:
    return f" {clause[0].upper()}{clause[1:]}." if clause else ""


def _missing_call(finding: Finding, tool: str) -> str:
    """Return the call that would give a fact, of the first tool of it; empty if there is none."""
    for operand, was_read in _absent_facts(finding):
        if not was_read:
            first = next((each for each in operand.tools if each != tool), tool)
            return f"call {first} first{_for_this(operand, ', ')}"
    return ""


def _gap(finding: Finding) -> str:
    """Return which fact a result did not give; empty if there is none."""
    for operand, was_read in _absent_facts(finding):
        if was_read:
            which = _for_this(operand, " ")
            return f"what {_any(operand.tools)} returned{which} has no {operand.key}"
    return ""


def _for_this(operand: Operand, before: str) -> str:
    selector = operand.selector
    return f"{before}for this {selector.key}" if selector and selector.key else ""


def _absent_facts(finding: Finding) -> Iterator[Absence]:
    # Those of its "when" do not count: a call to get around a rule is none to ask for.
    for absence in finding.comparison.absent if finding.comparison else ():
        if absence.operand.source is Source.FACT:
            yield absence


def _objection(rule: Rule, finding: Finding) -> str:
    comparison = finding.comparison
    if rule.type is RuleType.FORBID_PRIOR_CALL:
        return f"it is not allowed once {_any(rule.prior_tools)} was called"
    if comparison is None:
        return "it is not allowed"
    missing = [operand.key for operand, _ in comparison.absent if operand.source is Source.ARG]
    if missing:
        return f"give the argument{_plural(missing)} {_quoted(missing)}"
    return _mismatch(comparison)


def _mismatch(comparison: Comparison) -> str:
    """Return what is wrong with values that are there, all of them."""
    sides = (comparison.condition.left, comparison.condition.right)
    arguments = [side.key for side in sides if side.source is Source.ARG]
    tools = _all(_any(side.tools) for side in sides if side.source is Source.FACT)
    if not arguments:
        return f"what {tools} returned does not allow it" if tools else "it is not allowed"
    several = _plural(arguments)
    named = f"the argument{several} {_quoted(arguments)}"
    if comparison.outcome is Outcome.MISFIT:
        return f"{named} {'are' if several else 'is'} not of the type{several} that it takes"
    if tools:
        return f"{named} {'do' if several else 'does'} not fit what {tools} returned"
    has = "have values" if several else "has a value"
    return f"{named} {has} that it does not let through"


def _any(names: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(names))


def _all(names: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(names))


def _quoted(names: Iterable[str]) -> str:
    # An argument may be called "to".
    return _all(f'"{name}"' for name in names)


def _plural(names: Iterable[str]) -> str:
    return "s" if len(set(names)) > 1 else ""

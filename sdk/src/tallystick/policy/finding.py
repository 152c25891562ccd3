"""What a decision found: part by part of the policy, with the values that it looked at.

This is for people who look into a decision. It holds values of arguments and of results, which no
model is told.
"""

from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple

from tallystick.canonical import Json
from tallystick.errors import BudgetExhausted, NeedsHuman, PolicyBlocked
from tallystick.policy.operators import ALONE
from tallystick.policy.terms import (
    CallBudget,
    Condition,
    Decision,
    Limit,
    Operand,
    Rule,
    RuleType,
    Source,
)

UNKNOWN_TOOLS: Final = "defaults.unknown_tools"


class Outcome(StrEnum):
    """What came of a comparison."""

    HOLDS = "holds"
    FAILS = "fails"
    ABSENT = "absent"
    """An operand is not there."""
    MISFIT = "misfit"
    """The operands are of types that the operator does not compare."""


class Absence(NamedTuple):
    """A value that a comparison did without.

    Args:
        operand: Whose value; what says which of a fact's values is meant is an operand, too.
        was_read: Whether it is a fact, and a result was seen that has no value for it.
    """

    operand: Operand
    was_read: bool


class Comparison(NamedTuple):
    """A comparison that was made.

    Args:
        condition: As the policy has it.
        outcome: What came of it.
        left: The left value; null if it is not there.
        right: The right value; null if it is not there, or the operator takes none.
        absent: What has no value, and why.
    """

    condition: Condition
    outcome: Outcome
    left: Json
    right: Json
    absent: tuple[Absence, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return the comparison as a JSON object."""
        sides: dict[str, Json] = {"left": _side(self.condition.left, self.left)}
        if self.condition.operator not in ALONE:
            sides["right"] = _side(self.condition.right, self.right)
        return {**sides, "op": self.condition.operator.value, "outcome": self.outcome.value}

    def __str__(self) -> str:
        sides = [_side_text(self.condition.left, self.left), self.condition.operator.value]
        if self.condition.operator not in ALONE:
            sides.append(_side_text(self.condition.right, self.right))
        return f"{' '.join(sides)} {_OUTCOMES[self.outcome]}"


class Finding(NamedTuple):
    """What one part of a policy had to say about a call.

    Args:
        rule: The part: a rule's name, or where else in the document it stands, with dots.
        effect: What becomes of a call for which it fires.
        about: The part itself; None for `defaults.unknown_tools`.
        applied: Whether its `when` let it apply.
        fired: Whether it fired.
        comparison: What it compared.
        when: The conditions of its `when`, as far as it took to tell.
        before: How many prior calls there were that count, or how much of the budget is spent.
        units: What the call costs of the budget; None if its arguments do not say.
    """

    rule: str
    effect: Decision
    about: Rule | CallBudget | Limit | None
    applied: bool
    fired: bool
    comparison: Comparison | None = None
    when: tuple[Comparison, ...] = ()
    before: Decimal | int | None = None
    units: Decimal | int | None = None

    @property
    def code(self) -> str:
        """The code of the refusal, if it fires."""
        if isinstance(self.about, CallBudget | Limit) and self.units is not None:
            return BudgetExhausted.code
        return (PolicyBlocked if self.effect is Decision.BLOCK else NeedsHuman).code

    def to_json(self) -> dict[str, Json]:
        """Return the finding as a JSON object; decimals as text."""
        return {
            "rule": self.rule,
            "effect": self.effect.value,
            "applied": self.applied,
            "fired": self.fired,
            "comparison": self.comparison.to_json() if self.comparison else None,
            "when": [each.to_json() for each in self.when],
            "before": None if self.before is None else str(self.before),
            "explanation": str(self),
        }

    def __str__(self) -> str:
        if not self.applied:
            return f"does not apply: {self.when[-1]}"
        return f"{'fires' if self.fired else 'does not fire'}: {self._reason()}"

    def _reason(self) -> str:
        match self.about:
            case None:
                return "the policy does not declare the tool"
            case CallBudget(max=most):
                return f"{self.before} of {most} calls are spent"
            case Limit(max=most):
                cost = (
                    "no amount to count" if self.units is None else f"this call costs {self.units}"
                )
                return f"{self.before} of {most} are spent, {cost}"
            case Rule(type=RuleType.ALWAYS):
                return "it holds for every call"
            case Rule(type=RuleType.REQUIRE_PRIOR_CALL, prior_tools=prior):
                return f"{' or '.join(prior)} has succeeded {self.before} times"
            case Rule(type=RuleType.FORBID_PRIOR_CALL, prior_tools=prior):
                return f"{' or '.join(prior)} was called {self.before} times"
            case _:
                return str(self.comparison)


_OUTCOMES: Final = {
    Outcome.HOLDS: "holds",
    Outcome.FAILS: "does not hold",
    Outcome.ABSENT: "cannot be told: a value is not there",
    Outcome.MISFIT: "cannot be told: the values are of types that it does not compare",
}


def _side(operand: Operand, value: Json) -> dict[str, Json]:
    side: dict[str, Json] = {"source": operand.source.value, "value": value}
    if operand.source is not Source.CONST:
        side["key"] = operand.key
    if operand.source is Source.FACT:
        # As the policy has it.
        one, *more = operand.tools
        side["from_tool"] = [one, *more] if more else one
    return side


def _side_text(operand: Operand, value: Json) -> str:
    from json import dumps

    text = dumps(value, ensure_ascii=False, sort_keys=True)
    if len(text) > _VALUE_CHARS_MAX:
        text = f"{text[:_VALUE_CHARS_MAX]}…"
    match operand.source:
        case Source.CONST:
            return text
        case Source.ARG:
            return f"{operand.key} = {text}"
        case Source.FACT:
            return f"{operand.key} (from {' or '.join(operand.tools)}) = {text}"


_VALUE_CHARS_MAX: Final = 200

"""What a policy consists of, after reading: frozen values, with nothing left to interpret."""

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Final, Literal

from tallystick.canonical import Json
from tallystick.policy.operators import LAWS, Law, Operator
from tallystick.policy.paths import Path


class Risk(StrEnum):
    """What a call may do; each counts as the ones before it, too."""

    READ = "read"
    WRITE = "write"
    HIGH_RISK = "high_risk"

    rank: int
    """How grave it is: 0 for the least."""

    def __init__(self, _value: str) -> None:
        self.rank = len(type(self).__members__)


class Decision(StrEnum):
    """What becomes of a call; a later one beats an earlier one."""

    ALLOW = "allow"
    NEEDS_HUMAN = "needs_human"
    BLOCK = "block"


SEVERITY: Final = {decision: place for place, decision in enumerate(Decision)}


class Source(StrEnum):
    """Where an operand's value comes from."""

    ARG = "arg"
    FACT = "fact"
    CONST = "const"


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of a comparison.

    Args:
        source: Where its value comes from.
        key: The path into the arguments, or the name of the fact, as written.
        path: The path into the arguments.
        value: The constant.
        transform: What is made of the value, in order.
        tools: The tools that a fact is captured from.
        selector: Whose value says which of a fact's values belongs to this call; None if the fact
            has one value.
    """

    source: Source
    key: str = ""
    path: Path | None = None
    value: Json = None
    transform: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    selector: "Operand | None" = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison.

    Args:
        left: Its left operand.
        operator: How they compare.
        right: Its right operand; null where the operator takes none.
        missing_passes: What it comes to when it cannot be told, because an operand is not there or
            of another type: False takes the side of caution.
    """

    left: Operand
    operator: Operator
    right: Operand
    missing_passes: bool = False
    law: Law = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Looked up once: a decision is made often.
        object.__setattr__(self, "law", LAWS[self.operator])


class RuleType(StrEnum):
    """What makes a rule fire."""

    REQUIRE_PRIOR_CALL = "require_prior_call"
    FORBID_PRIOR_CALL = "forbid_prior_call"
    REQUIRE_FACT = "require_fact"
    COMPARE = "compare"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule about the calls of some tools.

    Args:
        name: Its name, one of its kind in the policy.
        type: What makes it fire.
        tools: The tools whose calls it is about.
        effect: What becomes of a call for which it fires.
        prior_tools: The tools of which any must, or none must, have been called.
        condition: What must hold (`require_fact`), or must not (`compare`).
        when: What must all hold for the rule to apply.
        message: What the model is told; None for a sentence made of the rule.
        index: Its place among the rules, from 0.
    """

    name: str
    type: RuleType
    tools: tuple[str, ...]
    effect: Literal[Decision.BLOCK, Decision.NEEDS_HUMAN]
    prior_tools: tuple[str, ...] = ()
    condition: Condition | None = None
    when: tuple[Condition, ...] = ()
    message: str | None = None
    index: int = 0


class PerSource(StrEnum):
    """Where the value stands that tells a fact's values apart."""

    ARG = "arg"
    """In the arguments of the call."""
    PATH = "path"
    """In its result."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A value that is captured from results.

    Args:
        name: Its name.
        tools: The tools whose results have it; the last result of any of them counts.
        path: Where these have the value.
        transform: What is made of it, in order.
        per: The path to what tells its values apart; None if it has one value, the last result's.
        per_source: Where that path leads from.
    """

    name: str
    tools: tuple[str, ...]
    path: Path
    transform: tuple[str, ...] = ()
    per: Path | None = None
    per_source: PerSource = PerSource.ARG


@dataclass(frozen=True, slots=True)
class Limit:
    """A budget of its own for some of the calls.

    Args:
        name: Its name.
        tools: The tools whose calls count; empty if the risk says which.
        risk: The least risk that counts; None if the tools are named.
        max: The most units.
        amount: Where the arguments have the units of a call; None if a call is one unit.
        per: What shares the budget: the calls of a run, or all calls of the tenant.
        window_seconds: After how long it is whole again, counted from 1970 (UTC); None for never.
        slice: The most units that are taken from a tenant's budget at once, to be used up nearby.
    """

    name: str
    max: Decimal
    tools: frozenset[str] = frozenset()
    risk: Risk | None = None
    amount: Path | None = None
    per: Literal["run", "tenant"] = "run"
    window_seconds: int | None = None
    slice: Decimal = Decimal(1)

    def covers(self, tool: str, risk: Risk) -> bool:
        """Return whether a call of a tool counts."""
        return risk.rank >= self.risk.rank if self.risk else tool in self.tools


@dataclass(frozen=True, slots=True)
class CallBudget:
    """How many calls of a risk a run may make.

    Args:
        name: Its name in the document.
        risk: The least risk that counts.
        max: The most calls.
    """

    name: str
    risk: Risk
    max: int

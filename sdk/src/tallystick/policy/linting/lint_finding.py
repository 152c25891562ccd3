"""One thing in a policy that can hardly be meant."""

from dataclasses import dataclass
from enum import StrEnum

from tallystick.canonical import Json
from tallystick.document import Mark
from tallystick.policy.policy import Policy


class Severity(StrEnum):
    """How grave it is."""

    ERROR = "error"
    """A part of the policy does nothing, or forbids everything."""
    WARNING = "warning"


class LintCode(StrEnum):
    """What it is, for programs; never renamed."""

    UNDECLARED_TOOL = "undeclared_tool"
    """A tool that the policy does not declare: most often a misspelt one."""
    REPEATED_TOOL = "repeated_tool"
    """A list names a tool twice: most often another one is meant."""
    UNREAD_FACT = "unread_fact"
    """No rule reads the fact."""
    FACT_NEVER_CAPTURED = "fact_never_captured"
    """No tool that the fact is of can ever run."""
    NEVER_FIRES = "never_fires"
    """The rule or budget never stops anything."""
    ALWAYS_FIRES = "always_fires"
    """The rule stops every call, without saying so."""
    MISFIT_CONSTANT = "misfit_constant"
    """The operator cannot hold of a value of that type."""
    CONTRADICTORY_RULES = "contradictory_rules"
    """Two rules leave no value to a call."""
    CONTRADICTORY_CONDITIONS = "contradictory_conditions"
    """The conditions of a rule never hold together."""
    IMPOSSIBLE_ORDER = "impossible_order"
    """No order of calls satisfies the rule."""
    SHADOWED_RULE = "shadowed_rule"
    """Another rule stops all that this one would stop."""
    ZERO_BUDGET = "zero_budget"
    """The budget allows nothing."""
    LOOSE_BUDGET = "loose_budget"
    """The budget is larger than another that spends it, too."""


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One finding.

    Args:
        code: What it is.
        severity: How grave it is.
        message: One sentence.
        pointer: Where in the document, a JSON Pointer.
        mark: Where in the text; None without a text.
    """

    code: LintCode
    severity: Severity
    message: str
    pointer: str
    mark: Mark | None

    def to_json(self) -> dict[str, Json]:
        """Return the finding as a JSON object."""
        return {
            "code": self.code.value,
            "severity": self.severity.value,
            "line": self.mark.line if self.mark else None,
            "column": self.mark.column if self.mark else None,
            "pointer": self.pointer,
            "message": self.message,
        }


def error_at(policy: Policy, pointer: str, code: LintCode, message: str) -> LintFinding:
    """Return an error about a place of a policy."""
    return LintFinding(code, Severity.ERROR, message, pointer, _mark(policy, pointer))


def warning_at(policy: Policy, pointer: str, code: LintCode, message: str) -> LintFinding:
    """Return a warning about a place of a policy."""
    return LintFinding(code, Severity.WARNING, message, pointer, _mark(policy, pointer))


def _mark(policy: Policy, pointer: str) -> Mark | None:
    """Return where a place stands, or what is around it."""
    while pointer and pointer not in policy.marks:
        pointer = pointer.rpartition("/")[0]
    return policy.marks.get(pointer)

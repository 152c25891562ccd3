"""What can hardly be meant in a policy that can be read: what never fires, or always does.

What is told is sure. What hangs on values that only a run has is not guessed at.
"""

from tallystick.policy.linting.budgets import budget_findings
from tallystick.policy.linting.lint_finding import LintCode, LintFinding, Severity
from tallystick.policy.linting.order import order_findings
from tallystick.policy.linting.outcomes import constant_findings
from tallystick.policy.linting.overlap import overlap_findings
from tallystick.policy.linting.references import reference_findings
from tallystick.policy.policy import Policy

__all__ = ["LintCode", "LintFinding", "Severity", "lint"]

_PARTS = (
    reference_findings,
    constant_findings,
    order_findings,
    overlap_findings,
    budget_findings,
)


def lint(policy: Policy) -> tuple[LintFinding, ...]:
    """Return what can hardly be meant in a policy, in the order of its text."""
    found = [finding for part in _PARTS for finding in part(policy)]
    if policy.marks:
        found.sort(key=lambda each: (each.mark.line, each.mark.column) if each.mark else (0, 0))
    return tuple(found)

"""A tenant's policies: their revisions, to whom they are assigned, and which one is in force. Pure.

Of a policy the newest revision counts. Of policies one is in force for a principal: the one that is
assigned to it, else the one that is assigned to everybody, else none.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tallystick.errors import InvalidPolicy
from tallystick.policy import Policy
from tallystick.policy.lint import LintFinding, Severity, lint

EVERYBODY: Final = "*"
"""The principal that stands for all who have no policy of their own."""


@dataclass(frozen=True, slots=True)
class PolicyRevision:
    """One revision of a policy: who published it when, and how the policy stands now."""

    policy: str
    revision: int
    digest: str
    published_at: datetime
    published_by: str
    current_revision: int
    assigned_to: list[str]


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """What decides of a principal's calls, and under which name and revision it is recorded."""

    policy: Policy
    name: str
    revision: int


def read_policy(text: str) -> tuple[Policy, list[LintFinding]]:
    """Read a policy that is to be published, and return what may not be meant in it.

    Raises:
        InvalidPolicy: It breaks rules of the language, or a part of it does nothing or forbids
            everything; `facts["faults"]` has every one, with its line and column.
        TooLarge: It is too long.
    """
    policy = Policy.parse(text)
    found = lint(policy)
    faults = [each for each in found if each.severity is Severity.ERROR]
    if faults:
        first = faults[0]
        where = f"line {first.mark.line} column {first.mark.column}: " if first.mark else ""
        more = f" (and {len(faults) - 1} more)" if faults[1:] else ""
        raise InvalidPolicy(
            f"{where}{first.message}{more}.",
            pointer=first.pointer,
            facts={"faults": [each.to_json() for each in faults]},
        )
    return policy, list(found)

"""How grave a change of contract is for those who stay with the accepted one.

The table decides; what no row names is told, and weighs nothing by itself.
"""

from typing import Final, NamedTuple

from tallystick.compatibility.changes.change import ChangeKind
from tallystick.compatibility.contracts.comparison import ContractComparison
from tallystick.compatibility.contracts.contract_change import ContractChangeKind
from tallystick.compatibility.contracts.version_rule import Bump, FindingCode
from tallystick.lockfile.entry import Level


class Row(NamedTuple):
    """What makes a change at least so grave: a finding with such a code, or such a change.

    Args:
        level: How grave.
        codes: Of findings, whether they are breaches of the version rule or for review.
        kinds: Of changes.
    """

    level: Level
    codes: frozenset[FindingCode]
    kinds: frozenset[ChangeKind | ContractChangeKind] = frozenset()


TABLE: Final = (
    Row(
        Level.BREAKING,
        # Each says that a proof is missing: `undecided` is never a yes.
        frozenset(
            {
                FindingCode.OLD_CALLS,
                FindingCode.NEW_RESULTS,
                FindingCode.REQUIRES_UNDECLARED,
                FindingCode.EFFECT_CLASS,
                FindingCode.NAME,
            }
        ),
    ),
    Row(
        Level.REVIEW,
        frozenset(
            {
                FindingCode.APPROVAL_CHANGED,
                FindingCode.CHECKS_CHANGED,
                FindingCode.CREDENTIAL_CHANGED,
                FindingCode.DEFAULT_CHANGED,
                FindingCode.ERROR_MEANINGS,
                FindingCode.IDEMPOTENCY_CHANGED,
                FindingCode.IDENTITY_CHANGED,
                FindingCode.LESS_CHECKED,
                FindingCode.PARAMETER_RENAMED,
                FindingCode.WIDER_CAPABILITIES,
            }
        ),
        frozenset(
            {
                ChangeKind.ADDITIONAL_PROPERTIES_CLOSED,
                ContractChangeKind.ATTEMPTS_MAX_CHANGED,
                ContractChangeKind.MAX_DUPLICATES_CHANGED,
            }
        ),
    ),
)
"""The gravest row that applies counts. A changed text applies to none: it is no break."""


def level_of(comparison: ContractComparison) -> Level:
    """Return how grave the change from an accepted contract to the code's is."""
    codes = {each.code for each in (*comparison.breaches, *comparison.review)}
    kinds = {each.kind for each in comparison.changes}
    for row in TABLE:
        if codes & row.codes or kinds & row.kinds:
            return row.level
    if comparison.old.contract_digest == comparison.new.contract_digest:
        return Level.UNCHANGED
    is_structural = comparison.bump not in (Bump.NONE, Bump.PATCH)
    if is_structural or not all(each.is_prompt_facing for each in comparison.changes):
        return Level.COMPATIBLE
    return Level.TEXT

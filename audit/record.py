"""What is sealed: the tables whose rows are never changed, and how a row becomes a leaf. Pure.

A leaf is the SHA-256 of a zero byte and the canonical form (RFC 8785) of
``{"table": name, "row": {column: text}}``. Every value stands there as PostgreSQL writes it in a
fixed session, so that whole numbers and times are exact. A column that is NULL is left out: one
that is added to a table later leaves the leaves of the older rows as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from audit.merkle import leaf_hash
from tallystick.canonical import canonical_bytes

SEALED: Final[Mapping[str, tuple[str, ...]]] = {
    "approval_event": ("run_id", "number", "step"),
    "contract": ("contract_id",),
    "contract_content": ("tenant_id", "contract_digest"),
    "effect": ("run_id", "number"),
    "effect_attempt": ("run_id", "number", "attempt"),
    "effect_evidence": ("run_id", "number", "evidence_id"),
    "effect_outcome": ("run_id", "number", "revision"),
    "event": ("run_id", "number", "fence"),
    "gate_refusal": ("run_id", "refusal_id"),
    "policy_revision": ("tenant_id", "policy", "revision"),
    "registry_event": ("tenant_id", "event_id"),
    "resolution_event": ("run_id", "number", "step"),
    "run_subject": ("run_id",),
}
"""Every table whose rows are sealed, by its primary key.

A migration adds one with ``SELECT audit_keep('its_name')``.
"""

WRITTEN_IN: Final = "written_in"
"""The column that says which transaction wrote a row, and so which seal it is under."""


@dataclass(frozen=True, slots=True)
class Record:
    """A row of a sealed table: its columns as PostgreSQL's text, those that are NULL left out."""

    table: str
    row: Mapping[str, str]

    def canonical(self) -> bytes:
        """Return what the leaf is the hash of."""
        return canonical_bytes({"table": self.table, "row": dict(self.row)})

    def leaf(self) -> bytes:
        """Return the hash that stands in the tree."""
        return leaf_hash(self.canonical())

    @property
    def name(self) -> str:
        """Name the row for a person: its table and its key."""
        key = [self.row.get(column, "?") for column in SEALED.get(self.table, ())]
        return f"{self.table} {'/'.join(key)}".rstrip()

"""The five classes of effect, and what each allows when nobody knows whether a call took place."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal


class EffectClass(StrEnum):
    """What a second call with the same arguments may do to the world."""

    PURE = "PURE"
    """It only reads: a second call changes nothing."""
    IDEMPOTENT = "IDEMPOTENT"
    """The provider recognises a second call by its key, and applies it once."""
    REPLAYABLE = "REPLAYABLE"
    """A second call does the same again, and the publisher accepts a bounded number of those."""
    UNKNOWN = "UNKNOWN"
    """Nobody has said: treated as if a second call did harm."""
    NON_RETRYABLE = "NON_RETRYABLE"
    """A second call is a second effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectTraits:
    """What the ledger and the reconciler may do with an effect of one class.

    Args:
        kind: What the model is told: a read runs at once, a write is proposed.
        key_required: The contract must say where the provider takes the idempotency key.
        reconciled: An unknown outcome is looked up at the provider.
        lost_lease: The state of a dispatched effect whose worker went silent.
        settled_absent: Where it goes when the provider does not have it, settled beyond doubt.
        inconclusive: Where it goes when the provider never gives a clear answer.
        automatic_retry: A machine may start another attempt.
        operator_retry: A person may release it for another attempt.
        approvers: How many people must agree on the outcome of a quarantined effect.
    """

    kind: Literal["read", "write"] = "write"
    key_required: bool = False
    reconciled: bool = True
    lost_lease: Literal["RETRYABLE", "UNKNOWN"] = "UNKNOWN"
    settled_absent: Literal["RETRYABLE", "QUARANTINED"]
    inconclusive: Literal["RETRYABLE", "QUARANTINED"]
    automatic_retry: bool
    operator_retry: bool
    approvers: int = 1


_ONCE: Final = EffectTraits(
    settled_absent="QUARANTINED",
    inconclusive="QUARANTINED",
    automatic_retry=False,
    operator_retry=False,
    approvers=2,
)

TRAITS: Final[dict[EffectClass, EffectTraits]] = {
    EffectClass.PURE: EffectTraits(
        kind="read",
        reconciled=False,
        lost_lease="RETRYABLE",
        settled_absent="RETRYABLE",
        inconclusive="RETRYABLE",
        automatic_retry=True,
        operator_retry=True,
    ),
    # Every new attempt has to start inside the horizon for which the provider honours the key.
    EffectClass.IDEMPOTENT: EffectTraits(
        key_required=True,
        settled_absent="RETRYABLE",
        inconclusive="QUARANTINED",
        automatic_retry=True,
        operator_retry=True,
    ),
    # An inconclusive effect is tried again at most `max_duplicates` times.
    EffectClass.REPLAYABLE: EffectTraits(
        settled_absent="RETRYABLE",
        inconclusive="RETRYABLE",
        automatic_retry=True,
        operator_retry=True,
    ),
    EffectClass.UNKNOWN: _ONCE,
    EffectClass.NON_RETRYABLE: _ONCE,
}

"""The states of an effect. Pure."""

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """Where an effect is.

    An open effect has a row in ``effect_open``, a closed one a current outcome.
    """

    PLANNED = "PLANNED"
    DISPATCHED = "DISPATCHED"
    UNKNOWN = "UNKNOWN"
    RECONCILING = "RECONCILING"
    RETRYABLE = "RETRYABLE"
    QUARANTINED = "QUARANTINED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    REFUSED = "REFUSED"
    CANCELLED = "CANCELLED"
    ABANDONED = "ABANDONED"

    @property
    def is_open(self) -> bool:
        """Tell whether something may still happen to an effect in this state."""
        return self in OPEN


OPEN: Final = frozenset(
    {
        State.PLANNED,
        State.DISPATCHED,
        State.UNKNOWN,
        State.RECONCILING,
        State.RETRYABLE,
        State.QUARANTINED,
    }
)
CLOSED: Final = frozenset(State) - OPEN

NEW: Final = "NEW"
"""What an effect's first event comes from."""

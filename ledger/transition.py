"""The law of the ledger as data: which step leads from which state to which. Pure.

Everything that is not in the table is refused: here, and by a foreign key from each event to the
same table in the database.
"""

from dataclasses import dataclass
from typing import Final

from ledger.state import CLOSED, NEW, State
from tallystick.errors import IllegalTransition


@dataclass(frozen=True, slots=True)
class Transition:
    """One legal step."""

    id: str
    from_state: str
    to_state: State


def _steps(name: str, from_state: str, *to_states: State) -> tuple[Transition, ...]:
    return tuple(Transition(name, from_state, to_state) for to_state in to_states)


TRANSITIONS: Final = (
    # A runtime plans.
    *_steps("T1", NEW, State.PLANNED),
    # A worker dispatches what is planned: the first attempt.
    *_steps("T2", State.PLANNED, State.DISPATCHED),
    # The same worker reports what the provider said.
    *_steps("T3", State.DISPATCHED, State.SUCCEEDED, State.FAILED),
    # Nobody knows: an ambiguous answer, or a lease that ran out. A PURE effect may simply run
    # again.
    *_steps("T4", State.DISPATCHED, State.UNKNOWN, State.RETRYABLE),
    # A reconciler claims it, and asks the provider.
    *_steps("T5", State.UNKNOWN, State.RECONCILING),
    # What the evidence says.
    *_steps(
        "T6",
        State.RECONCILING,
        State.SUCCEEDED,
        State.FAILED,
        State.UNKNOWN,
        State.RETRYABLE,
        State.QUARANTINED,
    ),
    # A worker dispatches again: a further attempt on the recorded contract.
    *_steps("T7", State.RETRYABLE, State.DISPATCHED),
    # Given up before it ran; after an attempt, only where an attempt changes nothing.
    *_steps("T8", State.PLANNED, State.CANCELLED),
    *_steps("T8", State.QUARANTINED, State.CANCELLED),
    *_steps("T8", State.RETRYABLE, State.CANCELLED, State.QUARANTINED),
    # Stopped before any byte went out.
    *_steps("T9", State.PLANNED, State.REFUSED),
    # Its contract is gone, or it may not be attempted again.
    *_steps("T10", NEW, State.QUARANTINED),
    *_steps("T10", State.RETRYABLE, State.QUARANTINED),
    # A person decides.
    *_steps(
        "T11",
        State.QUARANTINED,
        State.SUCCEEDED,
        State.FAILED,
        State.ABANDONED,
        State.RETRYABLE,
    ),
    # It is closed, and later evidence contradicts how: a person decides anew.
    *(Transition("T12", closed, State.QUARANTINED) for closed in sorted(CLOSED)),
    # Evidence came after all: what was to be sent again may have taken effect.
    *_steps("T13", State.RETRYABLE, State.UNKNOWN),
)

_LEGAL: Final = frozenset((step.id, step.from_state, step.to_state) for step in TRANSITIONS)


def check_step(transition: str, from_state: str, to_state: State) -> None:
    """Refuse a step that is not in the table. Raises IllegalTransition."""
    if (transition, from_state, to_state) not in _LEGAL:
        raise IllegalTransition(
            f"No step {transition} leads from {from_state} to {to_state}.",
            facts={"transition": transition, "from": from_state, "to": to_state},
        )

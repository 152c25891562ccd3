"""How many questions are open, and to whom: who does not answer keeps nobody else waiting. Pure."""

from collections import Counter
from dataclasses import dataclass
from typing import Final
from uuid import UUID

CONTRACT_MAX: Final = 8
"""How many questions one process has open about the effects of one contract of a tenant."""
TENANT_MAX: Final = 16
"""How many a tenant has open at one place: two of its contracts that hang leave it no room."""
PLACE_MAX: Final = 64
"""How many all tenants have open at one place: it is asked no more than that, up or down."""


@dataclass(frozen=True, slots=True)
class Lane:
    """The questions of a tenant about one contract's effects.

    ``place`` is who gets them, a ``host:port`` or a plug-in; it is empty where nobody is asked.
    """

    tenant_id: UUID
    contract_id: UUID
    place: str


class Lanes:
    """Counts the questions that are open."""

    def __init__(self) -> None:
        """Begin with none."""
        self._open = Counter[object]()

    def enter(self, lane: Lane) -> int:
        """Take all the room that a lane has; returns how many questions that is."""
        room = min(most - self._open[key] for key, most in _limits(lane))
        self._add(lane, room)
        return room

    def leave(self, lane: Lane, many: int = 1) -> None:
        """Give room back."""
        self._add(lane, -many)

    def _add(self, lane: Lane, many: int) -> None:
        for key, most in _limits(lane):
            self._open[key] += many
            assert 0 <= self._open[key] <= most
            if not self._open[key]:
                del self._open[key]


def _limits(lane: Lane) -> tuple[tuple[object, int], ...]:
    return (
        ((lane.tenant_id, lane.contract_id), CONTRACT_MAX),
        ((lane.tenant_id, lane.place), TENANT_MAX),
        (lane.place, PLACE_MAX),
    )

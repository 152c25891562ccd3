"""Decides whether a version may be retired, and says what stands in the way. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final


@dataclass(frozen=True, slots=True)
class References:
    """How many things of one kind refer to a version. ``many`` is counted up to a bound."""

    kind: str
    state: str | None
    many: int
    earliest: datetime | None


@dataclass(frozen=True, slots=True)
class Blocker:
    """One reason why a version cannot go yet, and what would clear it."""

    kind: str
    state: str | None
    count: int
    clears: str
    earliest: datetime | None


_CLEARS: Final = {
    "PLANNED": "a worker dispatches it, or `registry effects cancel`",
    "DISPATCHED": "its worker reports the outcome, or its lease runs out and it is reconciled",
    "UNKNOWN": "the reconciler finds evidence of what happened",
    "RECONCILING": "the reconciler has its answer",
    "RETRYABLE": "a worker dispatches it again, or `registry effects cancel`",
    "QUARANTINED": "a person decides: `registry effects resolve`",
}


def blockers(
    references: Sequence[References],
    *,
    closed_at: datetime,
    lease_seconds_max: float,
    now: datetime,
) -> tuple[Blocker, ...]:
    """Return what stands in the way of a version that was closed to new plans at ``closed_at``.

    A resolution that was issued just before may be relied on for ``lease_seconds_max`` longer, and
    nobody keeps a list of them: so that time is waited out.
    """
    found = [_blocker(one) for one in references if one.many]
    leases_end = closed_at + timedelta(seconds=lease_seconds_max)
    if now < leases_end:
        why = "the last resolution that was issued before the version closed runs out"
        found.append(Blocker("leases", None, 1, why, leases_end))
    return tuple(found)


def earliest(found: Sequence[Blocker]) -> datetime | None:
    """Return the earliest time at which the version could go, or None where no clock can tell."""
    times = [one.earliest for one in found if one.kind != "effects"]
    if len(times) != len(found):
        return None
    return max((moment for moment in times if moment is not None), default=None)


def _blocker(one: References) -> Blocker:
    if one.kind == "pins":
        return Blocker(
            "pins", None, one.many, "its holder lets the pin go, or it runs out", one.earliest
        )
    assert one.state is not None
    return Blocker(one.kind, one.state, one.many, _CLEARS[one.state], one.earliest)

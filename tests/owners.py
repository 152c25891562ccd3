"""Whose an attempt and a claim are, by an effect's history: what both judges of schedules hold."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ledger.effect import Event


def ended_by_another(events: Sequence[Event]) -> Iterator[str]:
    """Tell of each attempt and each claim that somebody else ended than who began it."""
    for before, event in pairwise(events):
        is_owners = event.transition == "T3" or event.actor.startswith("worker:")
        if is_owners and before.to_state == "DISPATCHED" and event.actor != before.actor:
            yield f"{event.actor} ended the attempt of {before.actor}, fence {event.fence}"
        is_claimed = before.transition == "T5" and "ran out" not in event.reason
        if is_claimed and event.actor != before.actor:
            yield f"{event.actor} settled the claim of {before.actor}, fence {event.fence}"

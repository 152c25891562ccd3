"""What stands in the way of a retirement, and from when on nothing does."""

from datetime import UTC, datetime, timedelta

import pytest

from ledger.state import OPEN
from rollout.retirement import References, blockers, earliest

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def found(*references: References, closed_at: datetime = NOW - MINUTE, lease: float = 60):
    return blockers(references, closed_at=closed_at, lease_seconds_max=lease, now=NOW)


def test_nothing_stands_in_the_way_of_what_nothing_refers_to():
    assert found() == ()
    assert found(References("effects", "PLANNED", 0, None), References("pins", None, 0, None)) == ()
    assert earliest(()) is None


@pytest.mark.parametrize("state", sorted(OPEN))
def test_every_open_state_is_told_with_what_clears_it(state: str):
    (blocker,) = found(References("effects", state, 3, NOW + MINUTE))
    assert (blocker.kind, blocker.state, blocker.count) == ("effects", state, 3)
    assert blocker.clears
    assert blocker.earliest == NOW + MINUTE
    assert earliest([blocker]) is None, "its end is not sure at any time"


@pytest.mark.parametrize(
    ("closed_ago", "lease", "waits"),
    [(60, 60, False), (59.999, 60, True), (0, 60, True), (0, 0, False), (0, 0.001, True)],
)
def test_the_last_resolution_is_waited_for(closed_ago: float, lease: float, waits: bool):
    closed_at = NOW - timedelta(seconds=closed_ago)
    assert [one.kind for one in found(closed_at=closed_at, lease=lease)] == ["leases"] * waits


def test_the_earliest_time_is_the_latest_of_those_that_are_sure():
    until_pins = NOW + 2 * MINUTE
    pins = References("pins", None, 2, until_pins)
    together = found(pins, closed_at=NOW)
    assert [(one.kind, one.count) for one in together] == [("pins", 2), ("leases", 1)]
    assert earliest(together) == until_pins
    assert earliest(found(pins, closed_at=NOW, lease=300)) == NOW + 5 * MINUTE
    with_effect = found(pins, References("effects", "UNKNOWN", 1, NOW), closed_at=NOW)
    assert earliest(with_effect) is None

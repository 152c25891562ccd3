"""A few schedules of kills, pauses, outages and restarts, while workers call a provider with books.

When the faults stop, every effect becomes closed or QUARANTINED, and ledger and books agree.
CRASH_SEED replays the schedules, CRASH_EFFECTS changes their size; `make soak` runs many.
"""

import os
import secrets
from pathlib import Path

import pytest

from tests.crash.scenario import HAND, STRIKES
from tests.crash.schedule import EFFECTS
from tests.crash.soak import Soak, Summary, soak


@pytest.mark.timeout(900)
def test_no_schedule_breaks_a_rule(tmp_path: Path):
    seed = int(os.environ.get("CRASH_SEED") or secrets.randbelow(2**32))
    effects = int(os.environ.get("CRASH_EFFECTS") or EFFECTS)
    print(f"CRASH_SEED={seed}")
    summary = soak(Soak(seed, effects, schedules=HAND), tmp_path, print)
    assert not summary.violations, "\n\n".join(summary.stories)
    if effects >= EFFECTS:
        everything_was_met(summary)


def everything_was_met(summary: Summary) -> None:
    """Hold the test to its name: schedules in which nothing went wrong would prove nothing."""
    assert set(summary.faults) >= {" ".join(strike) for strike in STRIKES}
    kinds = {fault.split(" ")[0] for fault in summary.faults}
    assert kinds >= {"order", "look-up", "webhook", "network", "worker", "clock"}
    assert set(summary.steps) >= {
        ("T3", "SUCCEEDED"),
        ("T3", "FAILED"),
        ("T4", "UNKNOWN"),
        ("T4", "RETRYABLE"),
        ("T6", "SUCCEEDED"),
        ("T6", "UNKNOWN"),
        ("T6", "RETRYABLE"),
        ("T6", "QUARANTINED"),
        ("T7", "DISPATCHED"),
    }

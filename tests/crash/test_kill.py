"""Kill -9 of everything at random moments, while workers call a provider that keeps its own books.

When the faults stop, every effect becomes closed or QUARANTINED, and ledger and books agree.
CRASH_SEED replays a scenario, CRASH_EFFECTS changes its size.
"""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.books import read_books
from tests.crash.fleet import Fleet
from tests.crash.ledger import Record, read_ledger
from tests.crash.scenario import Item, draw_faults, draw_items
from tests.crash.verdict import judge
from tests.crash.worker import read_journals

EFFECTS = 500
FAULTS_SHOWN_MAX = 5
RECOVERY_SECONDS_MAX = 30.0
SETTLED_SECONDS_MAX = 120.0


@pytest.fixture
def seed() -> int:
    return int(os.environ.get("CRASH_SEED") or secrets.randbelow(2**32))


@pytest.fixture
def fleet(tmp_path: Path, seed: int) -> Iterator[Fleet]:
    # Shown if the test fails: how to see it again, and what was killed when.
    print(f"CRASH_SEED={seed}")
    with Fleet(tmp_path, seed) as fleet:
        yield fleet
    print(*fleet.log, sep="\n")


def test_ledger_agrees_with_the_books_after_kills(fleet: Fleet, seed: int):
    items = draw_items(seed, int(os.environ.get("CRASH_EFFECTS") or EFFECTS))
    fleet.start(items)
    for fault in draw_faults(seed):
        if fault.awaits_recovery:
            fleet.await_service(RECOVERY_SECONDS_MAX)
        fleet.pause(fault.after_seconds)
        fleet.strike(fault)
    fleet.note("the faults are over")
    all_is_closed = fleet.have_workers_ended(SETTLED_SECONDS_MAX)
    fleet.await_service(RECOVERY_SECONDS_MAX)
    with fleet.client() as http:
        records = read_ledger(http, fleet.home)
    faults = judge(records, read_books(fleet.books))
    assert not faults, f"{len(faults)} faults\n" + "\n\n".join(faults[:FAULTS_SHOWN_MAX])
    assert all_is_closed, "a worker still has work, and the ledger has none"
    nothing_is_lost(fleet, items, records)
    if len(items) >= EFFECTS:
        everything_was_met(records)


def nothing_is_lost(fleet: Fleet, items: list[Item], records: list[Record]) -> None:
    told = {line["effect_id"] for line in read_journals(fleet.folder) if "effect_id" in line}
    assert told <= {record.effect_id for record in records}
    wanted = {(item.run, f"effect:{item.effect}"): item.arguments for item in items}
    assert {(one.run, one.identity): one.told["arguments"] for one in records} == wanted
    assert len(records) == len(items)


def everything_was_met(records: list[Record]) -> None:
    """Hold the test to its name: a run in which nothing went wrong would prove nothing."""
    steps = {(event.transition, event.to_state) for one in records for event in one.events}
    assert steps >= {
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
    reasons = {event.reason for one in records for event in one.events}
    assert "the lease ran out" in reasons
    assert any(answer.source == "late_worker" for one in records for answer in one.evidence)

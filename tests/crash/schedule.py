"""Runs one schedule: draws it, lets everything happen, and reads what came of it."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.crash.books import read_books
from tests.crash.fleet import Defect, Fleet
from tests.crash.journal import read_journals
from tests.crash.ledger import Record, read_ledger
from tests.crash.scenario import draw_faults
from tests.crash.verdict import Scene, Violation, judge
from tests.crash.work import draw_items

EFFECTS: Final = 100
RECOVERY_SECONDS_MAX: Final = 60.0
SETTLED_SECONDS_MAX: Final = 180.0


@dataclass(slots=True)
class Schedule:
    """One schedule after its end: what was recorded, what went wrong, and what was broken."""

    name: str
    records: list[Record] = field(default_factory=list[Record])
    faults: Counter[str] = field(default_factory=Counter[str])
    violations: list[Violation] = field(default_factory=list[Violation])
    log: list[str] = field(default_factory=list[str])


def simulated(fleet: Fleet, seed: int, number: int, effects: int, folder: Path) -> Schedule:
    """Run one schedule of a seed in a folder of its own, and judge it."""
    schedule = Schedule(f"{seed}:{number}")
    items = draw_items(seed, number, effects)
    try:
        fleet.begin(seed, number, items, folder)
        for fault in draw_faults(seed, number):
            if fault.awaits_recovery:
                fleet.await_service(RECOVERY_SECONDS_MAX)
            fleet.work(fault.after_seconds)
            fleet.strike(fault)
        fleet.note("the faults are over")
        fleet.await_end(SETTLED_SECONDS_MAX)
        fleet.await_servers(RECOVERY_SECONDS_MAX)
    except (Defect, TimeoutError) as fault:
        schedule.violations.append(Violation("every_process_does_its_work", str(fault)))
        schedule.log, schedule.faults = fleet.log, fleet.struck
        if isinstance(fault, Defect):
            return schedule  # the work was broken off
    fleet.end()
    schedule.log, schedule.faults = fleet.log, fleet.struck
    with fleet.clients() as clients:
        ledger = read_ledger(clients, fleet.postgres, number)
    account, notes = read_books(folder / "books.sqlite"), [*read_journals(folder)]
    schedule.records = ledger.records
    schedule.faults.update(account.faults)
    schedule.faults.update(note["fault"] for note in notes if "fault" in note)
    schedule.violations += judge(Scene(ledger, account.lines, notes, items))
    return schedule

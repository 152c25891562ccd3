"""Runs many schedules of one seed, sums up what they met, and keeps what broke."""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, count
from math import inf
from pathlib import Path
from typing import Final

from tests.crash.fleet import Fleet
from tests.crash.schedule import Schedule, simulated

STORY: Final = "story.txt"
"""The file in the folder of a schedule that broke a rule: all of what it broke, and the faults."""
VIOLATIONS_SHOWN_MAX: Final = 5


@dataclass(slots=True)
class Summary:
    """What a number of schedules came to."""

    schedules: int = 0
    effects: int = 0
    violations: int = 0
    stories: list[str] = field(default_factory=list[str])
    """What broke, a schedule each: how to see it again, the first violations, where it is kept."""
    faults: Counter[str] = field(default_factory=Counter[str])
    steps: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def __str__(self) -> str:
        return (
            f"schedules={self.schedules} effects={self.effects}"
            f" faults={self.faults.total()} violations={self.violations}"
        )

    def add(self, schedule: Schedule) -> None:
        self.schedules += 1
        self.effects += len(schedule.records)
        self.violations += len(schedule.violations)
        self.faults.update(schedule.faults)
        for record in schedule.records:
            self.steps.update((one.transition, one.to_state) for one in record.events)


@dataclass(frozen=True, slots=True)
class Soak:
    """Which schedules to run: how many, or for how long, and with how many effects each."""

    seed: int
    effects: int
    first: int = 0
    schedules: int | None = None
    seconds: float = inf

    def replay(self, number: int) -> str:
        """Return the command that runs one of the schedules again."""
        return (
            f"python -m tests.crash --seed {self.seed} --first {number} --schedules 1"
            f" --effects {self.effects}"
        )

    def numbers(self) -> Iterator[int]:
        """Count schedules, until there were enough or the time is over."""
        deadline = time.monotonic() + self.seconds
        last = self.first + self.schedules if self.schedules is not None else inf
        for number in count(self.first):
            if number >= last or time.monotonic() >= deadline:
                return
            yield number


def soak(asked: Soak, folder: Path, tell: Callable[[str], None]) -> Summary:
    """Run the schedules, and tell a line of each. The folder of one that breaks a rule is kept."""
    summary = Summary()
    numbers = asked.numbers()
    for first in numbers:
        home = folder / f"from-{first}"
        with Fleet(home) as fleet:
            is_well = all(
                _is_well(asked, fleet, number, summary, tell) for number in chain([first], numbers)
            )
        # Its processes may not be what they should: the next schedule gets others.
        if is_well:
            shutil.rmtree(home)
    return summary


def _is_well(
    asked: Soak, fleet: Fleet, number: int, summary: Summary, tell: Callable[[str], None]
) -> bool:
    began_at, place = time.monotonic(), fleet.folder / f"schedule-{number}"
    place.mkdir()
    schedule = simulated(fleet, asked.seed, number, asked.effects, place)
    summary.add(schedule)
    broken = schedule.violations
    tell(
        f"schedule={number} effects={len(schedule.records)} faults={schedule.faults.total()}"
        f" violations={len(broken)} seconds={time.monotonic() - began_at:.1f}"
    )
    if not broken:
        shutil.rmtree(place)
        return True
    story = "\n\n".join([asked.replay(number), *map(str, broken), "\n".join(schedule.log)])
    (place / STORY).write_text(story)
    shown = [asked.replay(number), *map(str, broken[:VIOLATIONS_SHOWN_MAX]), f"kept in {place}"]
    summary.stories.append("\n\n".join(shown))
    tell(summary.stories[-1])
    return False

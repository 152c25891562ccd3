"""Simulated time, and the processes in it, each of which may be paused or killed at any step."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from typing import Any, Final

from tests.simulation.chance import Chance

STEPS_MAX: Final = 8000
"""What has not come to rest by then never will: the longest that did took a third of it."""


@dataclass(slots=True, eq=False)
class Box:
    """Where one answer is awaited, for ``timeout`` seconds at most. The first answer counts."""

    timeout: float
    answer: Any = None
    process: "Process | None" = None
    turn: int = -1


Script = Generator[float | Box, None, None]
"""What a process does.

It yields how long it sleeps, or the box that it waits at; all else happens at once.
"""


@dataclass(slots=True, eq=False)
class Process:
    """One process: ``start`` begins its script anew after each kill."""

    name: str
    start: Callable[[], Script]
    script: Script
    is_mortal: bool
    turn: int = 0


@dataclass(slots=True)
class Faults:
    """How likely each kind of fault is at each chance for it; and how often each has happened."""

    rates: dict[str, float] = field(default_factory=dict[str, float])
    are_on: bool = True
    met: dict[str, int] = field(default_factory=dict[str, int])


class Engine:
    """The clock, in seconds since the beginning, and what is to come."""

    def __init__(self, chance: Chance, faults: Faults) -> None:
        self.now = 0.0
        self.chance = chance
        self.faults = faults
        self.trace: list[tuple[float, str, str, str]] = []
        self.steps = 0
        self._coming: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def note(self, who: str, what: str, about: str = "") -> None:
        """Write a line of the schedule's trace."""
        self.trace.append((self.now, who, what, about))

    def fault(self, kind: str) -> bool:
        """Tell whether a fault strikes now."""
        rate = self.faults.rates.get(kind, 0.0) if self.faults.are_on else 0.0
        if not rate or not self.chance.happens(rate):
            return False
        self.faults.met[kind] = self.faults.met.get(kind, 0) + 1
        return True

    def after(self, seconds: float, happens: Callable[[], None]) -> None:
        """Let something happen later."""
        self._count += 1
        heappush(self._coming, (self.now + seconds, self._count, happens))

    def spawn(self, name: str, start: Callable[[], Script], *, is_mortal: bool = True) -> None:
        """Start a process."""
        process = Process(name, start, start(), is_mortal)
        self.after(0.0, partial(self._step, process, process.turn))

    def deliver(self, box: Box, answer: object) -> None:
        """Put an answer into a box, and wake whoever waits at it."""
        if box.answer is not None:
            return
        box.answer = answer
        if box.process is not None and box.process.turn == box.turn:
            self.after(0.0, partial(self._step, box.process, box.turn))

    def run(self, until: float, *, is_over: Callable[[], bool] = lambda: False) -> None:
        """Let time pass until a moment, until all is over, or for a bounded number of steps."""
        while self._coming and self._coming[0][0] <= until and not is_over():
            if self.steps >= STEPS_MAX:
                return
            self.steps += 1
            self.now, _, happens = heappop(self._coming)
            happens()

    def _step(self, process: Process, turn: int) -> None:
        if process.turn != turn:
            return  # The answer came before the end of the wait, or a kill before both.
        if process.is_mortal and self.faults.are_on and self._struck(process):
            return
        process.turn += 1
        try:
            waits = next(process.script)
        except StopIteration:
            return
        if isinstance(waits, Box):
            waits.process, waits.turn = process, process.turn
            wait_seconds = 0.0 if waits.answer is not None else waits.timeout
        else:
            wait_seconds = waits
        self.after(wait_seconds, partial(self._step, process, process.turn))

    def _struck(self, process: Process) -> bool:
        if self.fault("kill"):
            self.note(process.name, "is killed")
            process.script.close()
            process.turn += 1
            process.script = process.start()
            self.after(self.chance.between(0.1, 15.0), partial(self._step, process, process.turn))
            return True
        if self.fault("pause"):
            seconds = self.chance.between(1.0, 40.0)
            self.note(process.name, f"is paused for {seconds:.1f} s")
            self.after(seconds, partial(self._resume, process, process.turn))
            return True
        return False

    def _resume(self, process: Process, turn: int) -> None:
        is_mortal, process.is_mortal = process.is_mortal, False
        self._step(process, turn)
        process.is_mortal = is_mortal

"""Runs many schedules of one seed, sums up what they met, and tells what broke as a short story."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.simulation.chance import Chance, shortened
from tests.simulation.product import Product
from tests.simulation.rules import Fault, judge
from tests.simulation.schedule import Schedule, run


@dataclass(slots=True)
class Summary:
    """What a number of schedules came to."""

    schedules: int = 0
    effects: int = 0
    violations: list[tuple[str, Fault]] = field(default_factory=list[tuple[str, Fault]])
    """Each with the name of its schedule, ``<seed>:<number>``."""
    faults: Counter[str] = field(default_factory=Counter[str])
    steps: Counter[str] = field(default_factory=Counter[str])
    ends: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    digest: str = ""

    def __str__(self) -> str:
        return (
            f"schedules={self.schedules} effects={self.effects}"
            f" faults={self.faults.total()} violations={len(self.violations)}"
        )


def simulated(seed: int, number: int, product: Product) -> tuple[Schedule, list[Fault]]:
    """Run one schedule of a seed, and judge it."""
    schedule = run(Chance(f"{seed}:{number}"), product)
    return schedule, judge(schedule)


def soak(seed: int, count: int, *, first: int = 0, product: Product | None = None) -> Summary:
    """Run ``count`` schedules of a seed, from the ``first`` one on."""
    summary, traces = Summary(), hashlib.sha256()
    for number in range(first, first + count):
        schedule, faults = simulated(seed, number, product or Product())
        records = schedule.site.store.records.values()
        summary.schedules += 1
        summary.effects += len(records)
        summary.violations += [(f"{seed}:{number}", fault) for fault in faults]
        summary.faults.update(schedule.faults)
        for record in records:
            summary.steps.update(one.transition for one in record.events)
            summary.ends[record.effect.effect_class, record.state] += 1
        traces.update(repr(schedule.trace).encode())
    summary.digest = traces.hexdigest()
    return summary


def story(name: str, rule: str, product: Product | None = None) -> Iterator[str]:
    """Tell the shortest story that breaks a rule as the schedule of this name does, by lines."""
    used = product or Product()

    def breaks(choices: list[float]) -> bool:
        return any(fault.rule == rule for fault in judge(run(Chance(choices), used)))

    schedule = run(Chance(shortened(run(Chance(name), used).choices, breaks)), used)
    broken = next(fault for fault in judge(schedule) if fault.rule == rule)
    yield f"{rule}: {broken.what}"
    contracts = {
        one.effect.tool: one.version.contract for one in schedule.site.store.records.values()
    }
    for contract in contracts.values():
        source = contract.evidence
        yield (
            f"    {contract.name}: {contract.effect_class}, source of evidence:"
            f" {source.consistency if source else 'none'}"
        )
    for at, who, what, about in schedule.trace:
        if not broken.about or about in ("", broken.about):
            yield f"    {at:9.3f} s  {who}: {what}"

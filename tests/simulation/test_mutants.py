"""Each rule can fail: the simulator finds every product that has one part broken."""

import pytest

from tests.simulation.mutants import MUTANTS, Mutant
from tests.simulation.rules import RULES, SITE_RULES
from tests.simulation.soak import simulated

SCHEDULES_MAX = 3000


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=list(MUTANTS))
def test_a_broken_part_is_found(mutant: Mutant):
    for number in range(SCHEDULES_MAX):
        _, faults = simulated(1, number, mutant.product)
        if any(fault.rule == mutant.rule.__name__ for fault in faults):
            return
    pytest.fail(f"{mutant.rule.__name__} says nothing in {SCHEDULES_MAX} schedules")


def test_every_rule_has_a_broken_product():
    judged = {rule.__name__ for rule in (*RULES, *SITE_RULES)}
    assert {one.rule.__name__ for one in MUTANTS.values()} == judged
    assert {name[:7] for name in judged if name.startswith("rule_")} == {
        f"rule_{number:02}" for number in range(1, 13)
    }

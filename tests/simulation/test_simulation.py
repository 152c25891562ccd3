"""Ten thousand schedules of everything that can go wrong, in simulated time, and the rules hold.

    python -m tests.simulation --seed 1 --first 4711 --schedules 1

shows one of them again, with the shortest story of what it breaks.
"""

import os
import subprocess
import sys
from collections import Counter

import pytest

from ledger.state import CLOSED, State
from ledger.transition import TRANSITIONS
from tallystick.effect_class import EffectClass
from tests.simulation.chance import Chance, shortened
from tests.simulation.schedule import RATES
from tests.simulation.soak import Summary, soak, story
from tests.tidy.rules import ROOT

SEED = 1
SCHEDULES = 10_000
STORIES_MAX = 3
SECONDS_MAX = 120


@pytest.fixture(scope="module")
def summary() -> Summary:
    return soak(SEED, SCHEDULES)


def simulation(*arguments: str, hash_seed: int = 0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )


def test_no_schedule_breaks_a_rule(summary: Summary):
    told = [
        "\n".join([f"seed {SEED}, schedule {name}", *story(name, fault.rule)])
        for name, fault in summary.violations[:STORIES_MAX]
    ]
    assert not summary.violations, "\n\n".join([str(summary), *told])
    assert summary.schedules == SCHEDULES


def test_every_transition_and_every_fault_is_met(summary: Summary):
    assert set(summary.steps) == {one.id for one in TRANSITIONS}
    assert set(summary.faults) == set(RATES)


@pytest.mark.parametrize("effect_class", EffectClass)
def test_effects_of_every_class_end_well_badly_and_with_a_person(
    summary: Summary, effect_class: EffectClass
):
    ends = {state for one, state in summary.ends if one == effect_class}
    assert ends >= {State.SUCCEEDED, State.FAILED, State.QUARANTINED}
    assert ends <= CLOSED | {State.QUARANTINED}


def test_a_seed_gives_one_trace_in_every_process():
    again = simulation("--seed", "7", "--schedules", "200", hash_seed=1)
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout == simulation("--seed", "7", "--schedules", "200", hash_seed=2).stdout
    here = soak(7, 200)
    assert again.stdout.splitlines() == [f"digest={here.digest}", str(here)]
    assert str(here).startswith("schedules=200 effects=")
    assert str(here).endswith(" violations=0")


def test_another_seed_gives_another_trace():
    assert soak(7, 20).digest != soak(8, 20).digest


def test_what_breaks_is_told_with_its_seed_and_its_shortest_story():
    mutant = "lets everybody send what is dispatched"
    broken = simulation("--seed", "1", "--schedules", "5", "--mutant", mutant)
    assert broken.returncode == 1, broken.stdout + broken.stderr
    _, found, what, *shown, digest, last = broken.stdout.splitlines()
    assert found.startswith("seed 1, schedule ")
    assert what.startswith("rule_01_nothing_is_sent_before_it_is_durable: ")
    assert any("T2 PLANNED -> DISPATCHED" in line for line in shown)
    assert Counter("sends with fence" in line for line in shown)[True] > 1
    assert len(shown) < 40
    assert digest.startswith("digest=")
    assert "violations=0" not in last


def test_a_story_is_made_of_fewer_and_calmer_choices():
    noisy = [0.3, 0.9, 0.1, 0.8, 0.7, 0.2]

    def has_both(choices: list[float]) -> bool:
        return 0.9 in choices and 0.7 in choices and choices.index(0.9) < choices.index(0.7)

    assert shortened(noisy, has_both) == [0.9, 0.7]


def test_choices_replay_and_then_are_calm():
    drawn = Chance("a seed")
    first = [drawn.draw() for _ in range(3)]
    again = Chance(drawn.choices)
    assert [again.draw() for _ in range(3)] == first
    assert not again.happens(0.99)
    assert again.pick("abc") == "a"
    assert again.between(2.0, 9.0) == 2.0

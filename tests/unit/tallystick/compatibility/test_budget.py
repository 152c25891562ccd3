"""Steps run out, and say so."""

from typing import Any

import pytest

from tallystick.compatibility.budget import Budget, BudgetSpent
from tallystick.compatibility.judging import Side, judge
from tallystick.compatibility.verdict import Answer, Obstacle


def test_the_last_step_may_be_taken_and_none_after_it():
    budget = Budget(2)
    budget.spend(2)

    with pytest.raises(BudgetSpent):
        budget.spend()


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_a_judgement_that_costs_more_is_undecided(steps: int):
    branches: list[Any] = [{"required": [f"p{index}"]} for index in range(30)]
    old, new = Side({"allOf": branches}), Side({"oneOf": branches})

    said = judge(old, new, Budget(steps))

    assert (said.verdict, said.obstacle) == (Answer.UNDECIDED, Obstacle("", "", "budget"))

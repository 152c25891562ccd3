"""What one comparison may cost: so many steps, and then the answer is "undecided"."""

from typing import Final

STEPS: Final = 200_000


class BudgetSpent(Exception):
    """The steps of a comparison are used up."""


class Budget:
    """The steps that are left of one comparison.

    Args:
        steps: How many there are. A step is one small thing done: a constraint looked at, a
            character class followed, a value tried.
    """

    __slots__ = ("left",)

    def __init__(self, steps: int = STEPS) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Take steps away.

        Raises:
            BudgetSpent: There are not so many left.
        """
        self.left -= steps
        if self.left < 0:
            raise BudgetSpent

"""How budgets that are wider than a run are given out. Pure."""

from decimal import ROUND_FLOOR, Decimal
from typing import Final

_SHARE: Final = 16
"""A slice is at most this part of what is left, so that towards the end little lies idle."""


def slice_of(*, left: Decimal, needed: Decimal, most: Decimal) -> Decimal:
    """Return how many units a run is given that needs some now; 0 where they are not left.

    A run that gets more than it needs comes back less often; what it does not use lies idle until
    the pool is empty and takes it back.

    >>> [int(slice_of(left=Decimal(left), needed=Decimal(1), most=Decimal(10)))
    ...  for left in (1000, 100, 20, 1, 0)]
    [10, 6, 1, 1, 0]

    Args:
        left: What the pool has not given out.
        needed: What the run needs now.
        most: The largest slice.
    """
    if needed > left:
        return Decimal(0)
    share = (left / _SHARE).to_integral_value(ROUND_FLOOR)
    return max(needed, min(most, share))

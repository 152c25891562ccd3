"""How a shared budget is given out in slices."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.budget import slice_of

UNITS = st.decimals(min_value=0, max_value=10**6, places=3)


@pytest.mark.parametrize(
    ("left", "needed", "most", "units"),
    [
        ("1000", "1", "10", "10"),  # enough for everybody: a whole slice
        ("100", "1", "10", "6"),  # a sixteenth of what is left
        ("20", "1", "10", "1"),  # towards the end no more than is needed
        ("1", "1", "10", "1"),  # the last one
        ("0.5", "1", "10", "0"),  # too little
        ("1000", "25", "10", "25"),  # one call may need more than a slice
        ("0", "0", "10", "0"),
    ],
)
def test_the_size_of_a_slice(left: str, needed: str, most: str, units: str):
    found = slice_of(left=Decimal(left), needed=Decimal(needed), most=Decimal(most))
    assert found == Decimal(units)


@given(left=UNITS, needed=UNITS, most=UNITS)
def test_a_slice_is_enough_or_nothing_and_never_more_than_is_left(
    left: Decimal, needed: Decimal, most: Decimal
):
    found = slice_of(left=left, needed=needed, most=most)
    assert found == 0 or needed <= found <= left
    assert found <= max(needed, most)
    assert found > 0 or needed > left or needed == 0

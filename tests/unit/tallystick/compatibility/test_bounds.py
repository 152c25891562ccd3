"""Sizes as pairs of atoms say them, plain and negated."""

import pytest

from tallystick.compatibility.algebra.node import Algebra, MaxItems, MinItems, MinLength
from tallystick.compatibility.search.bounds import Bounds


@pytest.mark.parametrize(
    ("kind", "is_negated", "least", "most"),
    [
        (MinItems, False, 3, None),
        (MinItems, True, 0, 2),  # not at least three: at most two
        (MaxItems, False, 0, 3),
        (MaxItems, True, 4, None),  # not at most three: at least four
    ],
)
def test_an_atom_raises_the_least_or_lowers_the_most(
    kind: type[MinItems | MaxItems], is_negated: bool, least: int, most: int | None
):
    algebra, bounds = Algebra(), Bounds()
    atom = algebra.make(kind, 3)

    assert bounds.take(algebra.negate(atom) if is_negated else atom, MinItems, MaxItems)
    assert (bounds.least, bounds.most) == (least, most)


def test_the_narrower_bound_counts():
    bounds = Bounds(least=2, most=5)
    bounds.at_least(1)
    bounds.at_most(7)

    assert (bounds.least, bounds.most) == (2, 5)
    assert [count for count in range(9) if bounds.admit(count)] == [0, 1, 2, 3, 4, 5]


def test_a_least_beyond_the_most_is_empty():
    assert Bounds(least=2, most=1).is_empty
    assert not Bounds(least=2, most=2).is_empty
    assert not Bounds(least=2).is_empty


def test_an_atom_of_another_kind_is_left_alone():
    bounds = Bounds()

    assert not bounds.take(Algebra().make(MinLength, 3), MinItems, MaxItems)
    assert bounds == Bounds()

"""Numbers: bounds and factors, decided exactly."""

from fractions import Fraction
from typing import Any

import pytest

from tallystick.compatibility.algebra.node import Algebra, AtLeast, AtMost, MultipleOf, Node
from tallystick.compatibility.budget import Budget
from tallystick.compatibility.search.number_search import find_number
from tallystick.compatibility.search.outcome import Outcome, Stuck
from tests.unit.tallystick.compatibility.asked import rules, witness

NUMBER: dict[str, Any] = {"type": "number"}
INTEGER: dict[str, Any] = {"type": "integer"}
ONE = Fraction(1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (NUMBER | {"minimum": 1}, {"minimum": 0}),
        (NUMBER | {"exclusiveMinimum": 1}, {"minimum": 1}),
        (NUMBER | {"maximum": 1}, {"exclusiveMaximum": 1.5}),
        (NUMBER | {"minimum": 2, "maximum": 1}, False),
        (NUMBER | {"minimum": 3, "exclusiveMaximum": 3}, False),
        (NUMBER | {"exclusiveMinimum": 3, "maximum": 3}, False),
        (NUMBER | {"minimum": 3, "maximum": 3, "exclusiveMaximum": 3}, False),
        (NUMBER | {"minimum": 3, "exclusiveMinimum": 3, "maximum": 3}, False),
        (NUMBER | {"minimum": 5, "maximum": 5}, {"const": 5}),
    ],
)
def test_bounds_that_leave_nothing_close_by_the_interval(old: Any, new: Any):
    assert rules(old, new) == {"interval"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (NUMBER | {"multipleOf": 6}, {"multipleOf": 3}),
        (NUMBER | {"multipleOf": 0.1}, {"multipleOf": 0.01}),
        (NUMBER | {"allOf": [{"multipleOf": 4}, {"multipleOf": 6}]}, {"multipleOf": 12}),
        (INTEGER | {"allOf": [{"multipleOf": 0.75}]}, {"multipleOf": 3}),
        (INTEGER | {"exclusiveMinimum": 1, "exclusiveMaximum": 2}, False),
        (INTEGER | {"minimum": -1, "maximum": 1}, {"enum": [-1, 0, 1]}),
    ],
)
def test_factors_that_leave_nothing_close_by_their_multiples(old: Any, new: Any):
    assert rules(old, new) == {"multiples"}


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        (NUMBER | {"minimum": 0}, {"exclusiveMinimum": 0}, 0),
        (NUMBER | {"maximum": 7}, {"maximum": 6.75}, 7),
        (NUMBER, INTEGER, 0.1),
        (NUMBER | {"multipleOf": 0.01}, {"multipleOf": 0.1}, 0.01),
        (NUMBER | {"multipleOf": 6}, {"multipleOf": 4}, 6),
        (INTEGER | {"minimum": 1, "maximum": 3}, {"enum": [1, 3]}, 2),
        (INTEGER | {"minimum": 0}, {"enum": [*range(10)]}, 10),
        (
            INTEGER | {"minimum": 0},
            {"anyOf": [{"multipleOf": 2}, {"multipleOf": 3}, {"const": 1}]},
            5,
        ),
        (NUMBER | {"exclusiveMinimum": 1, "exclusiveMaximum": 1.001}, False, 1.0001),
        (INTEGER | {"minimum": 9007199254740993}, {"minimum": 9007199254740994}, 9007199254740993),
    ],
)
def test_a_number_in_between_is_found(old: Any, new: Any, value: float):
    assert witness(old, new) == value


def test_one_and_one_point_zero_are_the_same_number():
    assert rules({"const": 1.0}, {"const": 1}) == {"identity"}
    assert rules({"const": 2.0}, INTEGER) == {"enum"}


def found_of(*nodes: Node) -> Outcome:
    return find_number(nodes, Budget(10_000))


def test_a_number_without_a_double_is_no_witness():
    algebra = Algebra()
    third = algebra.make(MultipleOf, ONE / 3)

    outcome = found_of(third, algebra.negate(algebra.make(MultipleOf, ONE)))

    assert outcome == Stuck("multipleOf", "a number has no exact double")


def test_a_number_beyond_all_doubles_is_no_witness():
    algebra = Algebra()
    bound = algebra.make(AtLeast, ONE * 10**400, is_exclusive=True)

    outcome = found_of(bound, algebra.make(MultipleOf, ONE / 2))

    assert outcome == Stuck("multipleOf", "a number has no exact double")


def test_bounds_too_close_together_are_not_said_to_be_empty():
    algebra = Algebra()
    low = algebra.make(AtLeast, ONE, is_exclusive=True)
    high = algebra.make(AtMost, ONE + ONE / 10**40, is_exclusive=True)

    assert isinstance(found_of(low, high), Stuck)

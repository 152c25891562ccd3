"""Keys of values: equal exactly where JSON Schema calls the values equal."""

from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

from tallystick.compatibility.algebra.value import (
    Kind,
    key_of,
    kind_of,
    kind_of_key,
    number_of,
    value_of,
)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (0, -0.0),
        ([1, {"a": 2}], [1.0, {"a": 2.0}]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (1e3, 1000),
    ],
)
def test_equal_values_have_equal_keys(left: Any, right: Any):
    assert key_of(left) == key_of(right)
    assert hash(key_of(left)) == hash(key_of(right))


DIFFERENT: list[Any] = [
    *(None, False, True, 0, 1, 0.1, "", "1", "object", "array", [], [0], [False], [[]], [None]),
    *(["boolean", 0], ["object"], {}, {"a": 0}, {"a": False}, {"a": None}, {"b": 0}, [{"a": 0}]),
    *([["a", 0]], 2**53, 2**53 + 1, 10**40),
]


def test_different_values_have_different_keys():
    for left, right in combinations(DIFFERENT, 2):
        assert key_of(left) != key_of(right)


@pytest.mark.parametrize("value", DIFFERENT)
def test_a_key_gives_its_value_back(value: Any):
    assert value_of(key_of(value)) == value
    assert kind_of_key(key_of(value)) is kind_of(value)


def test_a_boolean_is_no_number():
    assert kind_of(True) is Kind.BOOLEAN
    assert kind_of(1) is kind_of(1.5) is Kind.NUMBER


def test_a_double_is_the_decimal_that_is_written():
    assert number_of(0.1) == Fraction(1, 10)
    assert number_of(1e-7) == Fraction(1, 10**7)
    assert isinstance(number_of(2.0), int)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_has_no_key(number: float):
    with pytest.raises(ValueError, match="not finite"):
        key_of([number])

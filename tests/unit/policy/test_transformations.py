"""Transformations are exact, and give null where they do not fit."""

from typing import Any

import pytest

from tallystick.policy.transformations import TRANSFORMATIONS, transformed

CASES: list[tuple[str, Any, Any]] = [
    ("lower", "Ana@Example.COM", "ana@example.com"),
    ("lower", 5, None),
    ("upper", "eur", "EUR"),
    ("upper", ["eur"], None),
    ("trim", " a b\n", "a b"),
    ("trim", None, None),
    ("text", "a", "a"),
    ("text", 123, "123"),
    ("text", 1.0, "1"),
    ("text", True, "true"),
    ("text", [1], None),
    ("number", 5, 5),
    ("number", "5", 5),
    ("number", "-0.10", -0.1),
    ("number", "1e3", 1000),
    ("number", "1.00", 1),
    ("number", True, None),
    ("number", "five", None),
    ("number", " 5", None),
    ("number", "0x10", None),
    ("number", "٣", None),
    ("number", "05", None),
    ("number", "0.1000000000000000055", None),
    ("number", "9007199254740993", None),
    ("number", "9" * 100, None),
    ("number", "1e999", None),
    ("number", "1e-999", None),
    ("length", "abc", 3),
    ("length", [1, 2], 2),
    ("length", {"a": 1}, 1),
    ("length", 5, None),
    ("first", [3, 4], 3),
    ("first", [], None),
    ("first", "abc", None),
    ("last", [3, 4], 4),
    ("last", [], None),
    ("sum", [0.1, 0.2], 0.3),
    ("sum", [1, 2.5], 3.5),
    ("sum", [], 0),
    ("sum", [1, "2"], None),
    ("sum", [1, True], None),
    ("sum", 5, None),
    ("sum", [9007199254740991, 1], None),
    ("sum", [1.0, 1e-300], None),
    ("min", [3, 1.5], 1.5),
    ("min", [], None),
    ("min", [3, None], None),
    ("max", [3, 1.5], 3),
    ("max", ["3"], None),
    ("max", [], None),
]


@pytest.mark.parametrize(("name", "value", "result"), CASES)
def test_a_transformation_gives(name: str, value: Any, result: Any):
    given = transformed(value, [name])
    assert given == result
    assert type(given) is type(result)


def test_every_transformation_has_a_case_that_fits_and_one_that_does_not():
    assert {name for name, _, result in CASES if result is not None} == TRANSFORMATIONS.keys()
    assert {name for name, _, result in CASES if result is None} == TRANSFORMATIONS.keys()


def test_transformations_follow_one_another_until_one_does_not_fit():
    assert transformed([" A ", "b"], ["first", "trim", "lower", "length"]) == 1
    assert transformed([], ["first", "trim", "length"]) is None

"""Witnesses are made as small as they can be, at a bounded cost."""

from collections.abc import Callable
from typing import Any

import pytest

from tallystick.canonical import Json
from tallystick.compatibility.shrink import shrunk


def is_list_or_object(value: Json) -> bool:
    return isinstance(value, list | dict)


def has_text(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list | dict)
        and any(map(has_text, value if isinstance(value, list) else value.values()))
    )


@pytest.mark.parametrize(
    ("value", "is_witness", "smallest"),
    [
        ({"a": 1, "b": 2}, lambda value: is_list_or_object(value) and "b" in value, {"b": 0}),
        ([None, True, "x"], lambda value: is_list_or_object(value) and len(value) > 1, [True, "x"]),
        ({"a": [1, {"b": "xyz", "c": 2}]}, has_text, "x"),
        ("abcdefgh", lambda value: len(value) >= 3, "abcd"),
        (1_000, lambda value: value > 0, 1),
        (0.5, lambda value: value < 1, 0.5),
        (True, lambda value: value is True, True),
        (None, lambda value: value is None, None),
    ],
)
def test_what_is_left_out_does_not_matter(
    value: Json, is_witness: Callable[[Any], bool], smallest: Json
):
    assert shrunk(value, is_witness) == smallest


def test_what_cannot_be_made_smaller_is_left():
    value = {"a": [1, 2], "b": "text"}

    assert shrunk(value, lambda candidate: candidate == value) == value


def test_a_large_value_is_shrunk_at_a_bounded_cost():
    asked: list[Json] = []

    def is_witness(candidate: Json) -> bool:
        asked.append(None)
        return isinstance(candidate, list) and len(candidate) >= 4_000

    value: list[Json] = [0] * 5_000
    smaller = shrunk(value, is_witness)

    assert isinstance(smaller, list)
    assert 4_000 <= len(smaller) <= 5_000
    assert len(asked) <= 20

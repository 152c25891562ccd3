"""Operators compare what they fit, exactly, and convert nothing."""

from typing import Any

import pytest

from tallystick.policy.operators import LAWS, Kind, Operator, kind_of

# operator, left, right, whether it holds; None where it compares no such values
CASES: list[tuple[str, Any, Any, bool | None]] = [
    ("eq", 1, 1.0, True),
    ("eq", 0.1, 0.1, True),
    ("eq", "a", "a", True),
    ("eq", "a", "A", False),
    ("eq", True, True, True),
    ("eq", True, 1, None),
    ("eq", 1, True, None),
    ("eq", "1", 1, None),
    ("eq", None, 1, None),
    ("eq", [1, {"a": 2}], [1.0, {"a": 2}], True),
    ("eq", [True], [1], False),
    ("eq", [1], [1, 1], False),
    ("eq", {"a": 1}, {"a": True}, False),
    ("eq", {"a": 1}, {"b": 1}, False),
    ("eq", float("nan"), float("nan"), None),
    ("eq", None, None, None),
    ("eq", [None], [None], True),
    ("eq", [None], [0], False),
    ("ne", 1, 2, True),
    ("ne", 1, 1.0, False),
    ("ne", None, None, None),
    ("ne", [True], [1], True),
    ("ne", "1", 1, None),
    ("gt", 150.01, 150, True),
    ("gt", 150, 150, False),
    ("gt", 9007199254740991, 9007199254740990.0, True),
    ("gt", "200", 150, None),
    ("gt", "b", "a", None),
    ("gt", True, 0, None),
    ("gt", float("inf"), 1, None),
    ("gt", 1, float("nan"), None),
    ("gte", 100, 100.0, True),
    ("gte", 99.99, 100, False),
    ("gte", None, 100, None),
    ("lt", 1, 2, True),
    ("lt", 2, 2, False),
    ("lt", [], 2, None),
    ("lte", 2, 2, True),
    ("lte", 2.5, 2, False),
    ("lte", {}, 2, None),
    ("in", "EUR", ["EUR", "USD"], True),
    ("in", "GBP", ["EUR", "USD"], False),
    ("in", 1, [True, 1], True),
    ("in", 1, [True], None),
    ("in", 5, ["EUR"], None),
    ("in", "a", "abc", None),
    ("in", "a", [], False),
    ("in", None, [], None),
    ("in", None, [None], None),
    ("not_in", "GBP", ["EUR"], True),
    ("not_in", "EUR", ["EUR"], False),
    ("not_in", "a", [], True),
    ("not_in", 5, ["EUR"], None),
    ("not_in", None, [], None),
    ("contains", "refund it", "refund", True),
    ("contains", "pay", "refund", False),
    ("contains", ["a", "b"], "b", True),
    ("contains", ["a"], "b", False),
    ("contains", [], "b", False),
    ("contains", [1], "b", None),
    ("contains", 5, "b", None),
    ("contains", [], None, None),
    ("contains", "a1", 1, None),
    ("not_contains", ["a"], "b", True),
    ("not_contains", "abc", "b", False),
    ("not_contains", 5, "b", None),
    ("starts_with", "LK-1", "LK-", True),
    ("starts_with", "XX-1", "LK-", False),
    ("starts_with", 1, "1", None),
    ("ends_with", "a@example.com", "@example.com", True),
    ("ends_with", "a@evil.example", "@example.com", False),
    ("ends_with", ["a"], "a", None),
    ("matches", "LK-123456", "^LK-[0-9]{6}$", True),
    ("matches", "see LK-123456 there", "LK-[0-9]{6}", True),
    ("matches", "LK-1", "^LK-[0-9]{6}$", False),
    ("matches", 1, "1", None),
    ("not_matches", "LK-1", "^LK-[0-9]{6}$", True),
    ("not_matches", "LK-123456", "^LK-[0-9]{6}$", False),
    ("not_matches", 1, "1", None),
    ("not_matches", None, "1", None),
    ("exists", 0, None, True),
    ("exists", "", None, True),
    ("exists", None, None, False),
    ("not_exists", None, None, True),
    ("not_exists", False, None, False),
]


@pytest.mark.parametrize(("operator", "left", "right", "outcome"), CASES)
def test_an_operator_compares(operator: str, left: Any, right: Any, outcome: bool | None):
    law = LAWS[Operator(operator)]
    assert law.fits(left, right) is (outcome is not None)
    if outcome is not None:
        assert law.holds(left, right) is outcome


def test_every_operator_has_a_case_of_each_outcome():
    for operator in Operator:
        alone = operator in (Operator.EXISTS, Operator.NOT_EXISTS)
        outcomes = {outcome for name, *_, outcome in CASES if name == operator}
        assert outcomes == ({True, False} if alone else {True, False, None}), operator


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, Kind.NULL),
        (True, Kind.BOOLEAN),
        (1, Kind.NUMBER),
        (1.5, Kind.NUMBER),
        ("", Kind.STRING),
        ([], Kind.LIST),
        ({}, Kind.OBJECT),
        (float("nan"), Kind.OTHER),
        (float("-inf"), Kind.OTHER),
        (object(), Kind.OTHER),
    ],
)
def test_every_value_has_a_kind(value: Any, kind: Kind):
    assert kind_of(value) is kind


def test_a_pattern_takes_linear_time():
    """A backtracking engine takes longer than the universe has been there."""
    law = LAWS[Operator.MATCHES]
    assert law.holds("a" * 50_000, "^(a+)+$")
    assert not law.holds("a" * 50_000 + "b", "^(a+)+$")

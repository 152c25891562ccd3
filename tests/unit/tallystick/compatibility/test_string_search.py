"""Strings: lengths and patterns are decided, formats are tried."""

from typing import Any

import pytest

from tallystick.subschema import DRAFT_04, DRAFT_2020_12
from tests.unit.tallystick.compatibility.asked import obstacle, rules, witness

STRING: dict[str, Any] = {"type": "string"}


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (STRING | {"minLength": 3}, {"minLength": 2}, "length"),
        (STRING | {"maxLength": 2}, {"maxLength": 3}, "length"),
        (STRING | {"minLength": 3, "maxLength": 2}, False, "length"),
        (STRING | {"pattern": "^a+$"}, {"pattern": "a"}, "language"),
        (STRING | {"pattern": "^a{3}$"}, {"minLength": 3, "maxLength": 3}, "language"),
        (STRING | {"pattern": "^[ab]$"}, {"enum": ["a", "b"]}, "language"),
        (
            STRING | {"pattern": "^a", "not": {"pattern": "^.b"}, "minLength": 2},
            {"pattern": "^a[^b]"},
            "language",
        ),
        (STRING | {"maxLength": 0}, {"const": ""}, "language"),
        (STRING | {"enum": ["2026-01-31"]}, {"maxLength": 10}, "enum"),
    ],
)
def test_no_string_is_left(old: Any, new: Any, rule: str):
    assert rules(old, new) == {rule}


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        (STRING, {"minLength": 1}, ""),
        (STRING | {"minLength": 3}, {"maxLength": 2}, "aaa"),
        (STRING | {"maxLength": 2}, {"maxLength": 1}, "aa"),
        (STRING | {"pattern": "^[ab]$"}, {"enum": ["a"]}, "b"),
        (STRING | {"pattern": "^[0-9]{2}$"}, {"pattern": "^[0-8]+$"}, "09"),
        (STRING | {"pattern": "^(x|yy)$", "minLength": 2}, False, "yy"),
        (STRING | {"pattern": "^é$"}, {"maxLength": 0}, "é"),
    ],
)
def test_a_string_is_found(old: Any, new: Any, value: str):
    assert witness(old, new) == value


def test_a_length_counts_code_points():
    assert rules(STRING | {"pattern": "^\U0001f600$"}, {"maxLength": 1}) == {"language"}


def test_a_string_that_long_is_not_made():
    stopped = obstacle(STRING | {"minLength": 1_000_000}, {"minLength": 1_000_001})

    assert (stopped.keyword, stopped.reason) == (
        "minLength",
        "a string as long as asked is not made",
    )


def test_a_format_is_an_annotation_unless_it_is_asserted():
    assert witness(STRING | {"format": "date"}, {"minLength": 1}) == ""
    assert "language" not in rules(STRING, {"format": "date"})


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        (STRING, {"format": "date"}, "a"),
        (STRING | {"format": "date"}, {"format": "date-time"}, "2026-01-31"),
        (STRING | {"format": "ipv4"}, {"maxLength": 8}, "192.0.2.1"),
        (STRING | {"format": "email"}, {"format": "idn-email", "maxLength": 9}, "a@example.org"),
    ],
)
def test_an_asserted_format_is_tried(old: Any, new: Any, value: str):
    assert witness(old, new, assert_format=True) == value


def test_an_asserted_format_within_itself_is_a_contradiction():
    old = {"type": "string", "format": "date", "minLength": 1}

    assert rules(old, {"format": "date"}, assert_format=True) == {"contradiction"}


def test_what_a_format_implies_beyond_its_outline_is_not_known():
    old, new = STRING | {"format": "email"}, {"pattern": "^[^@]+@"}

    assert obstacle(old, new, assert_format=True).keyword == "format"


def test_only_the_formats_of_a_dialect_count():
    old, new = STRING, {"format": "uuid"}

    assert witness(old, new, DRAFT_2020_12, assert_format=True) == "a"
    rules(old, new, DRAFT_04, assert_format=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (STRING | {"format": "date"}, {"pattern": r"^\d{4}-"}),
        (STRING | {"format": "uuid"}, {"minLength": 36, "maxLength": 36}),
        (STRING | {"format": "email"}, {"minLength": 1}),
        (STRING | {"format": "ipv4", "pattern": "^[a-z]"}, False),
        (STRING | {"pattern": "^[a-z]+$"}, {"not": {"format": "date-time"}}),
    ],
)
def test_what_all_texts_of_an_asserted_format_have_in_common_is_known(old: Any, new: Any):
    assert "language" in rules(old, new, assert_format=True)

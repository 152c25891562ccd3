"""Arrays: what is asked of items, of how many of them, and of their being distinct."""

from typing import Any

import pytest

from tests.unit.tallystick.compatibility.asked import obstacle, rules, witness

ARRAY: dict[str, Any] = {"type": "array"}
INTEGERS = {"items": {"type": "integer"}}
ONE_OR_TWO = {"items": {"enum": [1, 2]}}
UNIQUE = {"uniqueItems": True}
TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (ARRAY | {"minItems": 2}, {"minItems": 1}),
        (ARRAY | {"minItems": 2, "maxItems": 1}, False),
        (ARRAY | {"contains": TEXT, "minContains": 2}, {"minItems": 2}),
        (ARRAY | {"maxItems": 1}, UNIQUE),
        (ARRAY | {"maxItems": 1}, {"prefixItems": [True, False]}),
        (ARRAY | {"maxItems": 2}, {"prefixItems": [True, True], "items": False}),
    ],
)
def test_more_items_are_asked_for_than_there_may_be(old: Any, new: Any):
    assert rules(old, new) == {"maxItems"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # each item
        (ARRAY | INTEGERS, {"items": {"type": "number"}}),
        (ARRAY | {"items": {"type": "null"}}, {"prefixItems": [{"const": None}]}),
        (ARRAY | {"prefixItems": [TEXT], "items": False}, {"items": TEXT}),
        (ARRAY | {"items": False}, {"maxItems": 0}),
        # how many of them
        (ARRAY | INTEGERS | {"minItems": 1}, {"contains": {"type": "number"}}),
        (ARRAY | INTEGERS, {"contains": TEXT, "minContains": 0, "maxContains": 0}),
        (ARRAY | {"prefixItems": [TEXT], "minItems": 1}, {"contains": TEXT}),
        (ARRAY | {"contains": TEXT, "minContains": 3}, {"contains": TEXT, "minContains": 2}),
        (ARRAY | {"contains": TEXT, "maxContains": 1}, {"contains": TEXT, "maxContains": 2}),
        (ARRAY | {"contains": TEXT, "not": INTEGERS}, {"minItems": 1}),
        # distinct ones
        (ARRAY | UNIQUE | ONE_OR_TWO, {"maxItems": 2}),
        (ARRAY | ONE_OR_TWO | {"minItems": 3}, {"not": UNIQUE}),
        (
            ARRAY | UNIQUE | {"prefixItems": [{"const": 1}], "items": {"enum": [1, 2]}},
            {"maxItems": 2},
        ),
        (ARRAY | {"prefixItems": [{"const": 1}, {"const": 2}], "maxItems": 2}, UNIQUE),
        (ARRAY | UNIQUE | {"items": {"const": 1}}, {"maxItems": 1}),
        (ARRAY | UNIQUE | {"items": {"type": "boolean"}}, {"maxItems": 2}),
    ],
)
def test_no_array_is_left(old: Any, new: Any):
    assert rules(old, new) & {"items", "maxItems"}


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        (ARRAY, {"minItems": 1}, []),
        (ARRAY | ONE_OR_TWO | {"minItems": 2}, {"not": UNIQUE}, [1, 2]),
        (ARRAY | ONE_OR_TWO, UNIQUE, [1, 1]),
        (ARRAY | {"prefixItems": [{"const": 1}], "items": {"const": 2}}, UNIQUE, [1, 2, 2]),
        (ARRAY | {"items": {"type": "null"}}, {"maxItems": 2}, [None, None, None]),
        (ARRAY | {"items": {"enum": [1, "a"]}}, {"items": {"type": "integer"}}, ["a"]),
        (ARRAY | {"items": {"type": "null"}}, {"contains": {"const": None}}, []),
        (ARRAY | ONE_OR_TWO, {"prefixItems": [True, {"const": 1}]}, [1, 2]),
        (ARRAY | ONE_OR_TWO | {"contains": {"const": 2}}, {"items": {"const": 2}}, [1, 2]),
        (
            ARRAY | ONE_OR_TWO | {"contains": {"const": 1}, "minContains": 2, "maxContains": 2},
            {"maxItems": 2},
            [2, 1, 1],
        ),
        (
            ARRAY | UNIQUE | {"prefixItems": [{"enum": [1, 2]}, {"const": 1}], "minItems": 2},
            {"maxItems": 1},
            [2, 1],
        ),
    ],
)
def test_an_array_is_found(old: Any, new: Any, value: list[Any]):
    assert witness(old, new) == value


def test_equal_items_are_those_that_json_schema_calls_equal():
    items = {"prefixItems": [{"const": 1}, {"const": 1.0}], "minItems": 2}
    others = {"prefixItems": [{"const": 1}, {"const": True}], "minItems": 2}

    assert rules(ARRAY | items, {"not": UNIQUE}) & {"items"}
    assert witness(ARRAY | others, {"not": UNIQUE}) == [1, True]


def test_a_long_array_is_found_where_nothing_asks_for_its_items_one_by_one():
    assert witness(ARRAY | {"minItems": 1_000, "items": {"const": 0}}, False) == [0] * 1_000


def test_an_array_that_long_is_not_made():
    stopped = obstacle(ARRAY | {"minItems": 1_000_000}, {"minItems": 1_000_001})

    assert (stopped.keyword, stopped.reason) == ("minItems", "so many items are not made")


def test_a_long_array_with_items_to_choose_is_not_said_to_be_impossible():
    chosen = {"contains": {"minimum": 60}, "minContains": 0, "maxContains": 340}
    old = ARRAY | UNIQUE | {"items": {"enum": [*range(360)]}, "minItems": 350} | chosen

    assert obstacle(old, False).reason == "the array is too long"

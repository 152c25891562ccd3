"""Which arguments name objects, and what a result tells of them."""

from typing import Any

import pytest

from tallystick.identifiers import Ownership, identifier_of, identifiers_in, named_at, owner_told


@pytest.mark.parametrize(
    ("arguments", "pointer", "found"),
    [
        ({"id": "a"}, "/id", [("/id", "a")]),
        ({}, "/id", []),
        ({"id": None}, "/id", []),
        ({"ids": ["a", "b", None]}, "/ids", [("/ids/0", "a"), ("/ids/1", "b")]),
        ({"ids": ["a", "b"]}, "/ids/1", [("/ids/1", "b")]),
        ({"ids": ["a"]}, "/ids/1", []),
        ({"lines": [{"id": "a"}, {}, {"id": "b"}]}, "/lines/id", [("/lines/0/id", "a"),
                                                                  ("/lines/2/id", "b")]),
        ({"lines": [{"id": "a"}, {"id": "b"}]}, "/lines/1/id", [("/lines/1/id", "b")]),
        ({"a/b": {"~": "x"}}, "/a~1b/~0", [("/a~1b/~0", "x")]),
        ({"grid": [["a"], ["b"]]}, "/grid", [("/grid/0/0", "a"), ("/grid/1/0", "b")]),
        # No other shape of the arguments leads past a check.
        ({"order": "a"}, "/order/id", [("/order", "a")]),
        ({"order": {"id": "a"}}, "/order", [("/order", {"id": "a"})]),
    ],
)  # fmt: skip
def test_a_pointer_means_each_that_it_leads_to(arguments: Any, pointer: str, found: Any):
    assert list(named_at(arguments, pointer)) == found


@pytest.mark.parametrize(
    ("value", "identifier"),
    [("a", "a"), ("", ""), (7, 7), (7.0, 7), (7.5, None), (True, None), (None, None), ([], None)],
)
def test_texts_and_whole_numbers_name_things(value: Any, identifier: Any):
    found = identifier_of(value)
    assert (type(found), found) == (type(identifier), identifier)


def test_a_result_holds_its_texts_numbers_and_names():
    result: Any = {"orders": {"LK-1": {"lines": [7, 1.5, True, None, "see LK-2"]}}}
    assert set(identifiers_in(result)) == {"orders", "LK-1", "lines", 7, "see LK-2"}


OWNERSHIP = Ownership("/order_id", "order", "customer_id", "orders.get", "/query/id", "/customer")


@pytest.mark.parametrize(
    ("arguments", "result", "told"),
    [
        ({"query": {"id": "LK-1"}}, {"customer": "C-1"}, ("LK-1", "C-1")),
        ({"query": {"id": "LK-1"}}, {}, ("LK-1", None)),
        ({"query": {"id": "LK-1"}}, {"customer": None}, ("LK-1", None)),
        ({}, {"customer": "C-1"}, None),
        ({"query": {"id": ["LK-1", "LK-2"]}}, {"customer": "C-1"}, None),
    ],
)
def test_the_declared_tool_tells_who_owns_what(arguments: Any, result: Any, told: Any):
    assert owner_told(OWNERSHIP, arguments, result) == told

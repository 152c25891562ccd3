"""What people have at hand is compared in both directions, and the changes agree with both."""

from typing import Any

import pytest

from tallystick.compatibility.contracts.documents import (
    BareSchema,
    compare_documents,
    read_document,
)
from tallystick.errors import InvalidContract

NULLABLE = {"type": ["string", "null"]}
UNREACHABLE = {"type": "object", "properties": {"a": NULLABLE}, "not": {"required": ["a"]}}
NARROWED = {**UNREACHABLE, "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(("old", "new"), [(UNREACHABLE, NARROWED), (NARROWED, UNREACHABLE)])
def test_no_change_breaks_a_direction_that_is_proven(old: Any, new: Any):
    told: Any = compare_documents(BareSchema(old), BareSchema(new))
    directions = ("old_to_new", "new_to_old")

    assert [told[each]["declared"]["verdict"] for each in directions] == ["compatible"] * 2
    assert told["changes"]
    assert [change["breaks"] for change in told["changes"]] == [[]] * len(told["changes"])


def test_what_has_no_input_schema_is_a_schema():
    assert read_document({"type": "string"}) == BareSchema({"type": "string"})


def test_what_is_neither_is_refused():
    with pytest.raises(InvalidContract):
        read_document({"type": "text"})

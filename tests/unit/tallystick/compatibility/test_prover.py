"""The library's prover: only its yes counts."""

from typing import Any

import pytest

from tallystick.canonical import Json
from tallystick.compatibility.prover import proves

TEXT: Any = {"type": "string"}
DATE: Any = {"type": "string", "format": "date"}


@pytest.mark.parametrize(
    ("writer", "reader", "is_proven"),
    [
        ({"type": "integer"}, {"type": "number"}, True),
        ({"type": "number"}, {"type": "integer"}, False),
        (False, {"type": "integer"}, True),
        ({"type": "string", "minLength": 2}, {"minLength": 1}, True),
    ],
)
def test_containment_is_proven(writer: Json, reader: Json, is_proven: bool):
    assert proves(writer, reader, assert_format=False) is is_proven


def test_a_format_counts_where_it_is_asserted():
    assert proves(TEXT, DATE, assert_format=False)
    assert not proves(TEXT, DATE, assert_format=True)


def test_a_schema_that_it_does_not_take_is_not_proven():
    remote: Any = {"$ref": "https://example.org/elsewhere"}

    assert not proves(remote, remote, assert_format=False)


def test_a_large_schema_is_not_put_to_it():
    large: Any = {"enum": ["x" * 100 + str(index) for index in range(1_000)]}

    assert not proves(large, TEXT, assert_format=False)


def test_a_schema_of_many_parts_is_not_put_to_it():
    small: Any
    large: Any
    small, large = ({"properties": {f"p{n}": TEXT for n in range(count)}} for count in (10, 100))

    assert proves(small, small, assert_format=False)
    assert not proves(large, large, assert_format=False)

"""The formats that are listed are those that the validator asserts."""

import pytest

from tallystick.compatibility.algebra.formats import SAMPLES, has_format
from tallystick.schema import Validator
from tallystick.subschema import DIALECTS, FORMATS

NAMES = frozenset().union(*FORMATS.values()) | {"color", "phone", "ip-address", "utc-millisec"}
TEXTS = (*SAMPLES, "2026-02-30", "::", "%", "\\", "a@", "P")


def test_every_dialect_has_its_formats():
    assert {*FORMATS} == {*DIALECTS}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_format_that_refuses_a_text_is_listed(name: str, dialect: str):
    validator = Validator.of({"format": name}, dialect, assert_format=True)
    refused = [text for text in TEXTS if not validator.is_valid(text)]

    assert bool(refused) is (name in FORMATS[dialect])
    if name in FORMATS[dialect]:
        assert refused == [text for text in TEXTS if not has_format(text, name, dialect)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_some_sample_has_each_format(dialect: str):
    for name in FORMATS[dialect]:
        assert any(has_format(text, name, dialect) for text in SAMPLES), name

"""Whatever the validator takes for a text of a format has the outline of that format."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.compatibility.algebra.formats import OUTLINES, SAMPLES, has_format
from tallystick.subschema import FORMATS, compile_pattern

TEXTS = (
    *SAMPLES,
    *("2016-12-31t23:59:60.5+01:00", "23:59:60z", "P1Y2M3DT4H5M6.5S", "PT1H", "P1W", "::", "1::8"),
    *("::ffff:1.2.3.4", "255.255.255.255", '"a b"@example.org', "a@[192.0.2.1]", "/a~0b/~1"),
    *("{00000000-0000-4000-8000-00000000000A}", "00000000000040008000000000000000"),
)
ALPHABET = '0123456789abcdefABCDEFTtZzPYMDHSW:-+./~%@ \n"[]{}_٣０'
CASES = [(name, dialect) for name in OUTLINES for dialect in FORMATS if name in FORMATS[dialect]]


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Make a text that is near to one of some format."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        new = draw(st.text(ALPHABET, max_size=2))
        text = text[:at] + new + text[at + draw(st.integers(0, 2)) :]
    return text


@pytest.mark.parametrize(("name", "dialect"), CASES)
@settings(deadline=None)
@given(texts())
def test_a_text_of_a_format_has_its_outline(name: str, dialect: str, text: str):
    if has_format(text, name, dialect):
        assert compile_pattern(OUTLINES[name]).is_valid(text)


@pytest.mark.parametrize(("name", "dialect"), CASES)
def test_some_text_has_the_format(name: str, dialect: str):
    assert any(has_format(text, name, dialect) for text in TEXTS)

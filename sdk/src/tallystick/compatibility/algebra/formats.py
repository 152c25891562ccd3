"""What is known of asserted formats: an outline of some, samples, and the validator's word."""

from functools import lru_cache
from typing import Final

from tallystick.schema import Validator

# What every text of a format matches, and others may match too: enough to prove something with.
OUTLINES: Final = {
    "date": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "date-time": "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}",
    "duration": "^P[0-9T]",
    "email": "@",
    "idn-email": "@",
    "ipv4": "^[0-9]{1,3}([.][0-9]{1,3}){3}$",
    "ipv6": "^[0-9A-Fa-f:.]{2,45}$",
    "json-pointer": "^(/|$)",
    "time": "^[0-9]{2}:[0-9]{2}:[0-9]{2}",
    "uuid": "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$",
}

# Texts to try where a text of a format, or one that is none, is wanted.
SAMPLES: Final = (
    "a@example.org",
    "2026-01-31T12:00:00Z",
    "2026-01-31",
    "12:00:00Z",
    "P1D",
    "example.org",
    "münchen.example",
    "jörg@münchen.example",
    "192.0.2.1",
    "2001:db8::1",
    "https://example.org/a",
    "https://example.org/ä",
    "/a",
    "a",
    "0",
    "1/a",
    "00000000-0000-4000-8000-000000000000",
    "https://example.org/{id}",
    "",
    " ",
    "{",
    "[",
    "-",
    "~",
    "a b",
    "é",
)


@lru_cache(maxsize=128)
def _validator(name: str, dialect: str) -> Validator:
    return Validator.of({"format": name}, dialect, assert_format=True)


def has_format(text: str, name: str, dialect: str) -> bool:
    """Tell whether a text has one of the formats that the dialect asserts."""
    return _validator(name, dialect).is_valid(text)

"""The formats that the validator asserts, dialect by dialect; it lets any other pass."""

from functools import lru_cache
from typing import Final

import jsonschema_rs

from tallystick.subschema import DRAFT_04, DRAFT_06, DRAFT_07, DRAFT_2020_12

_DRAFT_04: Final = frozenset(
    {"date", "date-time", "email", "hostname", "idn-email", "ipv4", "ipv6", "regex", "time", "uri"}
)
_DRAFT_06: Final = _DRAFT_04 | {"json-pointer", "uri-reference", "uri-template"}
_DRAFT_07: Final = _DRAFT_06 | {
    "idn-hostname",
    "iri",
    "iri-reference",
    "relative-json-pointer",
}

FORMATS: Final = {
    DRAFT_04: _DRAFT_04,
    DRAFT_06: _DRAFT_06,
    DRAFT_07: _DRAFT_07,
    DRAFT_2020_12: _DRAFT_07 | {"duration", "uuid"},
}

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
def _validator(name: str, dialect: str) -> jsonschema_rs.Validator:
    kind = {
        DRAFT_04: jsonschema_rs.Draft4Validator,
        DRAFT_06: jsonschema_rs.Draft6Validator,
        DRAFT_07: jsonschema_rs.Draft7Validator,
        DRAFT_2020_12: jsonschema_rs.Draft202012Validator,
    }[dialect]
    return kind({"format": name}, validate_formats=True)


def has_format(text: str, name: str, dialect: str) -> bool:
    """Tell whether a text has a format of `FORMATS`."""
    return _validator(name, dialect).is_valid(text)

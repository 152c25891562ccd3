"""The library's prover, behind one function.

`jsonschema-rs` decides containment of canonical forms. That part of it is experimental: it is
pinned, only its YES is believed, and in the tests every YES is attacked by the search.
"""

import json
from importlib.metadata import version
from typing import Final

import jsonschema_rs

from tallystick.canonical import Json
from tallystick.subschema import Subschemas, regex_options

# It cannot be interrupted, and takes minutes for some schemas of a few hundred parts: so it is
# asked about small ones, for which it takes a second at worst.
_CHARS_MAX: Final = 64 * 1024
_POSITIONS_MAX: Final = 80

PROVER: Final = f"jsonschema-rs {version('jsonschema-rs')}"


def proves(writer: Json, reader: Json, *, assert_format: bool) -> bool:
    """Tell whether the prover shows that the reader accepts all that the writer may write.

    Args:
        writer: The writer's schema, in 2020-12.
        reader: The reader's schema, in 2020-12.
        assert_format: Whether `format` is more than an annotation, for both.
    """
    if sum(1 for schema in (writer, reader) for _ in Subschemas(schema)) > _POSITIONS_MAX:
        return False
    try:
        wide, narrow = (_canonical(schema, assert_format) for schema in (reader, writer))
        return wide.covers(narrow) is jsonschema_rs.canonical.Containment.YES
    except ValueError:
        return False


def _canonical(
    schema: Json,
    assert_format: bool,  # noqa: FBT001 -- said by name where it comes from
) -> jsonschema_rs.CanonicalSchema:
    if not isinstance(schema, dict | bool) or len(json.dumps(schema)) > _CHARS_MAX:
        raise ValueError("not a schema that is put to the prover")
    return jsonschema_rs.canonicalize(
        schema,
        draft=jsonschema_rs.Draft202012,
        validate_formats=assert_format,
        pattern_options=regex_options(),
        offline=True,
    )

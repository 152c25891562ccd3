"""JSON Schema as contracts use it: what of it is structure, what is refused, what it says of values.

Schemas come from strangers, so that everything is bounded before anything is compiled: size, depth,
patterns (linear time only), references (inside the document only) and the number of evaluations.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, cast

from tallystick.canonical import (
    Json,
    MalformedJson,
    canonical_bytes,
    check_json,
    pointer_join,
)
from tallystick.errors import InvalidContract, TooLarge
from tallystick.subschema import (
    KEYWORDS,
    REFERENCES,
    Form,
    Position,
    Scope,
    Subschemas,
    anchors,
    compile_pattern,
    parts,
)

if TYPE_CHECKING:
    import jsonschema_rs

DRAFT_2020_12: Final = "https://json-schema.org/draft/2020-12/schema"
DRAFT_07: Final = "http://json-schema.org/draft-07/schema#"
DIALECTS: Final = (DRAFT_2020_12, DRAFT_07)

SCHEMA_BYTES_MAX: Final = 256 * 1024
SCHEMA_DEPTH_MAX: Final = 64
PATTERNS_MAX: Final = 128
# How often one value may be looked at, and through how many schemas that each only point on: beyond
# these a validator takes exponential time, or runs out of stack.
EVALUATIONS_MAX: Final = 20_000
HOPS_MAX: Final = 32
VIOLATIONS_MAX: Final = 20

ANNOTATIONS: Final = frozenset({"title", "description", "examples", "$comment", "deprecated"})
SENSITIVE: Final = "x-sensitive"
REDACTED: Final = "x-redacted"

# Keywords whose arrays are sets, and those that map names to such arrays.
_SETS: Final = frozenset({"required", "enum", "type"})
_MAPS_OF_SETS: Final = frozenset({"dependentRequired", "dependencies"})

# Constraints of one dialect that the other passes over in silence.
_FOREIGN: Final = {
    DRAFT_2020_12: frozenset({"additionalItems", "dependencies"}),
    DRAFT_07: frozenset(
        {
            "$anchor",
            "$dynamicAnchor",
            "$dynamicRef",
            "dependentRequired",
            "dependentSchemas",
            "maxContains",
            "minContains",
            "prefixItems",
            "unevaluatedItems",
            "unevaluatedProperties",
        }
    ),
}


# --- structure ------------------------------------------------------------------------------------


def structure(schema: Json) -> Json:
    """Return what of a schema is structure: all but annotations, with sets in canonical order.

    Annotations go at schema positions only, so that a property *named* `description` stays. What no
    dialect knows (`x-...`) is kept whole, and so are `default` and `const`.

    Raises:
        InvalidContract: The schema is nested too deeply, or is not JSON.
    """
    return _structure(_bounded(schema, ""))


def _structure(schema: Json) -> Json:
    if not isinstance(schema, dict):
        return schema
    return {
        keyword: _structural_value(keyword, value)
        for keyword, value in schema.items()
        if keyword not in ANNOTATIONS
    }


def _structural_value(keyword: str, value: Json) -> Json:
    if keyword in _SETS:
        return _as_set(value)
    if keyword in _MAPS_OF_SETS and isinstance(value, dict):
        value = {name: _as_set(item) for name, item in value.items()}
    match value, list(parts(keyword, value)):
        case _, []:
            return value
        case list(), schemas:
            return [_structure(part) for _, part in schemas]
        case dict(), [((), part)]:
            return _structure(part)
        case dict(), schemas:
            return value | {str(name): _structure(part) for (name,), part in schemas}
        case _:
            return value


def _as_set(value: Json) -> Json:
    if not isinstance(value, list):
        return value
    return [item for _, item in sorted({canonical_bytes(item): item for item in value}.items())]


# --- what may be published ------------------------------------------------------------------------


def check_schema(schema: Json, *, dialect: str, pointer: str) -> None:
    """Refuse a schema that cannot be held to, or that would cost too much to hold to.

    Args:
        schema: The schema.
        dialect: One of `DIALECTS`.
        pointer: Where the schema stands in its document; every fault's pointer begins with it.

    Raises:
        InvalidContract: It is no schema of the dialect; a reference leaves the document, loops or
            points at no schema; a pattern needs backtracking; it is nested more than
            `SCHEMA_DEPTH_MAX` deep or takes too many evaluations.
        TooLarge: Its canonical form is longer than `SCHEMA_BYTES_MAX` bytes.
    """
    if len(canonical_bytes(_bounded(schema, pointer))) > SCHEMA_BYTES_MAX:
        raise TooLarge(f"a schema is larger than {SCHEMA_BYTES_MAX} bytes", pointer=pointer)
    _check_form(schema, dialect, pointer)
    positions = Subschemas(schema)
    _check_names(positions, pointer)
    for position in positions:
        for place, detail in _faults(positions, position, dialect):
            raise InvalidContract(detail, pointer=pointer + position.pointer + place)
    _check_patterns(positions, pointer)
    _check_cost(positions, pointer)
    try:
        _compiled(canonical_bytes(schema).decode(), dialect, assert_format=False)
    except ValueError as error:
        raise InvalidContract(f"not a usable schema: {_first_line(error)}", pointer=pointer) from error

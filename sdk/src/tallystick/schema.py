"""JSON Schema as contracts use it: what is structure, what is refused, what is said of a value.

Schemas come from strangers, so that everything is bounded before anything is compiled: size, depth,
patterns (linear time only), references (inside the document only) and the number of evaluations.
"""

import json
import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final

from tallystick.canonical import (
    Json,
    MalformedJson,
    canonical_bytes,
    check_json,
    count_values,
)
from tallystick.errors import InvalidContract, TooLarge
from tallystick.schema_faults import EVALUATIONS_MAX, evaluations, first_line, schema_faults
from tallystick.subschema import (
    DIALECTS,
    DRAFT_04,
    DRAFT_06,
    DRAFT_07,
    DRAFT_2020_12,
    SENSITIVE,
    Position,
    Subschemas,
    map_parts,
    regex_options,
)
from tallystick.violation import VIOLATIONS_MAX, Violation, explain

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = [
    "ANNOTATIONS",
    "DIALECTS",
    "DRAFT_04",
    "DRAFT_06",
    "DRAFT_07",
    "DRAFT_2020_12",
    "REDACTED",
    "SCHEMA_BYTES_MAX",
    "SCHEMA_DEPTH_MAX",
    "SENSITIVE",
    "Validator",
    "Violation",
    "check_schema",
    "has_sensitive",
    "redact",
    "structure",
]

SCHEMA_BYTES_MAX: Final = 256 * 1024
SCHEMA_DEPTH_MAX: Final = 64

EXPLAIN_COST_MAX: Final = 100_000
VALIDATION_COST_MAX: Final = 10_000_000
REDACTION_STEPS_MAX: Final = 200_000

_CHARS_OF_A_VALUE: Final = (
    16  # as long as a text of so many is looked through, a value is looked at
)

ANNOTATIONS: Final = frozenset({"title", "description", "examples", "$comment", "deprecated"})
REDACTED: Final = "x-redacted"

_CONTENT: Final = re.compile("/contentSchema(?=/|$)")

# Keywords whose arrays are sets, and those that map names to such arrays.
_SETS: Final = frozenset({"required", "enum", "type"})
_MAPS_OF_SETS: Final = frozenset({"dependentRequired", "dependencies"})


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
    return map_parts(keyword, value, _structure)


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
    text = canonical_bytes(_bounded(schema, pointer))
    if len(text) > SCHEMA_BYTES_MAX:
        raise TooLarge(f"a schema is larger than {SCHEMA_BYTES_MAX} bytes", pointer=pointer)
    fault = next(schema_faults(schema, dialect), None)
    if fault is not None:
        place, detail = fault
        raise InvalidContract(detail, pointer=pointer + place)
    try:
        _compiled(text.decode(), dialect, assert_format=False)
    except ValueError as error:
        raise InvalidContract(f"not a schema: {first_line(error)}", pointer=pointer) from error


def _bounded(schema: Json, pointer: str) -> Json:
    try:
        return check_json(schema, depth_max=SCHEMA_DEPTH_MAX)
    except MalformedJson as error:
        raise InvalidContract(error.detail, pointer=pointer + error.pointer) from None


# --- what a schema says of a value ----------------------------------------------------------------


class Validator:
    """A schema compiled once, to judge any number of values.

    Regular expressions run in linear time, nothing is ever fetched, and `format` is an annotation
    unless `assert_format` says otherwise. Equal schemas share one compiled form.
    """

    def __init__(self, schema: Json, text: str, engine: "jsonschema_rs.Validator") -> None:
        self._schema = schema
        self._text = text
        self._engine = engine

    @classmethod
    def of(
        cls,
        schema: Json,
        dialect: str = DRAFT_2020_12,
        assert_format: bool = False,  # noqa: FBT001, FBT002 -- as a contract names them, in order
    ) -> "Validator":
        """Compile a schema that `check_schema` accepts.

        Args:
            schema: The schema.
            dialect: One of `DIALECTS`.
            assert_format: Whether a value must have the `format` that the schema names.

        Raises:
            ValueError: The schema cannot be compiled.
        """
        text = json.dumps(schema, sort_keys=True, allow_nan=False)
        return cls(schema, text, _compiled(text, dialect, assert_format=assert_format))

    def is_valid(self, value: Json) -> bool:
        """Return whether the value obeys the schema."""
        return self._engine.is_valid(value)

    def violations(self, value: Json) -> tuple[Violation, ...]:
        """Return how the value breaks the schema: nothing if it does not, `VIOLATIONS_MAX` at most.

        A value that would cost more than `VALIDATION_COST_MAX` to look at, or `EXPLAIN_COST_MAX` to
        explain, as a deep one under a recursive schema may, is refused as a whole.
        """
        if not self._is_affordable(value):
            return (Violation("", "schema", "the value is too large for what the schema asks"),)
        if self.is_valid(value):
            return ()
        if not self._is_explainable(value):
            return (
                Violation(
                    "", "schema", "the value breaks the schema, and is too large to say where"
                ),
            )
        return explain(islice(self._engine.iter_errors(value), VIOLATIONS_MAX))

    def _is_affordable(self, value: Json) -> bool:
        size = _size(value)
        return (
            size * EVALUATIONS_MAX <= VALIDATION_COST_MAX
            or size * _evaluations(self._text) <= VALIDATION_COST_MAX
        )

    @cached_property
    def _positions(self) -> Subschemas:
        return Subschemas(self._schema)

    def _is_explainable(self, value: Json) -> bool:
        # The engine's verdict takes polynomial time. Its errors take exponential time where schemas
        # recur, and each is copied on every level above it: so a step costs as much as its depth.
        budget = EXPLAIN_COST_MAX - count_values(value, EXPLAIN_COST_MAX)
        pending: list[Iterator[tuple[Position, Json]]] = [iter([(self._positions.root, value)])]
        while pending and budget > 0:
            step = next(pending[-1], None)
            if step is None:
                pending.pop()
                continue
            budget -= len(pending)
            pending.append(self._positions.applied(*step))
        return budget > 0


@lru_cache(maxsize=512)
def _compiled(text: str, dialect: str, *, assert_format: bool) -> "jsonschema_rs.Validator":
    import jsonschema_rs

    draft = {
        DRAFT_2020_12: jsonschema_rs.Draft202012Validator,
        DRAFT_07: jsonschema_rs.Draft7Validator,
        DRAFT_06: jsonschema_rs.Draft6Validator,
        DRAFT_04: jsonschema_rs.Draft4Validator,
    }[dialect]
    return draft(
        text,
        # A validator of draft-07 may assert them or not. What a contract means by them is the same
        # in every dialect: nothing that a value could break.
        keywords={"contentEncoding": _Annotation, "contentMediaType": _Annotation},
        mask="the value",
        pattern_options=regex_options(),
        retriever=_refuse_to_fetch,
        validate_formats=assert_format,
    )


@lru_cache(maxsize=512)
def _evaluations(text: str) -> int:
    return evaluations(json.loads(text))


def _size(value: Json) -> int:
    """Return of how many values and names a value is made; a long text counts as several."""
    size, pending = 0, [value]
    while pending:
        size += 1
        match pending.pop():
            case dict() as members:
                pending.extend(members)
                pending.extend(members.values())
            case list() as items:
                pending.extend(items)
            case str() as text:
                size += len(text) // _CHARS_OF_A_VALUE
            case _:
                pass
    return size


class _Annotation:
    """A keyword that the engine must not assert."""

    def __init__(self, parent_schema: object, value: object, schema_path: object) -> None:
        pass

    def validate(self, instance: object) -> None:
        """Accept every value."""


def _refuse_to_fetch(uri: str) -> Json:
    raise ValueError(f"references are never fetched: {uri}")


# --- sensitive values -----------------------------------------------------------------------------


def has_sensitive(schema: Json) -> bool:
    """Return whether a schema marks any value as sensitive."""
    return bool(_sensitive(Subschemas(schema)))


def redact(value: Json, schema: Json) -> Json:
    """Return the value with every part that the schema marks `"x-sensitive": true` replaced.

    One schema that says so is enough, be it behind a reference or one of several alternatives. What
    stands in a part's place is `{"x-redacted": true}`. So does it for all that is left when the
    value has cost `REDACTION_STEPS_MAX`.
    """
    positions = Subschemas(schema)
    sensitive = _sensitive(positions)
    return _Redaction(positions, sensitive).of(value, [positions.root]) if sensitive else value


class _Redaction:
    """Visits a value once, together with the schemas that apply to each part of it."""

    def __init__(self, positions: Subschemas, sensitive: frozenset[str]) -> None:
        self._positions = positions
        self._sensitive = sensitive
        self._left = REDACTION_STEPS_MAX

    def of(self, value: Json, start: list[Position]) -> Json:
        if self._left <= 0:
            return {REDACTED: True}
        applying = self._positions.closure(start)
        self._left -= 1 + len(applying)
        if any(position.pointer in self._sensitive for position in applying):
            return {REDACTED: True}
        if isinstance(value, dict):
            member = self._positions.member
            return {
                name: self.of(item, [each for one in applying for each in member(one, name)])
                for name, item in value.items()
            }
        if isinstance(value, list):
            item_of = self._positions.item
            return [
                self.of(item, [each for one in applying for each in item_of(one, index)])
                for index, item in enumerate(value)
            ]
        return value


def _sensitive(positions: Subschemas) -> frozenset[str]:
    """Return the pointers of the schemas that mark their value, or something inside its text."""
    marked = {each.pointer for each in positions if each.keywords.get(SENSITIVE) is True}
    above = (pointer[: match.start()] for pointer in marked for match in _CONTENT.finditer(pointer))
    return frozenset(marked.union(above))

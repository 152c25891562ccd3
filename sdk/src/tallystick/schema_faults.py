"""What makes a schema one that nobody can be held to, or that costs too much to hold to.

Pure: every check reads the schema and yields faults, and `tallystick.schema` decides what follows.
"""

from collections.abc import Iterator
from typing import Final

from tallystick.canonical import Json, pointer_join
from tallystick.subschema import (
    DRAFT_04,
    FOREIGN,
    REFERENCES,
    SENSITIVE,
    Position,
    Scope,
    Subschemas,
    anchors,
    compile_pattern,
)
from tallystick.violation import explain

PATTERNS_MAX: Final = 128
# How often one value may be looked at, and through how many schemas that each only lead on: beyond
# these the validator takes exponential time, or runs out of stack.
EVALUATIONS_MAX: Final = 100_000
HOPS_MAX: Final = 32
_DETAIL_CHARS_MAX: Final = 300

_PATTERN_FAULT: Final = (
    "the pattern is malformed, too large, or needs an engine that backtracks"
    " (for look-around or back-references)"
)
_UNEVALUATED: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})


def schema_faults(schema: Json, dialect: str) -> Iterator[tuple[str, str]]:
    """Yield the faults of a schema, each with its JSON Pointer.

    Only the first is sure to be one: later checks trust what earlier ones let pass. The schema is
    strict JSON of bounded depth.
    """
    positions = Subschemas(schema)
    for position in positions:
        for tokens, detail in _position_faults(positions, position, dialect):
            yield position.pointer + pointer_join(*tokens), detail
    yield from _name_faults(positions)
    yield from _pattern_faults(positions)
    yield from form_faults(schema, dialect)
    yield from cost_faults(positions)


def first_line(error: Exception) -> str:
    """Return what a library's error says in its first line, cut to a bearable length."""
    return str(error).partition("\n")[0][:_DETAIL_CHARS_MAX]


def _position_faults(
    positions: Subschemas, position: Position, dialect: str
) -> Iterator[tuple[tuple[str, ...], str]]:
    if not isinstance(position.schema, dict | bool):
        yield (), "a schema must be an object or a boolean"
    stated = position.keywords.get("$schema", dialect)
    if not isinstance(stated, str) or stated.rstrip("#") != dialect.rstrip("#"):
        yield ("$schema",), f"the contract's dialect is {dialect}, and this is another"
    for keyword in sorted(FOREIGN[dialect] & position.keywords.keys()):
        yield (keyword,), f"{keyword} means nothing in {dialect}, which would pass over it"
    for keyword in REFERENCES:
        reference = position.keywords.get(keyword)
        if isinstance(reference, str) and not reference.startswith("#"):
            yield (keyword,), "a reference must stay in its schema, and begin with #"
        elif isinstance(reference, str) and positions.target(position, reference) is None:
            yield (keyword,), "the reference points at no schema"
    if dialect == DRAFT_04 and "id" in position.keywords and position.pointer:
        yield ("id",), "below the root of a schema of draft-04 an id is not supported"
    if not isinstance(position.keywords.get(SENSITIVE, False), bool):
        yield (SENSITIVE,), f"{SENSITIVE} must be true or false"


def _name_faults(positions: Subschemas) -> Iterator[tuple[str, str]]:
    """Yield the names that leave open, or to the engine, which schema a reference means."""
    taken: set[tuple[str, str]] = set()
    for position in positions:
        names = {(position.base, name) for name in anchors(position)}
        if position.base == position.pointer and position.uri:
            names.add((position.uri, ""))
            if position.pointer and ("#" in position.uri or "//json-schema.org/" in position.uri):
                yield position.pointer + "/$id", "the identifier is not one for a part of a schema"
        if names & taken:
            yield position.pointer, "another schema has the same identifier or anchor"
        taken |= names


def form_faults(schema: Json, dialect: str) -> Iterator[tuple[str, str]]:
    """Yield where a schema is none by the metaschema of its dialect."""
    import jsonschema_rs

    if not isinstance(schema, dict):
        if dialect == DRAFT_04:
            yield "", "a schema of draft-04 must be an object"
        return
    try:
        jsonschema_rs.meta.validate({**schema, "$schema": dialect})
    except jsonschema_rs.ValidationError as error:
        for violation in explain([error]):
            yield violation.pointer, f"not valid JSON Schema: {violation.message}"


def _pattern_faults(positions: Subschemas) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for position in positions:
        for tokens, pattern in _patterns(position):
            seen.add(pattern)
            place = position.pointer + pointer_join(*tokens)
            if len(seen) > PATTERNS_MAX:
                yield place, f"a schema has more than {PATTERNS_MAX} patterns"
            try:
                compile_pattern(pattern)
            except ValueError:
                yield place, _PATTERN_FAULT


def _patterns(position: Position) -> Iterator[tuple[tuple[str, ...], str]]:
    pattern = position.keywords.get("pattern")
    if isinstance(pattern, str):
        yield ("pattern",), pattern
    named = position.keywords.get("patternProperties")
    for key in named if isinstance(named, dict) else ():
        yield ("patternProperties", key), key


def _hop_faults(positions: Subschemas) -> Iterator[tuple[str, str]]:
    """Yield schemas that lead on for ever, or too far, without a step into the value."""
    longest: dict[str, int] = {}

    def hops(position: Position, before: int) -> int:
        if position.pointer not in longest:
            longest[position.pointer] = HOPS_MAX + 1  # what a loop finds when it comes back
            if before <= HOPS_MAX:
                onward = [hops(each, before + 1) for each in positions.same_value(position)]
                longest[position.pointer] = 1 + max(onward, default=-1)
        return longest[position.pointer]

    for position in positions:
        if hops(position, 0) > HOPS_MAX:
            yield position.pointer, f"a loop, or more than {HOPS_MAX} schemas in a chain"


def cost_faults(positions: Subschemas) -> Iterator[tuple[str, str]]:
    """Yield what makes the validator run without end, or for too long."""
    yield from _hop_faults(positions)
    yield from _evaluation_faults(positions)


def _evaluation_faults(positions: Subschemas) -> Iterator[tuple[str, str]]:
    """Yield the schema under which one value is evaluated too often, if there is one."""
    for pointer, count in _evaluations(positions):
        if count > EVALUATIONS_MAX:
            yield pointer, f"the schema may look at one value more than {EVALUATIONS_MAX} times"
            return


def evaluations(schema: Json) -> int:
    """Return how often a schema without faults may look at one value, at most."""
    return dict(_evaluations(Subschemas(schema)))[""]


def _evaluations(positions: Subschemas) -> Iterator[tuple[str, int]]:
    """Yield how often each schema that is in use may look at one value, what is below first.

    The validator remembers its verdicts where references recur, so that an edge back to a schema
    under evaluation counts once; everything else is evaluated anew on each path that leads to it.
    """
    cost: dict[str, int] = {}
    entered: set[str] = set()
    pending = [(positions.root, False)]
    while pending:
        position, is_left = pending.pop()
        if is_left:
            cost[position.pointer] = _cost(positions, position, cost)
            yield position.pointer, cost[position.pointer]
        elif position.pointer not in entered:
            entered.add(position.pointer)
            pending.append((position, True))
            below = positions.held(position, Scope.MEMBER, Scope.ITEM, Scope.NAME)
            pending.extend((each, False) for each in positions.same_value(position))
            pending.extend((each, False) for each in below)


def _cost(positions: Subschemas, position: Position, cost: dict[str, int]) -> int:
    """Return how often this schema, with all below it, may look at one value, at most."""

    def costs(*keywords: str) -> list[int]:
        return [cost.get(each.pointer, 1) for each in positions.held_by(position, *keywords)]

    same = sum(cost.get(each.pointer, 1) for each in positions.same_value(position))
    # `unevaluated*` evaluates again whatever else describes the same value, twice at worst.
    again = 2 if _UNEVALUATED & position.keywords.keys() else 0
    # Two properties are two values, and so are two items: the dearest counts, not the sum.
    member = max(
        max(costs("properties"), default=0) + sum(costs("patternProperties")),
        sum(costs("additionalProperties")),
    ) + sum(costs("unevaluatedProperties"))
    item = max(costs("prefixItems", "items", "additionalItems"), default=0) + sum(
        costs("contains", "unevaluatedItems")
    )
    listed = position.keywords.get("enum")
    # Texts and numbers are looked up; lists and objects are compared with each that is listed.
    compared = (
        sum(isinstance(each, dict | list) for each in listed) if isinstance(listed, list) else 0
    )
    return 1 + compared + same * (1 + again) + max(member, item, sum(costs("propertyNames")))

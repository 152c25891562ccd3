"""Which alternatives exclude each other, as by their types or by the constant that tags each."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from tallystick.canonical import Json, canonical_bytes, pointer_split
from tallystick.subschema import Position, Subschemas

# Each is compared with each other one.
ALTERNATIVES_MAX: Final = 64

_TYPES: Final = frozenset({"array", "boolean", "null", "number", "object", "string"})


@dataclass(frozen=True, slots=True)
class _Traits:
    """What is easily seen of a schema.

    Args:
        types: The types of the values that it may accept.
        tags: For required properties, the canonical forms of the values that they may have.
    """

    types: frozenset[str]
    tags: dict[str, frozenset[bytes]]

    def excludes(self, other: "_Traits") -> bool:
        """Return whether no value can have the traits of both."""
        common = self.types & other.types
        if common - {"object"}:
            return False
        return not common or any(
            not (values & other.tags[name])
            for name, values in self.tags.items()
            if name in other.tags
        )


def are_exclusive(positions: Subschemas, alternatives: Sequence[Position]) -> bool:
    """Return whether it is easily seen that a value satisfies one alternative at most."""
    if len(alternatives) > ALTERNATIVES_MAX:
        return False
    traits = [_traits(positions, each) for each in alternatives]
    return all(one.excludes(other) for one, other in combinations(traits, 2))


def _traits(positions: Subschemas, position: Position) -> _Traits:
    types = _TYPES
    tags: dict[str, frozenset[bytes]] = {}
    required: set[str] = set()
    for each in _sure(positions, position):
        types &= _types(each)
        names = each.keywords.get("required")
        required.update(map(str, names if isinstance(names, list) else ()))
        for child in positions.held_by(each, "properties"):
            values = _values(child)
            if values is not None:
                name = pointer_split(child.pointer)[-1]
                tags[name] = tags.get(name, values) & values
    return _Traits(types, {name: values for name, values in tags.items() if name in required})


def _sure(positions: Subschemas, position: Position) -> list[Position]:
    """Return this schema and those that it applies to every value."""
    found: dict[str, Position] = {}
    pending = [position]
    while pending:
        each = pending.pop()
        if each.pointer not in found:
            found[each.pointer] = each
            pending.extend(positions.held_by(each, "allOf"))
            reference = each.keywords.get("$ref")
            target = positions.target(each, reference) if isinstance(reference, str) else None
            pending.extend(() if target is None else (target,))
    return list(found.values())


def _types(position: Position) -> frozenset[str]:
    if position.schema is False:
        return frozenset()
    types = _TYPES
    stated = position.keywords.get("type")
    if stated is not None:
        names = stated if isinstance(stated, list) else [stated]
        types &= frozenset("number" if name == "integer" else str(name) for name in names)
    for keyword in ("const", "enum"):
        if keyword in position.keywords:
            value = position.keywords[keyword]
            values = value if keyword == "enum" and isinstance(value, list) else [value]
            types &= frozenset(_type_of(each) for each in values)
    return types


def _type_of(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"


def _values(position: Position) -> frozenset[bytes] | None:
    """Return the canonical forms of the values that a schema enumerates, or None."""
    if "const" in position.keywords:
        return frozenset({canonical_bytes(position.keywords["const"])})
    values = position.keywords.get("enum")
    return frozenset(map(canonical_bytes, values)) if isinstance(values, list) else None

"""What a schema says of a value, in a form in which two schemas can be compared.

Two ways of writing one thing have one face: `const` is an `enum` of one, alternatives that differ
in type are one schema with several types, and what constrains nothing is left out. What cannot be
taken together without a change of meaning stays apart, as conjuncts and unions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tallystick.canonical import Json
from tallystick.compatibility.changes.json_key import key
from tallystick.compatibility.changes.wording import named, quoted
from tallystick.subschema import Position

ALL_TYPES: Final = frozenset({"null", "boolean", "number", "string", "array", "object"})
_NULL: Final = frozenset({"null"})
RESTS: Final = ("additionalProperties", "unevaluatedProperties")

_FAMILY_KEYWORDS: Final = {
    "string": "minLength maxLength pattern format contentEncoding contentMediaType contentSchema",
    "number": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
    "array": "items prefixItems unevaluatedItems contains minContains maxContains minItems maxItems"
    " uniqueItems",
    "object": "patternProperties additionalProperties unevaluatedProperties propertyNames"
    " minProperties maxProperties dependentRequired dependentSchemas",
}
FAMILY: Final = {
    keyword: family for family, keywords in _FAMILY_KEYWORDS.items() for keyword in keywords.split()
}

# Keywords that mean something together only: taken in from one part, or not at all.
_TOGETHER: Final = (
    frozenset({"items", "prefixItems", "unevaluatedItems"}),
    frozenset({"contains", "minContains", "maxContains"}),
    frozenset({"if", "then", "else"}),
)


def family_of(type_name: str) -> str:
    """Return a type, with `integer` as the `number` that it is."""
    return "number" if type_name == "integer" else type_name


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A keyword's value and the schema that holds it."""

    value: Json
    pointer: str
    parts: tuple[Position, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """Alternatives that are more than a choice of type."""

    keyword: str
    value: Json
    pointer: str
    branches: tuple[Position, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Face:
    """What a schema says of a value, as far as it can be told in one place.

    Args:
        at: Where the schema stands.
        types: The types that it lets through; `integer` only without `number`.
        types_at: The pointer of what says so.
        values: The values that are enumerated, by family of type; other families are unlimited.
        values_at: The pointer of what enumerates them.
        keywords: The other keywords, with whatever they hold.
        members: The declared properties.
        required: The required properties, each with the pointer of what requires it.
        notes: Prompt-facing text and defaults, by the alternative they belong to (none: an empty
            text) and keyword.
        unions: Alternatives that stay apart.
        conjuncts: Schemas that hold as well and stay apart.
    """

    at: Position
    types: frozenset[str] = ALL_TYPES
    types_at: str = ""
    values: dict[str, tuple[Json, ...]] = field(default_factory=dict[str, tuple[Json, ...]])
    values_at: str = ""
    keywords: dict[str, Held] = field(default_factory=dict[str, Held])
    members: dict[str, Position] = field(default_factory=dict[str, Position])
    required: dict[str, str] = field(default_factory=dict[str, str])
    notes: dict[tuple[str, str], Held] = field(default_factory=dict[tuple[str, str], Held])
    unions: tuple[Union, ...] = ()
    conjuncts: tuple[Position, ...] = ()

    @property
    def name(self) -> str:
        """What a reader calls the value."""
        return named(self.at.pointer)

    @property
    def families(self) -> frozenset[str]:
        """The types, with `integer` as `number`."""
        return frozenset(family_of(each) for each in self.types)

    @property
    def is_only_union(self) -> bool:
        """Whether it says nothing but a type and one choice of alternatives."""
        rest = self.values or self.keywords or self.members or self.required or self.conjuncts
        return len(self.unions) == 1 and not rest

    @property
    def is_bare(self) -> bool:
        """Whether it says nothing but a type."""
        rest = self.values or self.keywords or self.members or self.required
        return not (rest or self.unions or self.conjuncts)

    @property
    def is_anything(self) -> bool:
        """Whether it lets every value through."""
        return self.is_bare and self.types == ALL_TYPES

    def parts(self, keyword: str) -> tuple[Position, ...]:
        """Return the schemas that a keyword holds."""
        held = self.keywords.get(keyword)
        return () if held is None else held.parts


def merged(one: Face, other: Face) -> Face | None:
    """Return the face of both at once; None if taking the other in would change its meaning.

    Where both have a text, the first one's stands in front.
    """
    if _collides(one, other):
        return None
    types = shared_types(one.types, other.types)
    return Face(
        at=one.at,
        types=types,
        types_at=one.types_at if one.types == types and types != other.types else other.types_at,
        values={**other.values, **one.values},
        values_at=one.values_at if one.values else other.values_at,
        keywords={**other.keywords, **one.keywords},
        members={**other.members, **one.members},
        required={**other.required, **one.required},
        notes={**_behind(other.notes, one.notes), **one.notes},
        unions=one.unions + other.unions,
        conjuncts=one.conjuncts + other.conjuncts,
    )


def shared_types(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """Return the types that both let through."""
    return frozenset(
        "integer" if "integer" in (left, right) else left
        for left in one
        for right in other
        if family_of(left) == family_of(right)
    )


def _behind(
    notes: dict[tuple[str, str], Held], front: dict[tuple[str, str], Held]
) -> dict[tuple[str, str], Held]:
    """Return notes under a label of their own where there are others in front of them."""
    return {
        ((label + _BEHIND if (label, name) in front else label), name): held
        for (label, name), held in notes.items()
    }


_BEHIND: Final = " behind"


def _collides(one: Face, other: Face) -> bool:
    for name in one.keywords.keys() & other.keywords.keys():
        if key(one.keywords[name].value) != key(other.keywords[name].value):
            return True
    for group in _TOGETHER:
        mine, theirs = group & one.keywords.keys(), group & other.keywords.keys()
        if mine and theirs and mine != theirs:
            return True
    for name in one.members.keys() & other.members.keys():
        if key(one.members[name].schema) != key(other.members[name].schema):
            return True
    return (
        not one.values.keys().isdisjoint(other.values)
        or _shuts_out(one, other)
        or _shuts_out(other, one)
    )


def _shuts_out(one: Face, other: Face) -> bool:
    """Whether one says something of further properties, which the other declares."""
    declares = bool(other.members.keys() - one.members.keys()) or (
        "patternProperties" in other.keywords and "patternProperties" not in one.keywords
    )
    return declares and any(
        name in one.keywords and one.keywords[name].value is not True for name in RESTS
    )


def joined(branches: Sequence[Face], pointer: str) -> Face | None:
    """Return alternatives as one face; None if they are more than a choice of type or value."""
    values: dict[str, tuple[Json, ...]] = {}
    limited: dict[str, bool] = {}
    result = Face(at=branches[0].at, types=frozenset(), types_at=pointer, values_at=pointer)
    has_one_proper = sum(each.types != _NULL for each in branches) == 1
    for branch in branches:
        if not _is_plain(branch):
            return None
        for family in branch.families:
            listed = _enumerated(branch, family)
            if family in limited and not (limited[family] and listed is not None):
                return None
            known = values.get(family, ())
            if listed and not set(map(key, known)).isdisjoint(map(key, listed)):
                return None
            limited[family] = listed is not None
            if listed is not None:
                values[family] = known + listed
        label = "" if has_one_proper and branch.types != _NULL else _label(branch)
        notes = {(label + inner, name): held for (inner, name), held in branch.notes.items()}
        result = replace(
            result,
            types=result.types | branch.types,
            keywords={**result.keywords, **branch.keywords},
            members={**result.members, **branch.members},
            required={**result.required, **branch.required},
            notes={**notes, **result.notes},
        )
    return replace(result, values=values)


def _is_plain(branch: Face) -> bool:
    """Whether all that a face says is about values of its own types."""
    return not (branch.unions or branch.conjuncts) and branch.keywords.keys() <= FAMILY.keys()


def _enumerated(face: Face, family: str) -> tuple[Json, ...] | None:
    if family in face.values and all(FAMILY[name] != family for name in face.keywords):
        return face.values[family] if not (family == "object" and face.members) else None
    return None


def _label(face: Face) -> str:
    values = [value for family in sorted(face.values) for value in face.values[family]]
    return " ".join(map(quoted, values)) or " ".join(sorted(face.types))


def settled(face: Face) -> Face:
    """Return the face without what its types leave nothing of, in one form for equal meanings."""
    if not face.types:
        return Face(at=face.at, types=face.types, types_at=face.types_at, notes=face.notes)
    types = face.types - {"integer"} if "number" in face.types else face.types
    families = frozenset(map(family_of, types))
    values = {
        family: listed
        for family, listed in face.values.items()
        if family in families and family != "null" and not (family == "boolean" and len(listed) > 1)
    }
    keywords = {
        name: held for name, held in face.keywords.items() if FAMILY.get(name) in {None, *families}
    }
    is_object = "object" in families
    return replace(
        face,
        types=types,
        values=values,
        keywords=keywords,
        members=face.members if is_object else {},
        required=face.required if is_object else {},
    )

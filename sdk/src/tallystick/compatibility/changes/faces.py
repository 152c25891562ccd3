"""Reads the face of a schema at every place, with references followed.

Nothing here decides; it prepares telling. References and nested alternatives are followed to a
certain depth, beyond which they stay apart: that may tell a change twice, and never hides one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from tallystick.canonical import Json, pointer_join
from tallystick.compatibility.changes.face import (
    ALL_TYPES,
    RESTS,
    Face,
    Held,
    Union,
    family_of,
    joined,
    merged,
    settled,
    shared_types,
)
from tallystick.compatibility.changes.json_key import Key, key, type_of
from tallystick.subschema import KEYWORDS, Position, Subschemas

_TYPES: Final = ALL_TYPES | {"integer"}

_DEPTH_MAX: Final = 5
_FINGERPRINT_DEPTH: Final = 5

# Of the parts of one schema that are taken together, and of the alternatives that are folded.
_PARTS_MAX: Final = 200

TEXT: Final = ("title", "description", "examples", "deprecated")
_NOTES: Final = frozenset({*TEXT, "default"})

# Said elsewhere in a face, or nothing that a value is held to.
_APART: Final = frozenset(
    {"type", "enum", "const", "properties", "required", "allOf", "anyOf", "oneOf", "$ref"}
    | {"$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary", "$comment"}
    | {"$defs", "definitions"}
)


class Faces:
    """The faces of all places in one schema."""

    def __init__(self, schema: Json) -> None:
        self._subschemas = Subschemas(schema)
        self._at: dict[str, Position] = {}
        self._faces: dict[tuple[str, int], Face] = {}
        self._owned: dict[str, Face] = {}
        self._fingerprints: dict[tuple[str, int], int] = {}

    @property
    def root(self) -> Position:
        """The whole schema."""
        return self._subschemas.root

    def at(self, pointer: str) -> Position | None:
        """Return the schema at a pointer, if there is one."""
        if not self._at:
            self._at.update((each.pointer, each) for each in self._subschemas)
        return self._at.get(pointer)

    def face(self, position: Position, depth: int = _DEPTH_MAX) -> Face:
        """Return the face of the schema at a position."""
        known = self._faces.get((position.pointer, depth))
        if known is None:
            known = self._faces[position.pointer, depth] = self._read(position, depth)
        return known

    def fingerprint(self, position: Position, depth: int = _FINGERPRINT_DEPTH) -> int:
        """Return a number that is equal for schemas that say the same, down to a depth.

        Text and defaults do not count. It serves to match, never to call two schemas equal.
        """
        known = self._fingerprints.get((position.pointer, depth))
        if known is None:
            known = hash(tuple(self._print(self.face(position), depth)))
            self._fingerprints[position.pointer, depth] = known
        return known

    def _print(self, face: Face, depth: int) -> Iterator[object]:
        def below(positions: Iterable[Position]) -> list[int]:
            return [self.fingerprint(each, depth - 1) for each in positions] if depth else []

        yield face.types
        for family, values in face.values.items():
            yield family, frozenset(map(key, values))
        yield frozenset(face.required)
        yield frozenset(zip(face.members, below(face.members.values()), strict=False))
        yield frozenset(face.members)
        yield frozenset(
            (name, tuple(below(held.parts)) if held.parts else key(held.value))
            for name, held in face.keywords.items()
        )
        yield frozenset(frozenset(below(union.branches)) for union in face.unions)
        yield frozenset(below(face.conjuncts))

    def _read(self, position: Position, depth: int) -> Face:
        face = self._owned.get(position.pointer)
        if face is None:
            face = self._owned[position.pointer] = self._own(position)
        apart: list[Position] = []
        for index, part in enumerate(self._all_of(position)):
            is_near = depth and index < _PARTS_MAX
            taken = merged(face, self.face(part, depth - 1)) if is_near else None
            if taken is None:
                apart.append(part)
            else:
                face = taken
        face = replace(face, conjuncts=(*face.conjuncts, *apart))
        for keyword in ("anyOf", "oneOf"):
            if isinstance(position.keywords.get(keyword), list):
                face = self._with_union(face, position, keyword, depth)
        return settled(face)

    def _all_of(self, position: Position) -> Iterator[Position]:
        reference = position.keywords.get("$ref")
        target = (
            self._subschemas.target(position, reference) if isinstance(reference, str) else None
        )
        if target is not None:
            yield target
        yield from self._subschemas.held_by(position, "allOf")
        for keyword in ("anyOf", "oneOf"):
            branches = tuple(self._subschemas.held_by(position, keyword))
            if len(branches) == 1:
                yield branches[0]

    def _with_union(self, face: Face, position: Position, keyword: str, depth: int) -> Face:
        branches = tuple(self._subschemas.held_by(position, keyword))
        if len(branches) <= 1:
            return face
        pointer = position.pointer + pointer_join(keyword)
        union = Union(keyword, position.keywords[keyword], pointer, branches)
        if not depth or len(branches) > _PARTS_MAX:
            return replace(face, unions=(*face.unions, union))
        faces = [self.face(each, depth - 1) for each in branches]
        joint = joined(faces, pointer)
        taken = None if joint is None else merged(face, joint)
        if taken is not None:
            return taken
        types = shared_types(face.types, frozenset(name for each in faces for name in each.types))
        return replace(
            face,
            types=types,
            types_at=face.types_at if types == face.types else pointer,
            unions=(*face.unions, union),
        )

    def _own(self, position: Position) -> Face:
        keywords = position.keywords
        types, values = _types_and_values(position)
        members = keywords.get("properties")
        names = members if isinstance(members, dict) else {}
        required = keywords.get("required")
        pointer = position.pointer
        enumerates = "const" if "const" in keywords else "enum"
        says_type = next((each for each in ("type", "const", "enum") if each in keywords), None)
        return Face(
            at=position,
            types=types,
            types_at=pointer + (pointer_join(says_type) if says_type else ""),
            values=values,
            values_at=pointer + pointer_join(enumerates),
            keywords=dict(self._others(position)),
            members=dict(
                zip(names, self._subschemas.held_by(position, "properties"), strict=False)
            ),
            required={
                name: f"{pointer}/required/{index}"
                for index, name in enumerate(required if isinstance(required, list) else ())
                if isinstance(name, str)
            },
            notes={
                ("", name): Held(keywords[name], pointer + pointer_join(name))
                for name in (*TEXT, "default")
                if name in keywords and not _says_nothing(name, keywords)
            },
        )

    def _others(self, position: Position) -> Iterator[tuple[str, Held]]:
        for name, value in position.keywords.items():
            if name in _NOTES or _says_nothing(name, position.keywords):
                continue
            if name in _APART and (name != "$ref" or self._resolves(position)):
                continue
            parts = tuple(self._subschemas.held_by(position, name)) if name in KEYWORDS else ()
            normal = True if name in RESTS and value == {} else value
            yield name, Held(normal, position.pointer + pointer_join(name), parts)

    def _resolves(self, position: Position) -> bool:
        reference = position.keywords["$ref"]
        return (
            isinstance(reference, str) and self._subschemas.target(position, reference) is not None
        )


def _types_and_values(
    position: Position,
) -> tuple[frozenset[str], dict[str, tuple[Json, ...]]]:
    """Return the types that the schema's own `type`, `enum` and `const` leave, and the values."""
    if position.schema is False or position.keywords.get("not") in (True, {}):
        return frozenset(), {}
    keywords = position.keywords
    said = keywords.get("type")
    names = [said] if isinstance(said, str) else said
    types = (
        frozenset(name for name in names if isinstance(name, str) and name in _TYPES)
        if isinstance(names, list)
        else ALL_TYPES
    )
    if "const" in keywords:
        listed: Json = [keywords["const"]]
    else:
        listed = keywords.get("enum")
    if not isinstance(listed, list):
        return types, {}
    values: dict[str, dict[Key, Json]] = {}
    for value in listed:
        kind = type_of(value)
        if kind in types or family_of(kind) in types:
            values.setdefault(family_of(kind), {})[key(value)] = value
    found = {family: tuple(each.values()) for family, each in values.items()}
    return frozenset(map(_narrowest, found.values())), found


def _narrowest(values: tuple[Json, ...]) -> str:
    kinds = {type_of(value) for value in values}
    return kinds.pop() if len(kinds) == 1 else "number"


_NEUTRAL_VALUES: Final[dict[str, tuple[Json, ...]]] = {
    "minLength": (0,),
    "minItems": (0,),
    "minProperties": (0,),
    "uniqueItems": (False,),
    "items": (True, {}),
    "prefixItems": ([],),
    "unevaluatedItems": (True, {}),
    "patternProperties": ({},),
    "propertyNames": (True, {}),
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
    "not": (False,),
    "title": ("",),
    "description": ("",),
    "examples": ([],),
    "deprecated": (False,),
    "readOnly": (False,),
    "writeOnly": (False,),
}
_NEUTRAL: Final = {name: frozenset(map(key, values)) for name, values in _NEUTRAL_VALUES.items()}


def _says_nothing(name: str, keywords: dict[str, Json]) -> bool:
    """Whether a keyword is there, and the schema would say the same without it."""
    value = keywords[name]
    # What is neutral is empty or `true`: a whole schema need not be looked through for that.
    if (not value or value is True) and key(value) in _NEUTRAL.get(name, ()):
        return True
    match name:
        case "if":
            return not ({"then", "else"} & keywords.keys())
        case "then" | "else":
            return "if" not in keywords or value in (True, {})
        case "minContains" | "maxContains":
            return "contains" not in keywords
        case _:
            return False

"""What a producer writes that sends only what a schema declares: the schema, closed.

A *location* is a place in a value; its *group* is the schema there with everything that it applies
in place: `allOf`, `anyOf`, `oneOf`, `if`, `then`, `else`, `dependentSchemas` and what it refers to.
Two schemas are *rivals* where both may describe the same location and neither is part of the other,
as the `properties` of two branches may that have a name in common.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final, TypeAlias

from tallystick.canonical import Json, pointer_join, pointer_split
from tallystick.compatibility.forms.alternatives import are_exclusive
from tallystick.compatibility.forms.groups import (
    DEFINITIONS,
    Family,
    Groups,
    Rivals,
    applies_in_place,
    tells_only,
)
from tallystick.compatibility.forms.placement import Placement
from tallystick.compatibility.forms.plain import closed_plainly, is_plain
from tallystick.subschema import Position, Subschemas, parts, rebuilt

# One schema is written once for each set of rivals that it has somewhere. When so many times the
# number that there was are written, whatever has rivals stays open.
_GROWTH_MAX: Final = 2

_STEPS: Final = frozenset({"properties", "items", "prefixItems"})
_NO_RIVALS: Final[Rivals] = frozenset()


class _Mode(Enum):
    """How a schema is written."""

    OPEN = "as it is"
    ROOT = "as the root of its group, which is closed, with its rivals"
    PART = "as a part of a group, in which some of the schemas below have rivals"


# The pointer of a schema, how it is written, and with which rivals.
_Key: TypeAlias = tuple[str, _Mode, frozenset[tuple[str, Rivals | None]]]


def close(schema: Json) -> Json:
    """Return a schema under which an object has only members that the schema declares.

    At each location whose group declares properties, what no branch declares that applies to the
    value is refused. A location stays open where `additionalProperties`, `patternProperties` or
    `unevaluatedProperties` says so already, or where nothing is declared at all. The closing goes
    on through references, `properties`, `items` and `prefixItems`, and not into the values of maps,
    `contains`, `not` and `if`.

    Where rivals describe one location, what any of them declares is accepted there, if the rival
    accepts it. Branches of one `oneOf` are no rivals, nor are branches that no value can satisfy at
    once for its type or its tag. What has more than `RIVALS_MAX` rivals stays open.

    Whatever the result accepts, the schema accepts. Closing twice is closing once. A schema with
    nothing to close comes back as it is; so does one with identifiers or dynamic references, which
    `localised` takes away.

    Args:
        schema: A schema of 2020-12.
    """
    if is_plain(schema):
        return closed_plainly(schema)
    positions = Subschemas(schema)
    if any(each.base or "$dynamicRef" in each.keywords for each in positions):
        return schema
    return _Closing(positions).write()


class _Closing:
    def __init__(self, positions: Subschemas) -> None:
        self._positions = positions
        self._groups = Groups(positions)
        self._placement: Placement[_Key] = Placement()
        self._most = _GROWTH_MAX * sum(1 for _ in positions)

    def write(self) -> Json:
        root = self._positions.root
        if not self._groups.has_closable(root):
            return root.schema
        written = self._root(root, _NO_RIVALS, "")
        assert isinstance(written, dict)
        self._placement.finish(written, self._write, _name)
        return written

    def _write(self, key: _Key, at: str) -> Json:
        pointer, mode, rivals = key
        position = self._positions.at(pointer)
        match mode:
            case _Mode.OPEN:
                return self._open(position, at)
            case _Mode.ROOT:
                return self._root(position, frozenset(each for each, _ in rivals), at)
            case _Mode.PART:
                return self._part(position, dict(rivals), at)

    def _open(self, position: Position, at: str) -> Json:
        """Write a schema as it is, but for where its references lead."""
        self._placement.put(_open_key(position), at)
        if not isinstance(position.schema, dict):
            return position.schema
        written: dict[str, Json] = {}
        for keyword in position.schema:
            if keyword not in DEFINITIONS:
                at_keyword = at + pointer_join(keyword)
                written[keyword] = self._each(position, keyword, self._open, at_keyword)
        target = self._groups.target(position)
        if target is not None:
            self._placement.refer(written, _open_key(target))
        return written

    def _root(self, position: Position, rivals: Rivals, at: str) -> Json:
        """Write a schema as the root of its group, which is closed around all its parts."""
        is_too_much = bool(rivals) and len(self._placement) > self._most
        if is_too_much or not self._groups.has_closable(position):
            return self._open(position, at)
        self._placement.put(_root_key(position, rivals), at)
        target = self._groups.alias(position)
        if target is not None:
            written = {k: v for k, v in position.keywords.items() if k not in DEFINITIONS}
            self._placement.refer(written, _root_key(target, rivals))
            return written
        family = self._groups.family(position, rivals)
        if not self._groups.is_closable(position, rivals):
            return self._part(position, family, at)
        if rivals:
            optional = (self._optional(pointer) for pointer in sorted(rivals))
            part = self._part(position, family, at + pointer_join("allOf", 0))
            return {"allOf": [part, *optional], "unevaluatedProperties": False}
        alone = self._groups.declares_alone(position)
        closing = "additionalProperties" if alone else "unevaluatedProperties"
        # Not by `_part`, which may say that the schema stands here as it is.
        written = self._inside(position, family, at)
        written[closing] = False
        return written

    def _optional(self, pointer: str) -> Json:
        """Return what tells of the members that a rival declares, and refuses nothing."""
        told: dict[str, Json] = {}
        self._placement.refer(told, _open_key(self._positions.at(pointer)))
        return {"anyOf": [told, True]}

    def _part(self, position: Position, family: Family, at: str) -> Json:
        """Write a schema as a part of its group: what is below is closed, it itself is not."""
        if self._groups.has_closable_inside(position):
            return self._inside(position, family, at)
        return self._open(position, at)

    def _inside(self, position: Position, family: Family, at: str) -> dict[str, Json]:
        """Write a schema with the groups closed that describe properties and items of its own."""
        written: dict[str, Json] = {}
        held = position.keywords.get("allOf")
        behind = len(held) if isinstance(held, list) else 0
        extra: list[Json] = []
        for keyword in position.keywords:
            if keyword == "oneOf" and self._is_upset(position):
                # Closed, a branch might refuse what made two branches accept a value.
                at_open = at + pointer_join("allOf", behind, "not", "not", keyword)
                at_closed = at + pointer_join("allOf", behind + 1, "anyOf")
                one = self._each(position, keyword, self._open, at_open)
                closed = self._each(
                    position, keyword, self._writer(position, keyword, family), at_closed
                )
                extra = [{"not": {"not": {keyword: one}}}, {"anyOf": closed}]
            elif keyword not in DEFINITIONS:
                write = self._writer(position, keyword, family)
                written[keyword] = self._each(position, keyword, write, at + pointer_join(keyword))
        if extra:
            written["allOf"] = [*(held if isinstance(held, list) else ()), *extra]
        target = self._groups.target(position)
        if target is not None:
            self._placement.refer(written, self._part_key(target, family))
        return written

    def _writer(self, position: Position, keyword: str, family: Family) -> "_Write":
        """Return how a part of a group writes the schemas that it holds by a keyword."""
        if keyword in _STEPS:
            return lambda child, at: self._step(child, family, at)
        if applies_in_place(position, keyword) and not tells_only(
            keyword, position.keywords[keyword]
        ):
            return lambda child, at: self._part(child, family, at)
        return self._open

    def _step(self, position: Position, family: Family, at: str) -> Json:
        rivals = family.get(position.pointer, _NO_RIVALS)
        return self._open(position, at) if rivals is None else self._root(position, rivals, at)

    def _is_upset(self, position: Position) -> bool:
        """Return whether closing the branches of a `oneOf` could let one more value through."""
        branches = list(self._positions.held_by(position, "oneOf"))
        return any(map(self._groups.has_closable_inside, branches)) and not are_exclusive(
            self._positions, branches
        )

    def _part_key(self, position: Position, family: Family) -> "_Key":
        narrowed = self._groups.narrowed(family, position)
        is_too_much = bool(narrowed) and len(self._placement) > self._most
        if is_too_much or not self._groups.has_closable_inside(position):
            return _open_key(position)
        return position.pointer, _Mode.PART, frozenset(narrowed.items())

    def _each(self, position: Position, keyword: str, write: "_Write", at: str) -> Json:
        value = position.keywords[keyword]
        below = position.pointer + pointer_join(keyword)
        return rebuilt(
            value,
            {
                tokens: write(
                    self._positions.at(below + pointer_join(*tokens)), at + pointer_join(*tokens)
                )
                for tokens, _ in parts(keyword, value)
            },
        )


_Write: TypeAlias = Callable[[Position, str], Json]


def _open_key(position: Position) -> _Key:
    return position.pointer, _Mode.OPEN, frozenset()


def _root_key(position: Position, rivals: Rivals) -> _Key:
    return position.pointer, _Mode.ROOT, frozenset((pointer, None) for pointer in rivals)


def _name(key: _Key) -> str:
    tokens = [token for token in pointer_split(key[0]) if token]
    return tokens[-1] if tokens else "schema"

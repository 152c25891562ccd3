"""Makes values to try, where the search for a witness came to no answer.

They are made from what a schema says by itself, part by part, without any reasoning: what is listed
or given as an example, what lies on a bound and just beyond it, the least object and the least with
one property more. The validator decides which of them is a witness.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

from tallystick.canonical import Json
from tallystick.compatibility.algebra.formats import SAMPLES
from tallystick.subschema import Position, Subschemas

VALUES_MAX: Final = 400

_DEPTH_MAX: Final = 4
_PER_PART_MAX: Final = 12
_LENGTH_MAX: Final = 100
_EXACT_MAX: Final = 2**53
_LISTED: Final = ("const", "default")
_LISTS: Final = ("enum", "examples")
_BOUNDS: Final = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf")
_OF_ANY_TYPE: Final[tuple[Json, ...]] = ({}, "", 0, [], True, None, "a", 1, -1, 0.5, [None])
_UNDECLARED: Final = "undeclared"


def values_to_try(*schemas: Json) -> Iterator[Json]:
    """Yield values that the schemas suggest, `VALUES_MAX` at most."""
    suggested = (Suggestions(Subschemas(schema)) for schema in schemas)
    each = (values.of(values.positions.root, 0) for values in suggested)
    return islice(chain(chain.from_iterable(each), _OF_ANY_TYPE), VALUES_MAX)


class Suggestions:
    """What the positions of one schema suggest."""

    def __init__(self, positions: Subschemas) -> None:
        self.positions: Final = positions

    def of(self, position: Position, depth: int) -> Iterator[Json]:
        """Yield values that a schema position suggests, likely ones first."""
        if depth > _DEPTH_MAX:
            return
        yield from self._listed(position)
        merged = list(self._applied(position, depth))
        yield from self._objects(position, depth, merged)
        yield from merged
        yield from self._arrays(position, depth)
        yield from self._scalars(position)

    def _listed(self, position: Position) -> Iterator[Json]:
        keywords = position.keywords
        yield from (keywords[name] for name in _LISTED if name in keywords)
        for name in _LISTS:
            listed = keywords.get(name)
            if isinstance(listed, list):
                yield from islice(listed, _PER_PART_MAX)

    def _applied(self, position: Position, depth: int) -> Iterator[Json]:
        for part in islice(self.positions.same_value(position), _PER_PART_MAX):
            yield from self._some(part, depth + 1)

    def _objects(self, position: Position, depth: int, merged: Iterable[Json]) -> Iterator[Json]:
        properties = position.keywords.get("properties")
        required = position.keywords.get("required", [])
        names = list(properties) if isinstance(properties, dict) else []
        if not names and not required:
            return
        parts = {name: list(self._member(position, name, depth)) for name in names}
        needed = required if isinstance(required, list) else []
        least: dict[str, Json] = {
            name: next(iter(parts.get(name, ())), None) for name in map(str, needed)
        }
        yield from ({**least, **other} for other in merged if isinstance(other, dict))
        yield least
        yield {**least, _UNDECLARED: None}
        for name, values in parts.items():
            for value in values:
                yield {**least, name: value}
        yield {**{name: values[0] for name, values in parts.items() if values}, **least}

    def _arrays(self, position: Position, depth: int) -> Iterator[Json]:
        least = position.keywords.get("minItems", 0)
        count = least if isinstance(least, int) else 0
        for index in (0, count):
            for part in self.positions.item(position, index):
                for value in self._some(part, depth + 1):
                    yield [value] * min(max(count, 1), _LENGTH_MAX)

    def _scalars(self, position: Position) -> Iterator[Json]:
        keywords = position.keywords
        for name in _BOUNDS:
            bound = keywords.get(name)
            if isinstance(bound, int | float) and -_EXACT_MAX < bound < _EXACT_MAX:
                yield from (bound, bound + 1, bound - 1, bound + 0.5)
        for name in ("minLength", "maxLength"):
            length = keywords.get(name)
            if isinstance(length, int) and length < _LENGTH_MAX:
                yield from ("a" * length, "a" * (length + 1), "a" * max(length - 1, 0))
        if "format" in keywords or "pattern" in keywords:
            yield from SAMPLES
        yield from _OF_ANY_TYPE

    def _member(self, position: Position, name: str, depth: int) -> Iterator[Json]:
        for part in self.positions.member(position, name):
            yield from self._some(part, depth + 1)

    def _some(self, position: Position, depth: int) -> Iterator[Json]:
        return islice(self.of(position, depth), _PER_PART_MAX)

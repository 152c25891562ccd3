"""Reads `unevaluatedProperties` and `unevaluatedItems` into plain nodes.

A schema *claims* properties and items: those that a keyword beside it, or of a schema that applies
in place, has evaluated. A claim from a branch counts under its guard: that the branch holds. So
each named property is unclaimed, or one of its claims' guards holds; which needs no list of all
the combinations of branches, only of claims by pattern and by `contains`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final, cast

from tallystick.canonical import pointer_join
from tallystick.compatibility.algebra.node import (
    Algebra,
    Everything,
    Item,
    Member,
    Node,
    Other,
    Required,
    Rest,
    Types,
)
from tallystick.compatibility.algebra.value import Kind
from tallystick.subschema import Position, compile_pattern

if TYPE_CHECKING:
    from tallystick.compatibility.algebra.reading import Reading

_CONDITIONAL_MAX: Final = 6


@dataclass(frozen=True, slots=True)
class _Claim:
    """What is evaluated if the guard holds."""

    guard: Node
    names: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    count: int = 0
    matching: Node | None = None
    is_all: bool = False

    @property
    def is_certain(self) -> bool:
        return isinstance(self.guard, Everything)

    @property
    def is_uncertain_set(self) -> bool:
        """Whether it may or may not add to a set of values that has no list."""
        return not self.is_certain and (bool(self.patterns) or self.matching is not None)

    def covers(self, name: str) -> bool:
        return (
            self.is_all
            or name in self.names
            or any(compile_pattern(pattern).is_valid(name) for pattern in self.patterns)
        )


def unevaluated_properties(reading: "Reading", position: Position, node: Node) -> Node:
    """Return what says of each property that nothing beside evaluates that it is in a node.

    Raises:
        ValueError: That takes too many cases, or depends on a dynamic reference.
    """
    algebra = reading.algebra
    claims = list(_claims(reading, position, "unevaluatedProperties", _property_claims))
    if any(claim.is_all and claim.is_certain for claim in claims):
        return algebra.everything
    names = frozenset[str]().union(*(claim.names for claim in claims))
    certain = [claim for claim in claims if claim.is_certain]
    whole = [claim.guard for claim in claims if claim.is_all]
    patterns = frozenset[str]().union(*(claim.patterns for claim in certain))
    parts = [
        algebra.any_of([*_guards(claims, name), algebra.carry(node, Member, name, node)])
        for name in sorted(names)
        if not any(claim.covers(name) for claim in certain)
    ]
    rest = [
        algebra.all_of(
            [
                *(claim.guard for claim in chosen),
                algebra.carry(
                    node,
                    Other,
                    names,
                    patterns.union(*(claim.patterns for claim in chosen)),
                    node,
                ),
            ]
        )
        for chosen in _choices(algebra, claims)
    ]
    return algebra.all_of([*parts, algebra.any_of([*whole, *rest])])


def unevaluated_items(reading: "Reading", position: Position, node: Node) -> Node:
    """Return what says of each item that nothing beside evaluates that it is in a node.

    Raises:
        ValueError: That takes too many cases, or depends on a dynamic reference.
    """
    algebra = reading.algebra
    claims = list(_claims(reading, position, "unevaluatedItems", _item_claims))
    if any(claim.is_all and claim.is_certain for claim in claims):
        return algebra.everything
    certain = [claim for claim in claims if claim.is_certain]
    first = max((claim.count for claim in certain), default=0)
    last = max((claim.count for claim in claims), default=0)
    whole = [claim.guard for claim in claims if claim.is_all]
    cases: list[Node] = []
    for chosen in _choices(algebra, claims):
        matching = [claim.matching for claim in (*certain, *chosen) if claim.matching is not None]
        item = algebra.any_of([node, *matching])
        placed = (
            algebra.any_of(
                [
                    *(claim.guard for claim in claims if claim.is_all or claim.count > index),
                    algebra.carry(item, Item, index, item),
                ]
            )
            for index in range(first, last)
        )
        rest = algebra.any_of([*whole, algebra.carry(item, Rest, last, item)])
        cases.append(algebra.all_of([*(claim.guard for claim in chosen), *placed, rest]))
    return algebra.any_of(cases)


def _guards(claims: Iterable[_Claim], name: str) -> list[Node]:
    return [claim.guard for claim in claims if claim.covers(name)]


def _choices(algebra: Algebra, claims: Iterable[_Claim]) -> Iterator[tuple[_Claim, ...]]:
    """Yield each set of guarded claims that may hold: of sets of values that have no list."""
    guards: dict[tuple[frozenset[str], Node | None], list[Node]] = {}
    for claim in claims:
        if claim.is_uncertain_set:
            guards.setdefault((claim.patterns, claim.matching), []).append(claim.guard)
    conditional = [
        _Claim(algebra.any_of(each), patterns=patterns, matching=matching)
        for (patterns, matching), each in guards.items()
    ]
    if len(conditional) > _CONDITIONAL_MAX:
        raise ValueError("it depends on too many branches")
    for size in range(len(conditional) + 1):
        yield from combinations(conditional, size)


def _claims(
    reading: "Reading",
    position: Position,
    keyword: str,
    own: Callable[["Reading", Position, Node], Iterator[_Claim]],
) -> Iterator[_Claim]:
    """Yield what the schema claims, but for its own `unevaluated*` keyword."""
    start = reading.positions.at(position.pointer)
    pending: list[tuple[Position, Node, frozenset[str]]] = [
        (start, reading.algebra.everything, frozenset())
    ]
    while pending:
        place, guard, above = pending.pop()
        if place.pointer in above:
            raise ValueError("a reference leads back to its own place")
        if "$dynamicRef" in place.keywords:
            raise ValueError("it depends on a dynamic reference")
        yield from own(reading, place, guard)
        if above and keyword in place.keywords:
            yield _Claim(guard, is_all=True)
        onward = above | {place.pointer}
        pending.extend((each, narrower, onward) for each, narrower in _inner(reading, place, guard))


def _property_claims(_: "Reading", place: Position, guard: Node) -> Iterator[_Claim]:
    keywords = place.keywords
    yield _Claim(
        guard,
        names=frozenset(cast("dict[str, object]", keywords.get("properties", {}))),
        patterns=frozenset(cast("dict[str, object]", keywords.get("patternProperties", {}))),
        is_all="additionalProperties" in keywords,
    )


def _item_claims(reading: "Reading", place: Position, guard: Node) -> Iterator[_Claim]:
    keywords = place.keywords
    prefix = cast("list[object]", keywords.get("prefixItems", []))
    yield _Claim(guard, count=len(prefix), is_all="items" in keywords)
    if "contains" in keywords:
        yield _Claim(guard, matching=reading.below(place, "contains"))


def _inner(reading: "Reading", place: Position, guard: Node) -> Iterator[tuple[Position, Node]]:
    algebra, positions = reading.algebra, reading.positions
    for each in positions.held_by(place, "allOf"):
        yield each, guard
    reference = place.keywords.get("$ref")
    target = positions.target(place, reference) if isinstance(reference, str) else None
    if target is not None:
        yield target, guard
    for each in positions.held_by(place, "anyOf", "oneOf"):
        yield each, algebra.all_of([guard, reading.node(each)])
    for condition in positions.held_by(place, "if"):
        holds = algebra.all_of([guard, reading.node(condition)])
        fails = algebra.all_of([guard, algebra.negate(reading.node(condition))])
        yield condition, holds
        yield from ((each, holds) for each in positions.held_by(place, "then"))
        yield from ((each, fails) for each in positions.held_by(place, "else"))
    is_object = algebra.make(Types, frozenset({Kind.OBJECT}))
    for name in cast("dict[str, object]", place.keywords.get("dependentSchemas", {})):
        # That a name is required is said of objects alone: an array would satisfy it.
        present = algebra.all_of([guard, is_object, algebra.make(Required, name)])
        yield positions.at(place.pointer + pointer_join("dependentSchemas", name)), present

"""Tells whether a value is in a node: yes, no, or not known."""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

from tallystick.canonical import Json
from tallystick.compatibility.algebra.formats import has_format
from tallystick.compatibility.algebra.node import (
    KINDS,
    Algebra,
    All,
    AtLeast,
    AtMost,
    Everything,
    Format,
    Item,
    Matching,
    MaxContains,
    MaxItems,
    MaxLength,
    MaxMembers,
    Member,
    MinContains,
    MinItems,
    MinLength,
    MinMembers,
    MultipleOf,
    Names,
    Node,
    Not,
    Nothing,
    One,
    Opaque,
    Other,
    Pattern,
    Reference,
    Required,
    Rest,
    Some,
    Types,
    Unique,
    Values,
)
from tallystick.compatibility.algebra.value import key_of, kind_of, number_of
from tallystick.compatibility.budget import Budget
from tallystick.subschema import compile_pattern

Known = bool | None
"""An answer; None where it is not known."""

_DEPTH_MAX: Final = 64


class Membership:
    """Decides whether values are in nodes.

    Args:
        algebra: The algebra of the nodes.
        budget: What it is paid from, one step a node and value.
    """

    def __init__(self, algebra: Algebra, budget: Budget) -> None:
        self._algebra = algebra
        self._budget = budget
        self._depth = 0

    def holds(self, node: Node, value: Json) -> Known:
        """Tell whether a value is in a node."""
        self._budget.spend()
        if self._depth > _DEPTH_MAX:
            return None
        self._depth += 1
        try:
            return self._holds(node, value)
        finally:
            self._depth -= 1

    def holds_all(self, nodes: Iterable[Node], value: Json) -> Known:
        """Tell whether a value is in every one of some nodes."""
        return every(self.holds(node, value) for node in nodes)

    def _holds(self, node: Node, value: Json) -> Known:
        kind = KINDS.get(type(node))
        if kind is not None and kind_of(value) != kind:
            return True
        return _RULES[type(node)](self, node, value)

    def target(self, reference: Reference) -> Node:
        """Return what a reference stands for."""
        return self._algebra.target(reference)


def opposite(known: Known) -> Known:
    """Return the answer to the opposite question."""
    return None if known is None else not known


def every(answers: Iterable[Known]) -> Known:
    """Tell whether all answers are yes."""
    known: Known = True
    for answer in answers:
        if answer is False:
            return False
        known = None if answer is None else known
    return known


def any_known(answers: Iterable[Known]) -> Known:
    """Tell whether any answer is yes."""
    return opposite(every(opposite(answer) for answer in answers))


def exactly_one(answers: list[Known]) -> Known:
    """Tell whether exactly one answer is yes."""
    if answers.count(True) > 1:
        return False
    return None if None in answers else answers.count(True) == 1


# --- nodes of any type ----------------------------------------------------------------------------


def _everything(_: Membership, __: Everything, ___: Json) -> bool:
    return True


def _nothing(_: Membership, __: Nothing, ___: Json) -> bool:
    return False


def _not(self: Membership, node: Not, value: Json) -> Known:
    return opposite(self.holds(node.part, value))


def _all(self: Membership, node: All, value: Json) -> Known:
    return self.holds_all(node.parts, value)


def _some(self: Membership, node: Some, value: Json) -> Known:
    return any_known(self.holds(part, value) for part in node.parts)


def _one(self: Membership, node: One, value: Json) -> Known:
    return exactly_one([self.holds(part, value) for part in node.parts])


def _reference(self: Membership, node: Reference, value: Json) -> Known:
    return self.holds(self.target(node), value)


def _opaque(_: Membership, __: Opaque, ___: Json) -> None:
    return None


def _types(_: Membership, node: Types, value: Json) -> bool:
    return kind_of(value) in node.kinds


def _values(_: Membership, node: Values, value: Json) -> bool:
    return key_of(value) in node.keys


# --- atoms, each for a value of its own type ------------------------------------------------------


def _at_least(_: Membership, node: AtLeast, value: float) -> bool:
    number = number_of(value)
    return number > node.bound if node.is_exclusive else number >= node.bound


def _at_most(_: Membership, node: AtMost, value: float) -> bool:
    number = number_of(value)
    return number < node.bound if node.is_exclusive else number <= node.bound


def _multiple_of(_: Membership, node: MultipleOf, value: float) -> bool:
    return (Fraction(number_of(value)) / node.factor).denominator == 1


def _min_length(_: Membership, node: MinLength, value: str) -> bool:
    return len(value) >= node.count


def _max_length(_: Membership, node: MaxLength, value: str) -> bool:
    return len(value) <= node.count


def _pattern(_: Membership, node: Pattern, value: str) -> Known:
    return matches(node.pattern, value)


def _format(_: Membership, node: Format, value: str) -> bool:
    return has_format(value, node.name, node.dialect)


def _min_items(_: Membership, node: MinItems, value: list[Json]) -> bool:
    return len(value) >= node.count


def _max_items(_: Membership, node: MaxItems, value: list[Json]) -> bool:
    return len(value) <= node.count


def _item(self: Membership, node: Item, value: list[Json]) -> Known:
    return node.index >= len(value) or self.holds(node.node, value[node.index])


def _rest(self: Membership, node: Rest, value: list[Json]) -> Known:
    return every(self.holds(node.node, item) for item in value[node.start :])


def _min_contains(self: Membership, node: MinContains, value: list[Json]) -> Known:
    return _are_at_least(node.count, [self.holds(node.node, item) for item in value])


def _max_contains(self: Membership, node: MaxContains, value: list[Json]) -> Known:
    answers = [self.holds(node.node, item) for item in value]
    return opposite(_are_at_least(node.count + 1, answers))


def _are_at_least(count: int, answers: list[Known]) -> Known:
    if answers.count(True) >= count:
        return True
    return None if answers.count(True) + answers.count(None) >= count else False


def _unique(_: Membership, __: Unique, value: list[Json]) -> bool:
    return len({key_of(item) for item in value}) == len(value)


def _min_members(_: Membership, node: MinMembers, value: Mapping[str, Json]) -> bool:
    return len(value) >= node.count


def _max_members(_: Membership, node: MaxMembers, value: Mapping[str, Json]) -> bool:
    return len(value) <= node.count


def _required(_: Membership, node: Required, value: Mapping[str, Json]) -> bool:
    return node.name in value


def _member(self: Membership, node: Member, value: Mapping[str, Json]) -> Known:
    return node.name not in value or self.holds(node.node, value[node.name])


def _matching(self: Membership, node: Matching, value: Mapping[str, Json]) -> Known:
    return every(
        any_known([opposite(matches(node.pattern, name)), self.holds(node.node, member)])
        for name, member in value.items()
    )


def _other(self: Membership, node: Other, value: Mapping[str, Json]) -> Known:
    return every(
        any_known(
            [*(matches(pattern, name) for pattern in node.patterns), self.holds(node.node, member)]
        )
        for name, member in value.items()
        if name not in node.names
    )


def _names(self: Membership, node: Names, value: Mapping[str, Json]) -> Known:
    return every(self.holds(node.node, name) for name in value)


def matches(pattern: str, name: str) -> Known:
    """Tell whether a regular expression is found in a name."""
    try:
        return compile_pattern(pattern).is_valid(name)
    except ValueError:
        return None


_RULES: Final[dict[type[Node], Callable[[Membership, Any, Any], Known]]] = {
    Everything: _everything,
    Nothing: _nothing,
    Not: _not,
    All: _all,
    Some: _some,
    One: _one,
    Reference: _reference,
    Opaque: _opaque,
    Types: _types,
    Values: _values,
    AtLeast: _at_least,
    AtMost: _at_most,
    MultipleOf: _multiple_of,
    MinLength: _min_length,
    MaxLength: _max_length,
    Pattern: _pattern,
    Format: _format,
    MinItems: _min_items,
    MaxItems: _max_items,
    Item: _item,
    Rest: _rest,
    MinContains: _min_contains,
    MaxContains: _max_contains,
    Unique: _unique,
    MinMembers: _min_members,
    MaxMembers: _max_members,
    Required: _required,
    Member: _member,
    Matching: _matching,
    Other: _other,
    Names: _names,
}

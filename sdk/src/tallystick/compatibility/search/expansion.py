"""What follows from a node: other nodes for certain, or one of several."""

from collections.abc import Callable, Iterator
from itertools import combinations

from tallystick.compatibility.algebra.node import (
    Algebra,
    All,
    Item,
    MaxItems,
    Member,
    MinItems,
    Node,
    Not,
    One,
    Other,
    Reference,
    Required,
    Some,
    Types,
    Values,
)
from tallystick.compatibility.algebra.value import Key, Kind, kind_of_key
from tallystick.compatibility.budget import Budget
from tallystick.compatibility.search.case import Choice

Nodes = tuple[Node, ...]


class Expansion:
    """Expands nodes of one algebra.

    Args:
        algebra: The algebra.
        budget: What is paid for nodes that are many.
    """

    def __init__(self, algebra: Algebra, budget: Budget) -> None:
        self._algebra = algebra
        self._budget = budget
        self._known: dict[tuple[Nodes, Callable[[Nodes], Iterator[Node]]], Nodes] = {}

    def is_latent(self, node: Node) -> bool:
        """Tell whether the choices of a node are so many that they are better not written out."""
        return isinstance(node, One) or (
            isinstance(node, Not) and isinstance(node.part, One | Values)
        )

    def certain(self, node: Node) -> Iterator[Node]:
        """Yield nodes that must hold because this one does."""
        match node:
            case All(parts):
                yield from reversed(parts)
            case Not(Some(parts)):
                yield from map(self._algebra.negate, parts)
            case One(parts):
                yield self._algebra.any_of(parts)
            case Reference():
                yield self._algebra.target(node)
            case Not(Reference() as reference):
                yield self._algebra.negate(self._algebra.target(reference))
            case _:
                pass

    def choices(self, node: Node, kinds: frozenset[Kind]) -> Iterator[Choice]:
        """Yield choices that must be made because this node holds of a value of some types."""
        match node:
            case Some(parts):
                yield Choice(parts, is_goal=False)
            case Not(All(parts)):
                yield Choice(tuple(map(self._algebra.negate, parts)), is_goal=True)
            case One(parts):
                yield Choice(self._written(parts, self._only), is_goal=False)
            case Not(One(parts)):
                yield Choice(self._written(parts, self._not_one), is_goal=True)
            case Not(Values(keys)):
                for key in keys:
                    kind = kind_of_key(key)
                    if kind in kinds and kind is Kind.OBJECT:
                        yield Choice(tuple(self._unlike_object(key)), is_goal=True)
                    elif kind in kinds and kind is Kind.ARRAY:
                        yield Choice(tuple(self._unlike_array(key)), is_goal=True)
            case _:
                pass

    def _written(self, parts: Nodes, write: Callable[[Nodes], Iterator[Node]]) -> Nodes:
        key = (parts, write)
        if key not in self._known:
            self._budget.spend(len(parts) ** 2)
            self._known[key] = tuple(write(parts))
        return self._known[key]

    def _only(self, parts: Nodes) -> Iterator[Node]:
        refused = [self._algebra.negate(part) for part in parts]
        for index, part in enumerate(parts):
            yield self._algebra.all_of([*refused[:index], part, *refused[index + 1 :]])

    def _not_one(self, parts: Nodes) -> Iterator[Node]:
        yield self._algebra.all_of(self._algebra.negate(part) for part in parts)
        for pair in combinations(parts, 2):
            yield self._algebra.all_of(pair)

    def _unlike_object(self, key: Key) -> Iterator[Node]:
        """Yield what it takes to differ from an object."""
        algebra, parts = self._algebra, list(_parts_of(key))
        names = frozenset(str(name) for name, _ in parts)
        yield algebra.negate(algebra.make(Types, frozenset({Kind.OBJECT})))
        yield algebra.negate(algebra.make(Other, names, frozenset(), algebra.nothing))
        for name, part in parts:
            equal = algebra.make(Values, frozenset({part}))
            yield algebra.negate(algebra.make(Required, str(name)))
            yield algebra.negate(algebra.make(Member, str(name), equal))

    def _unlike_array(self, key: Key) -> Iterator[Node]:
        """Yield what it takes to differ from an array."""
        algebra, parts = self._algebra, list(_parts_of(key))
        yield algebra.negate(algebra.make(Types, frozenset({Kind.ARRAY})))
        yield algebra.negate(algebra.make(MaxItems, len(parts)))
        yield algebra.negate(algebra.make(MinItems, len(parts)))
        for index, part in parts:
            equal = algebra.make(Values, frozenset({part}))
            yield algebra.negate(algebra.make(Item, int(index), equal))


def _parts_of(key: Key) -> Iterator[tuple[str | int, Key]]:
    """Yield the parts of a compound value's key, each with its name or index."""
    if isinstance(key, tuple):
        for index, part in enumerate(key[1:]):
            if key[0] == Kind.OBJECT and isinstance(part, tuple):
                yield str(part[0]), part[1]
            else:
                yield index, part

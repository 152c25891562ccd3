"""The algebra that schemas are read into: nodes, each of which stands for a set of JSON values.

Every node is interned by its `Algebra`: equal ones are one object, whichever schema they come from,
so that a set of nodes is compared by identity and `S and not S` is seen without looking inside.
An *atom* says something of the values of one type, and nothing of all others, as keywords do.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, ParamSpec, TypeVar

from tallystick.compatibility.algebra.value import Key, Kind


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A set of JSON values."""


@dataclass(frozen=True, slots=True, eq=False)
class Everything(Node):
    """All values."""


@dataclass(frozen=True, slots=True, eq=False)
class Nothing(Node):
    """No value."""


@dataclass(frozen=True, slots=True, eq=False)
class Not(Node):
    """What is not in a node that is itself no complement."""

    part: Node


@dataclass(frozen=True, slots=True, eq=False)
class All(Node):
    """What is in every one of two nodes or more."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Some(Node):
    """What is in at least one of two nodes or more."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class One(Node):
    """What is in exactly one of two nodes or more."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Reference(Node):
    """What a schema position accepts that refers back to itself: `Algebra.target` has its node."""

    document: int
    pointer: str


@dataclass(frozen=True, slots=True, eq=False)
class Opaque(Node):
    """What a keyword accepts that is not understood."""

    keyword: str
    reason: str
    identity: Key


@dataclass(frozen=True, slots=True, eq=False)
class Size(Node):
    """Values of one type of at least, or of at most, so many parts."""

    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Types(Node):
    """The values of some types."""

    kinds: frozenset[Kind]


@dataclass(frozen=True, slots=True, eq=False)
class Values(Node):
    """Some values, each written as its key."""

    keys: frozenset[Key]


# --- atoms: numbers -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class AtLeast(Node):
    """Numbers from a bound up; without the bound itself if it is exclusive."""

    bound: Fraction
    is_exclusive: bool


@dataclass(frozen=True, slots=True, eq=False)
class AtMost(Node):
    """Numbers up to a bound; without the bound itself if it is exclusive."""

    bound: Fraction
    is_exclusive: bool


@dataclass(frozen=True, slots=True, eq=False)
class MultipleOf(Node):
    """The integer multiples of a positive number."""

    factor: Fraction


# --- atoms: strings -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class MinLength(Size):
    """Strings of at least so many code points."""


@dataclass(frozen=True, slots=True, eq=False)
class MaxLength(Size):
    """Strings of at most so many code points."""


@dataclass(frozen=True, slots=True, eq=False)
class Pattern(Node):
    """Strings in which a regular expression is found."""

    pattern: str


@dataclass(frozen=True, slots=True, eq=False)
class Format(Node):
    """Strings of a format that a dialect names."""

    name: str
    dialect: str


# --- atoms: arrays --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class MinItems(Size):
    """Arrays of at least so many items."""


@dataclass(frozen=True, slots=True, eq=False)
class MaxItems(Size):
    """Arrays of at most so many items."""


@dataclass(frozen=True, slots=True, eq=False)
class Item(Node):
    """Arrays whose item at an index, if there is one, is in a node."""

    index: int
    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class Rest(Node):
    """Arrays whose items from an index on are in a node."""

    start: int
    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class MinContains(Size):
    """Arrays of which at least so many items are in a node."""

    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class MaxContains(Size):
    """Arrays of which at most so many items are in a node."""

    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class Unique(Node):
    """Arrays without two equal items."""


# --- atoms: objects -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class MinMembers(Size):
    """Objects of at least so many properties."""


@dataclass(frozen=True, slots=True, eq=False)
class MaxMembers(Size):
    """Objects of at most so many properties."""


@dataclass(frozen=True, slots=True, eq=False)
class Required(Node):
    """Objects that have a property."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Member(Node):
    """Objects whose property of a name, if there is one, is in a node."""

    name: str
    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class Matching(Node):
    """Objects whose properties with names of a pattern are in a node."""

    pattern: str
    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class Other(Node):
    """Objects whose properties of any other name and of no such pattern are in a node."""

    names: frozenset[str]
    patterns: frozenset[str]
    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class Names(Node):
    """Objects whose property names are, as strings, in a node."""

    node: Node


KINDS: Final[dict[type[Node], Kind]] = {
    **dict.fromkeys((AtLeast, AtMost, MultipleOf), Kind.NUMBER),
    **dict.fromkeys((MinLength, MaxLength, Pattern, Format), Kind.STRING),
    **dict.fromkeys((MinItems, MaxItems, Item, Rest, MinContains, MaxContains, Unique), Kind.ARRAY),
    **dict.fromkeys(
        (MinMembers, MaxMembers, Required, Member, Matching, Other, Names), Kind.OBJECT
    ),
}
"""The type that each atom speaks of."""

_Parameters = ParamSpec("_Parameters")
_Made = TypeVar("_Made", bound=Node)


class Algebra:
    """Makes nodes, and makes each of them once.

    Attributes:
        leaves: The nodes of schemas that hold no others, by what those say.
    """

    def __init__(self) -> None:
        self.leaves: Final[dict[Hashable, Node]] = {}
        self._made: dict[tuple[object, ...], Node] = {}
        self._order: dict[Node, int] = {}
        self._targets: dict[Reference, Callable[[], Node]] = {}
        self._resolved: dict[Reference, Node] = {}
        self.everything: Final = self.make(Everything)
        self.nothing: Final = self.make(Nothing)

    def make(
        self,
        kind: Callable[_Parameters, _Made],
        *arguments: _Parameters.args,
        **named: _Parameters.kwargs,
    ) -> _Made:
        """Return the one node of this kind with these arguments."""
        key = (kind, *arguments, *named.values())
        found: Any = self._made.get(key)
        if found is None:
            found = self._made[key] = kind(*arguments, **named)
            self._order[found] = len(self._order)
        return found

    def carry(
        self,
        part: Node,
        kind: Callable[_Parameters, Node],
        *arguments: _Parameters.args,
        **named: _Parameters.kwargs,
    ) -> Node:
        """Return an atom that says something of a part: everything, if it says nothing of it."""
        is_empty = isinstance(part, Everything)
        return self.everything if is_empty else self.make(kind, *arguments, **named)

    def negate(self, node: Node) -> Node:
        """Return the complement."""
        match node:
            case Not(part):
                return part
            case Everything():
                return self.nothing
            case Nothing():
                return self.everything
            case _:
                return self.make(Not, node)

    def all_of(self, parts: Iterable[Node]) -> Node:
        """Return the intersection."""
        flat: dict[Node, None] = {}
        for part in parts:
            if part is self.nothing:
                return part
            if part is not self.everything:
                flat.update(dict.fromkeys(part.parts if isinstance(part, All) else (part,)))
        return self._joined(All, flat, self.everything)

    def any_of(self, parts: Iterable[Node]) -> Node:
        """Return the union."""
        flat: dict[Node, None] = {}
        for part in parts:
            if part is self.everything:
                return part
            if part is not self.nothing:
                flat.update(dict.fromkeys(part.parts if isinstance(part, Some) else (part,)))
        keys = [part.keys for part in flat if isinstance(part, Values)]
        if len(keys) > 1:
            others = [part for part in flat if not isinstance(part, Values)]
            union = self.make(Values, frozenset[Key]().union(*keys))
            return self._joined(Some, dict.fromkeys([union, *others]), self.nothing)
        return self._joined(Some, flat, self.nothing)

    def one_of(self, parts: Iterable[Node]) -> Node:
        """Return what is in exactly one of the parts."""
        listed = tuple(part for part in parts if part is not self.nothing)
        if len(listed) == 1:
            return listed[0]
        return self.make(One, listed) if listed else self.nothing

    def refer(self, document: int, pointer: str, target: Callable[[], Node]) -> Reference:
        """Return a reference, whose target is read when it is asked for."""
        reference = self.make(Reference, document, pointer)
        self._targets.setdefault(reference, target)
        return reference

    def target(self, reference: Reference) -> Node:
        """Return what a reference stands for."""
        if reference not in self._resolved:
            self._resolved[reference] = self._targets[reference]()
        return self._resolved[reference]

    def _joined(
        self, kind: Callable[[tuple[Node, ...]], Node], parts: dict[Node, None], neutral: Node
    ) -> Node:
        if not parts:
            return neutral
        if len(parts) == 1:
            return next(iter(parts))
        # One order, so that the order in which a schema lists its parts is no matter.
        return self.make(kind, tuple(sorted(parts, key=self._order.__getitem__)))

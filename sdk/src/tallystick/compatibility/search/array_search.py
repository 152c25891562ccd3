"""Finds an array that obeys what is asked of its items, or proves that there is none.

Lengths are tried from the least on. More items than are asked for by something never help, so that
the lengths to try end; and from some index on all items are asked the same. For a length, each item
is given a side of each `contains` and perhaps a debt (to be the one that breaks a rule), and then
values are found: distinct ones, by a matching, where items must be unique.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Final

from tallystick.canonical import Json
from tallystick.compatibility.algebra.node import (
    Algebra,
    Item,
    MaxContains,
    MaxItems,
    MinContains,
    MinItems,
    Node,
    Not,
    Rest,
    Unique,
    Values,
)
from tallystick.compatibility.algebra.value import Key, key_of, value_of
from tallystick.compatibility.budget import Budget
from tallystick.compatibility.search.bounds import Bounds
from tallystick.compatibility.search.object_search import Ask
from tallystick.compatibility.search.outcome import Closed, Found, Outcome, Stuck

# Longer arrays are not made; and beyond the second number, items that nothing asks for by itself
# are all made alike.
_ITEMS_MAX: Final = 50_000
_APART_MAX: Final = 300
# How many groups that are counted cost one step.
_GROUPS_PER_STEP: Final = 8

Row = tuple[frozenset[Node], ...]
"""What is asked of each item."""


@dataclass(slots=True)
class _Arrays:
    """What is asked of an array."""

    items: dict[int, list[Node]] = field(default_factory=dict[int, list[Node]])
    rests: list[tuple[int, Node]] = field(default_factory=list[tuple[int, Node]])
    debts: list[tuple[int, Node]] = field(default_factory=list[tuple[int, Node]])
    groups: dict[Node, Bounds] = field(default_factory=dict[Node, Bounds])
    size: Bounds = field(default_factory=Bounds)
    is_unique: bool = False
    has_twins: bool = False

    @property
    def prefix(self) -> int:
        """The index from which on all items are asked the same."""
        starts = [start for start, _ in (*self.rests, *self.debts)]
        return max([0, *(index + 1 for index in self.items), *starts])

    @property
    def apart(self) -> int:
        """How many items there can be for something to be asked of each by itself."""
        wanted = sum(bounds.least for bounds in self.groups.values()) + len(self.debts)
        return self.prefix + wanted + 2 * self.has_twins

    @property
    def longest(self) -> int:
        """The length beyond which more items never help."""
        longest = max(self.size.least, self.apart)
        return longest if self.size.most is None else min(longest, self.size.most)


@dataclass(frozen=True, slots=True)
class _Partial:
    """The first items of a row, with how many are in each group, and the debts that are paid."""

    row: Row
    counts: tuple[int, ...]
    paid: frozenset[int]

    def is_enough(self, asked: _Arrays) -> bool:
        """Whether nothing is left to be asked of further items."""
        return len(self.paid) == len(asked.debts) and all(
            count >= bounds.least
            for count, bounds in zip(self.counts, asked.groups.values(), strict=True)
        )


class ArraySearch:
    """One search for an array.

    Args:
        nodes: The atoms of arrays, plain and negated, that it must obey.
        ask: How a value is found for an item.
        algebra: The algebra of the nodes.
        budget: What it is paid from.
    """

    def __init__(self, nodes: Iterable[Node], ask: Ask, algebra: Algebra, budget: Budget) -> None:
        self._ask = ask
        self._algebra = algebra
        self._budget = budget
        self._stuck: Stuck | None = None
        self._asked = _Arrays()
        for node in nodes:
            self._gather(node)

    def find(self) -> Outcome:
        """Find an array."""
        asked = self._asked
        if asked.size.is_empty:
            return Closed("maxItems", "more items are required than allowed")
        if asked.size.least > _ITEMS_MAX:
            return Stuck("minItems", "so many items are not made")
        found: Found | None = None
        length = asked.size.least
        while found is None and length <= asked.longest:
            if length > 0 and self._outcome(self._nodes(length - 1), length - 1) is None:
                break  # there can be no such item, and so no longer array either
            found = self._of_length(length)
            length += 1
        return found or self._stuck or Closed("items", "no item may have such a value")

    # --- what is asked ----------------------------------------------------------------------------

    def _gather(self, node: Node) -> None:
        if not self._asked.size.take(node, MinItems, MaxItems) and not self._count(node):
            self._place(node)

    def _place(self, node: Node) -> None:
        asked, algebra = self._asked, self._algebra
        match node:
            case Item(index, part):
                asked.items.setdefault(index, []).append(part)
            case Not(Item(index, part)):
                asked.items.setdefault(index, []).append(algebra.negate(part))
                asked.size.at_least(index + 1)
            case Rest(start, part):
                asked.rests.append((start, part))
            case Not(Rest(start, part)):
                asked.debts.append((start, algebra.negate(part)))
                asked.size.at_least(start + 1)
            case Unique():
                asked.is_unique = True
            case Not(Unique()):
                asked.has_twins = True
                asked.size.at_least(2)
            case _:
                pass

    def _count(self, node: Node) -> bool:
        atom = node.part if isinstance(node, Not) else node
        if not isinstance(atom, MinContains | MaxContains):
            return False
        group = self._asked.groups.setdefault(atom.node, Bounds())
        group.take(node, MinContains, MaxContains)
        self._asked.size.at_least(group.least)
        return True

    def _nodes(self, index: int) -> frozenset[Node]:
        rests = (node for start, node in self._asked.rests if index >= start)
        return frozenset((*self._asked.items.get(index, ()), *rests))

    def _outcome(self, nodes: frozenset[Node], index: int) -> Found | Stuck | None:
        outcome = self._ask(nodes, str(index) if index < self._asked.prefix else "*")
        if isinstance(outcome, Stuck):
            self._stuck = self._stuck or outcome
        return None if isinstance(outcome, Closed) else outcome

    # --- one length -------------------------------------------------------------------------------

    def _of_length(self, length: int) -> Found | None:
        is_short = length <= _APART_MAX and bool(self._asked.groups)
        apart = length if is_short else min(length, self._asked.apart)
        alike: Row = ()
        groups = list(self._asked.groups.items())
        if apart < length:
            nodes = self._sided(apart, groups, tuple(_sides(bounds)[0] for _, bounds in groups))
            alike = (nodes,) * (length - apart)
            if self._outcome(nodes, apart) is None:
                if groups:
                    self._stuck = self._stuck or Stuck("contains", "the array is too long")
                return None
        for row in self._rows(apart):
            found = self._placed(row + alike)
            if found is not None:
                return found
        if alike and groups and self._asked.is_unique:
            self._stuck = self._stuck or Stuck("contains", "the array is too long")
        return None

    def _rows(self, length: int) -> Iterator[Row]:
        """Yield every way to give each item its side of each `contains`, and its debts."""
        groups = list(self._asked.groups.items())
        start = _Partial((), (0,) * len(groups), frozenset())
        pending = [iter([start])]
        while pending:
            partial = next(pending[-1], None)
            if partial is None:
                pending.pop()
            elif len(partial.row) < length:
                pending.append(self._extended(partial, groups, length))
            elif partial.is_enough(self._asked):
                yield partial.row

    def _extended(
        self, partial: "_Partial", groups: Sequence[tuple[Node, Bounds]], length: int
    ) -> Iterator["_Partial"]:
        """Yield every way to go on with one item more, while enough can still come after it."""
        index, debts = len(partial.row), self._asked.debts
        after = length - index - 1
        for sides in product(*(_sides(bounds) for _, bounds in groups)):
            self._budget.spend(1 + len(groups) // _GROUPS_PER_STEP)
            counts = tuple(
                count + (side is True) for count, side in zip(partial.counts, sides, strict=True)
            )
            if not all(
                bounds.least - after <= count and bounds.admit(count)
                for count, (_, bounds) in zip(counts, groups, strict=True)
            ):
                continue
            sided = self._sided(index, groups, sides)
            for paying in _payments(debts, partial.paid, index):
                nodes = sided | {debts[each][1] for each in paying}
                if self._outcome(nodes, index) is not None:
                    yield _Partial((*partial.row, nodes), counts, partial.paid | paying)

    def _sided(
        self, index: int, groups: Iterable[tuple[Node, Bounds]], sides: tuple[bool | None, ...]
    ) -> frozenset[Node]:
        extra = (
            node if side else self._algebra.negate(node)
            for (node, _), side in zip(groups, sides, strict=True)
            if side is not None
        )
        return self._nodes(index) | frozenset(extra)

    # --- values -----------------------------------------------------------------------------------

    def _placed(self, row: Row) -> Found | None:
        if self._asked.is_unique:
            return None if self._asked.has_twins else self._distinct(row)
        if self._asked.has_twins:
            return self._twins(row)
        return self._valued(row)

    def _valued(self, row: Row) -> Found | None:
        known: dict[frozenset[Node], Json] = {}
        for index, nodes in enumerate(row):
            if nodes not in known:
                outcome = self._outcome(nodes, index)
                if not isinstance(outcome, Found):
                    return None
                known[nodes] = outcome.value
        return Found([known[nodes] for nodes in row])

    def _twins(self, row: Row) -> Found | None:
        for left, right in combinations(range(len(row)), 2):
            both = row[left] | row[right]
            if isinstance(self._outcome(both, left), Found):
                twins = {left, right}
                found = self._valued(
                    tuple(both if at in twins else row[at] for at in range(len(row)))
                )
                if found is not None:
                    return found
        return None

    def _distinct(self, row: Row) -> Found | None:
        """Give each item a value of its own: a bipartite matching of items and values.

        As many values as there are items are enough of any one of them: who has so many can always
        be served, whatever the others took.
        """
        several: dict[frozenset[Node], list[Key] | None] = {}
        for index, nodes in enumerate(row):
            if nodes not in several:
                several[nodes] = self._several(nodes, index, len(row))
        options = [several[nodes] for nodes in row]
        owner = self._matched([keys for keys in options if keys is not None])
        if owner is None or None in options:
            return None
        values = {index: value_of(key) for key, index in owner.items()}
        return Found([values[index] for index in range(len(row))])

    def _several(self, nodes: frozenset[Node], index: int, wanted: int) -> list[Key] | None:
        """Return so many values, or all if there are fewer; None if that is not known."""
        keys: list[Key] = []
        while len(keys) < wanted:
            barred = self._algebra.negate(self._algebra.make(Values, frozenset(keys)))
            outcome = self._outcome(nodes | {barred} if keys else nodes, index)
            if isinstance(outcome, Stuck):
                return None
            if outcome is None:
                break
            keys.append(key_of(outcome.value))
        return keys

    def _matched(self, options: list[list[Key]]) -> dict[Key, int] | None:
        """Give each item one of its values, along augmenting paths; None if there is no way."""
        owner: dict[Key, int] = {}
        held: dict[int, Key] = {}
        for start in range(len(options)):
            reached: dict[Key, int] = {}
            pending = [start]
            free: list[Key] = []
            for item in pending:
                for key in options[item]:
                    self._budget.spend()
                    if key in reached:
                        continue
                    reached[key] = item
                    if key not in owner:
                        free.append(key)
                        break
                    pending.append(owner[key])
                if free:
                    break
            if not free:
                return None
            key = free[0]
            while True:
                item = reached[key]
                has_other, other = item in held, held.get(item)
                owner[key], held[item] = item, key
                if not has_other:
                    break
                key = other
        return owner


def _sides(bounds: Bounds) -> tuple[bool | None, ...]:
    """Return the sides of a `contains` that an item may take: outside, or of no matter, first."""
    return (False, True) if bounds.most is not None else (None, True)


def _payments(
    debts: list[tuple[int, Node]], paid: frozenset[int], index: int
) -> Iterator[frozenset[int]]:
    """Yield the sets of debts that an item may pay: all at once first, for a short array."""
    due = [each for each, (start, _) in enumerate(debts) if each not in paid and index >= start]
    for size in range(len(due), -1, -1):
        yield from map(frozenset, combinations(due, size))

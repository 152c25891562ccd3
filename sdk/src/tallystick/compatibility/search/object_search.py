"""Finds an object that obeys what is asked of its properties, or proves that there is none.

What is asked is of three sorts: *rules* (each property whose name is in a region has a value in a
node), names that must or must not be there, and *debts* (some property whose name is in a region
has a value in a node), which is what the complement of a rule comes to. A region is a set of nodes
that a name, as a string, has to be in.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tallystick.canonical import Json
from tallystick.compatibility.algebra.membership import Membership
from tallystick.compatibility.algebra.node import (
    Algebra,
    Matching,
    MaxMembers,
    Member,
    MinMembers,
    Names,
    Node,
    Not,
    Other,
    Pattern,
    Required,
    Types,
    Values,
)
from tallystick.compatibility.algebra.value import Kind
from tallystick.compatibility.budget import Budget
from tallystick.compatibility.search.bounds import Bounds
from tallystick.compatibility.search.outcome import Closed, Found, Outcome, Stuck

Ask = Callable[[frozenset[Node], str], Outcome]
"""Finds a value in all of some nodes, for the part of the value that a token names."""

Region = tuple[Node, ...]
Chosen = Mapping[str, frozenset[Node]]

_FILL_MAX: Final = 1_000
# How many nodes or properties that are copied cost one step.
_NODES_PER_STEP: Final = 8


@dataclass(slots=True)
class _Objects:
    """What is asked of an object."""

    members: dict[str, list[Node]] = field(default_factory=dict[str, list[Node]])
    rules: list[tuple[Region, Node]] = field(default_factory=list[tuple[Region, Node]])
    names: list[Node] = field(default_factory=list[Node])
    required: dict[str, list[Node]] = field(default_factory=dict[str, list[Node]])
    absent: set[str] = field(default_factory=set[str])
    debts: list[tuple[Region, Node]] = field(default_factory=list[tuple[Region, Node]])
    known: dict[str, None] = field(default_factory=dict[str, None])
    sorts: dict[Node, None] = field(default_factory=dict[Node, None])
    size: Bounds = field(default_factory=Bounds)


class ObjectSearch:
    """One search for an object.

    Args:
        nodes: The atoms of objects, plain and negated, that it must obey.
        ask: How a value is found for a property, or a name for one.
        algebra: The algebra of the nodes.
        membership: How it is told whether a name is in a region.
        budget: What it is paid from.
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        ask: Ask,
        algebra: Algebra,
        membership: Membership,
        budget: Budget,
    ) -> None:
        self._ask = ask
        self._algebra = algebra
        self._membership = membership
        self._budget = budget
        self._stuck: Stuck | None = None
        self._asked = _Objects()
        for node in nodes:
            self._gather(node)

    def find(self) -> Outcome:
        """Find an object."""
        asked = self._asked
        if asked.size.is_empty or not asked.size.admit(len(asked.required)):
            return Closed("maxProperties", "more properties are required than allowed")
        chosen: dict[str, frozenset[Node]] = {}
        for name, forced in asked.required.items():
            clash = self.clash(name)
            if clash is not None:
                return clash
            chosen[name] = self._nodes(name) | frozenset(forced)
        found = self._discharge(asked.debts, chosen)
        return found or self._stuck or Closed("properties", "no property may have such a value")

    def clash(self, name: str) -> Closed | None:
        """Return why no object may have a property that is required, if that is so."""
        if name not in self._asked.required:
            return None
        if name in self._asked.absent:
            return Closed("required", f"{name} is there, and may not be")
        if not self._may_be_named(name):
            return None if self._stuck else Closed("propertyNames", f"{name} is not a name for one")
        nodes = self._nodes(name) | frozenset(self._asked.required[name])
        outcome = self._ask(nodes, name)
        if isinstance(outcome, Stuck):
            self._stuck = self._stuck or outcome
        return outcome if isinstance(outcome, Closed) else None

    # --- what is asked ----------------------------------------------------------------------------

    def _gather(self, node: Node) -> None:
        asked, algebra = self._asked, self._algebra
        if asked.size.take(node, MinMembers, MaxMembers):
            return
        match node:
            case Required(name):
                asked.required.setdefault(name, [])
                asked.known[name] = None
            case Not(Required(name)):
                asked.absent.add(name)
                asked.known[name] = None
            case Member(name, part):
                asked.members.setdefault(name, []).append(part)
                asked.known[name] = None
            case Not(Member(name, part)):
                asked.required.setdefault(name, []).append(algebra.negate(part))
                asked.known[name] = None
            case Matching() | Other():
                asked.rules.append((self._region(node), node.node))
            case Not(Matching() | Other() as rule):
                asked.debts.append((self._region(rule), algebra.negate(rule.node)))
            case Names(part):
                asked.names.append(part)
            case Not(Names(part)):
                asked.debts.append(((algebra.negate(part),), algebra.everything))
                asked.sorts[part] = None
            case _:
                pass

    def _region(self, rule: Matching | Other) -> Region:
        asked, algebra = self._asked, self._algebra
        if isinstance(rule, Matching):
            pattern = algebra.make(Pattern, rule.pattern)
            asked.sorts[pattern] = None
            return (pattern,)
        patterns = [algebra.make(Pattern, each) for each in sorted(rule.patterns)]
        asked.sorts.update(dict.fromkeys(patterns))
        asked.known.update(dict.fromkeys(sorted(rule.names)))
        return (
            algebra.negate(algebra.make(Values, frozenset(rule.names))),
            *map(algebra.negate, patterns),
        )

    # --- one property -----------------------------------------------------------------------------

    def _nodes(self, name: str) -> frozenset[Node]:
        """Return all that is asked of the value of a property, if it is there."""
        nodes = set(self._asked.members.get(name, ()))
        for region, node in self._asked.rules:
            if self._is_in(region, name):
                nodes.add(node)
        return frozenset(nodes)

    def _is_in(self, region: Iterable[Node], name: str) -> bool:
        known = self._membership.holds_all(region, name)
        if known is None and self._stuck is None:
            self._stuck = Stuck("pattern", "whether a name matches a pattern is not known")
        return known is True

    def _may_be_named(self, name: str) -> bool:
        return self._is_in(self._asked.names, name)

    def _value(self, name: str, nodes: frozenset[Node]) -> Found | None:
        outcome = self._ask(nodes, name if name in self._asked.known else "*")
        if isinstance(outcome, Stuck):
            self._stuck = self._stuck or outcome
        return outcome if isinstance(outcome, Found) else None

    # --- debts ------------------------------------------------------------------------------------

    def _discharge(self, debts: list[tuple[Region, Node]], chosen: Chosen) -> Found | None:
        """Find a property for each debt, and then the object, trying every way to share them."""
        if not debts:
            return self._complete(chosen)
        pending = [(chosen, self._candidates(debts[0][0], chosen))]
        while pending:
            self._budget.spend(1 + len(pending) // _NODES_PER_STEP)
            paid, candidates = pending[-1]
            name = next(candidates, None)
            if name is None:
                pending.pop()
                continue
            nodes = paid.get(name, self._nodes(name)) | {debts[len(pending) - 1][1]}
            if self._value(name, nodes) is None:
                continue
            more = {**paid, name: nodes}
            if len(pending) < len(debts):
                pending.append((more, self._candidates(debts[len(pending)][0], more)))
                continue
            found = self._complete(more)
            if found is not None:
                return found
        return None

    def _candidates(self, region: Region, chosen: Chosen) -> Iterator[str]:
        """Yield the names that a debt may be paid under, of those that differ in no way one."""
        for name in chosen:
            if self._is_in(region, name):
                yield name
        for name in self._asked.known:
            if name not in chosen and self._is_free(name) and self._is_in(region, name):
                yield name
        yield from self._fresh(region, chosen)

    def _is_free(self, name: str) -> bool:
        return name not in self._asked.absent and self._may_be_named(name)

    def _fresh(self, region: Region, chosen: Chosen) -> Iterator[str]:
        """Yield a name that is nowhere mentioned, for each set of sorts that it may be of."""
        taken = frozenset((*self._asked.known, *chosen))
        base = frozenset((*self._asked.names, *region))
        pending = [(base, list(self._asked.sorts))]
        while pending:
            nodes, sorts = pending.pop()
            self._budget.spend(1 + (len(nodes) + len(sorts)) // _NODES_PER_STEP)
            name = self._name(nodes, taken)
            if name is None:
                continue
            if not sorts:
                yield name
                continue
            pending.append((nodes | {sorts[0]}, sorts[1:]))
            pending.append((nodes | {self._algebra.negate(sorts[0])}, sorts[1:]))

    def _name(self, nodes: frozenset[Node], taken: frozenset[str]) -> str | None:
        """Return a name in some nodes that is not taken: one that is not empty, if there is one."""
        algebra = self._algebra
        text = algebra.make(Types, frozenset({Kind.STRING}))
        for excluded in (taken | {""}, taken):
            barred = algebra.negate(algebra.make(Values, frozenset(excluded)))
            outcome = self._ask(nodes | {text, barred}, "*")
            if isinstance(outcome, Stuck):
                self._stuck = self._stuck or outcome
            if isinstance(outcome, Found) and isinstance(outcome.value, str):
                return outcome.value
        return None

    # --- the whole object -------------------------------------------------------------------------

    def _complete(self, chosen: Chosen) -> Found | None:
        """Add properties until there are enough, and find a value for each."""
        asked = self._asked
        if not asked.size.admit(len(chosen)):
            return None
        if asked.size.least > _FILL_MAX:
            self._stuck = self._stuck or Stuck("minProperties", "so many properties are not made")
            return None
        whole = dict(chosen)
        while len(whole) < asked.size.least:
            self._budget.spend()
            name = next(self._optional(whole), None)
            if name is None:
                return None
            whole[name] = self._nodes(name)
        value: dict[str, Json] = {}
        for name, nodes in whole.items():
            found = self._value(name, nodes)
            if found is None:
                return None
            value[name] = found.value
        return Found(value)

    def _optional(self, chosen: Chosen) -> Iterator[str]:
        for name in self._asked.known:
            if name not in chosen and self._is_free(name) and self._has_value(name):
                yield name
        yield from filter(self._has_value, self._fresh((), chosen))

    def _has_value(self, name: str) -> bool:
        return self._value(name, self._nodes(name)) is not None

"""Searches for a value that is in all of some nodes: a tableau, and so a proof if there is none.

A *case* gathers what must hold of one value. What is certain is added first; what is one of several
is a choice, and splits the case. A case is decided type by type, by the module of the type, which
asks this one in turn about the parts of the value: at first without its choices, for often there is
no value even so, or one that happens to obey them; only a choice that it breaks is made. JSON
values are finite, and a least one never needs, inside a part, an answer to the very question that
it is a part of: so a question that comes back inside itself is closed there.
"""

from collections.abc import Iterable
from typing import Final

from tallystick.canonical import Json, count_values, pointer_join
from tallystick.compatibility.algebra.membership import (
    Known,
    Membership,
    any_known,
    every,
    exactly_one,
    opposite,
)
from tallystick.compatibility.algebra.node import (
    KINDS,
    Algebra,
    All,
    Member,
    Node,
    Not,
    One,
    Reference,
    Required,
    Some,
    Types,
    Values,
)
from tallystick.compatibility.algebra.value import Kind, kind_of_key, value_of
from tallystick.compatibility.budget import Budget
from tallystick.compatibility.search.array_search import ArraySearch
from tallystick.compatibility.search.case import Case, Choice
from tallystick.compatibility.search.expansion import Expansion
from tallystick.compatibility.search.number_search import find_number
from tallystick.compatibility.search.object_search import ObjectSearch
from tallystick.compatibility.search.outcome import Closed, Found, Outcome, Stuck
from tallystick.compatibility.search.string_search import find_string
from tallystick.compatibility.verdict import Step

State = frozenset[Node]

_DEPTH_MAX: Final = 40
_STATUS_DEPTH_MAX: Final = 6
# Of how many values a value is made that is tried against choices.
_MODEL_MAX: Final = 1_000
_STEPS_KEPT_MAX: Final = 500
_STEPS_ALIKE_MAX: Final = 20
# How many nodes a copied case holds that cost one step.
_HELD_PER_STEP: Final = 8
# The types in the order in which a witness of them is easiest to read.
_ORDER: Final = (Kind.OBJECT, Kind.STRING, Kind.NUMBER, Kind.ARRAY, Kind.BOOLEAN, Kind.NULL)


class Search:
    """Searches for values in nodes of one algebra.

    Args:
        algebra: The algebra.
        budget: What the search is paid from.
    """

    def __init__(self, algebra: Algebra, budget: Budget) -> None:
        self.steps: list[Step] = []
        self._algebra = algebra
        self._budget = budget
        self._expansion = Expansion(algebra, budget)
        self._membership = Membership(algebra, budget)
        self._known: dict[State, Outcome] = {}
        self._open: dict[State, int] = {}
        self._path: list[str] = []
        self._leans_on = _DEPTH_MAX  # the outermost open question that an answer was taken from

    def find(self, nodes: Iterable[Node]) -> Outcome:
        """Find a value that is in all nodes.

        Raises:
            BudgetSpent: The search took too many steps.
        """
        return self._solve(frozenset(nodes))

    def _ask(self, nodes: State, token: str) -> Outcome:
        self._path.append(token)
        outcome = self._solve(nodes)
        self._path.pop()
        if isinstance(outcome, Stuck):
            return Stuck(outcome.keyword, outcome.reason, (token, *outcome.path))
        return outcome

    def _solve(self, state: State) -> Outcome:
        self._budget.spend()
        if state in self._known:
            return self._known[state]
        if state in self._open:
            self._leans_on = min(self._leans_on, self._open[state])
            return self._noted(Closed("recursion", "the same question, further out"))
        depth = len(self._open)
        if depth >= _DEPTH_MAX:
            return Stuck("", "values are nested too deeply")
        outer, self._leans_on = self._leans_on, _DEPTH_MAX
        self._open[state] = depth
        try:
            outcome = self._decide(state)
        finally:
            del self._open[state]
        # What was closed by leaning on a question that is still open holds only inside of it.
        leans_outward = self._leans_on < depth
        if isinstance(outcome, Found) or not leans_outward:
            self._known[state] = outcome
        self._leans_on = min(outer, self._leans_on) if leans_outward else outer
        return self._noted(outcome) if isinstance(outcome, Closed) else outcome

    def _noted(self, closed: Closed) -> Closed:
        """Put a closed question among the steps of the proof."""
        if len(self.steps) < _STEPS_KEPT_MAX:
            step = Step(pointer_join(*self._path), closed.rule, closed.detail)
            if step not in self.steps[-_STEPS_ALIKE_MAX:]:
                self.steps.append(step)
        return closed

    # --- cases ------------------------------------------------------------------------------------

    def _decide(self, state: State) -> Outcome:
        case = Case()
        closed = self._add(case, state)
        if closed is not None:
            return closed
        outcome: Outcome = Closed("cases", "no case is left")
        pending = [case]
        while pending:
            latest = self._advance(pending.pop(), pending)
            if isinstance(latest, Found):
                return latest
            if latest is not None and not isinstance(outcome, Stuck):
                outcome = latest
        return outcome

    def _advance(self, case: Case, pending: list[Case]) -> Outcome | None:
        """Decide a case, or split it into more that are pending and return None."""
        closed = self._propagate(case) if len(case.choices) > 1 else None
        if closed is not None:
            return closed
        if case.keys is not None:
            return self._enumerate(case)
        outcome = self._leaf(case)
        if isinstance(outcome, Closed):
            return outcome
        broken = self._broken(case, outcome)
        if broken is None:
            return outcome
        if isinstance(broken, Choice):
            return self._split(case, broken, pending)
        case.latent.remove(broken)
        known = self._seen(case, broken)
        if known is False:
            return Closed("cases", "no case is left")
        if known is None:
            case.choices.extend(self._expansion.choices(broken, case.kinds))
        pending.append(case)
        return None

    def _broken(self, case: Case, outcome: Found | Stuck) -> Choice | Node | None:
        """Return what has to be chosen, or said in full, for a value found without it breaks it."""
        choices: Iterable[Choice] = case.choices
        latent: Iterable[Node] = case.latent
        if isinstance(outcome, Found) and count_values(outcome.value, _MODEL_MAX) <= _MODEL_MAX:
            holds, value = self._membership.holds, outcome.value
            choices = (
                choice
                for choice in choices
                if not any_known(holds(node, value) for node in choice.nodes)
            )
            latent = (node for node in latent if not holds(node, value))
        return min(choices, key=_urgency, default=None) or next(iter(latent), None)

    def _split(self, case: Case, choice: Choice, pending: list[Case]) -> Outcome | None:
        case.choices.remove(choice)
        outcome: Outcome | None = None
        cases: list[Case] = []
        for node in choice.nodes:
            if self._status(case, node) is False:
                continue
            self._budget.spend(1 + len(case.held) // _HELD_PER_STEP)
            branch = case.copy()
            closed = self._add(branch, (node,))
            outcome = closed or outcome
            if closed is None:
                cases.append(branch)
        pending.extend(reversed(cases))
        return None if cases else outcome or self._refusal(case, choice)

    def _refusal(self, case: Case, choice: Choice) -> Closed:
        """Return why none of the nodes of a choice holds: what is wrong with the last one."""
        trial = case.copy()
        outcome = self._add(trial, choice.nodes[-1:]) or self._leaf(trial)
        return outcome if isinstance(outcome, Closed) else Closed("cases", "no case is left")

    def _add(self, case: Case, nodes: Iterable[Node]) -> Closed | None:
        """Add nodes, and what follows from them; return why the case is closed if it is."""
        todo = list(nodes)
        while todo:
            node = todo.pop()
            if node in case.held:
                continue
            self._budget.spend()
            if self._algebra.negate(node) in case.held:
                return Closed("contradiction", "the same is asked and refused")
            closed = self._hold(case, node)
            if closed is not None:
                return closed
            if type(node) not in KINDS:
                todo.extend(self._expansion.certain(node))
                if self._expansion.is_latent(node):
                    case.latent.append(node)
                else:
                    case.choices.extend(self._expansion.choices(node, case.kinds))
        return None

    def _hold(self, case: Case, node: Node) -> Closed | None:
        if isinstance(node, Not) and isinstance(node.part, Member):
            case.name(node.part.name, self._algebra.negate(node.part.node))
        return case.hold(node)

    def _propagate(self, case: Case) -> Closed | None:
        """Make the choices that are none any more, until nothing more follows."""
        is_settled = False
        while not is_settled and case.keys is None:
            is_settled = True
            for choice in list(case.choices):
                answers = [self._status(case, node) for node in choice.nodes]
                left = tuple(
                    node
                    for node, answer in zip(choice.nodes, answers, strict=True)
                    if answer is not False
                )
                if not left:
                    return self._refusal(case, choice)
                if len(left) == len(choice.nodes) and True not in answers:
                    continue
                case.choices.remove(choice)
                if True in answers:
                    continue
                if len(left) > 1:
                    case.choices.append(Choice(left, choice.is_goal))
                    continue
                closed = self._add(case, left)
                if closed is not None:
                    return closed
                is_settled = False
        return None

    # --- what a case says of a node ---------------------------------------------------------------

    def _status(self, case: Case, node: Node, depth: int = 0) -> Known:
        """Tell whether a node must hold in a case, or cannot: as far as that is easily seen."""
        self._budget.spend()
        if node in case.held:
            return True
        if self._algebra.negate(node) in case.held:
            return False
        return self._seen(case, node, depth) if depth <= _STATUS_DEPTH_MAX else None

    def _seen(self, case: Case, node: Node, depth: int = 0) -> Known:
        """Tell the same of a node by what is inside it."""
        match node:
            case Not(part):
                return opposite(self._seen(case, part, depth))
            case All(parts):
                known = every(self._status(case, part, depth + 1) for part in parts)
                return False if known is None and self._clashes(case, parts) else known
            case Some(parts):
                return any_known(self._status(case, part, depth + 1) for part in parts)
            case One(parts):
                return exactly_one([self._status(case, part, depth + 1) for part in parts])
            case Reference():
                return self._status(case, self._algebra.target(node), depth + 1)
            case _:
                return self._plain_status(case, node)

    def _plain_status(self, case: Case, node: Node) -> Known:
        kind = KINDS.get(type(node))
        if kind is not None and kind not in case.kinds:
            return True
        match node:
            case Types(kinds) if case.kinds <= kinds or not case.kinds & kinds:
                return case.kinds <= kinds
            case Values(keys) if not case.kinds & {kind_of_key(key) for key in keys}:
                return False
            case Member(name, part) if case.is_only(Kind.OBJECT):
                return self._member_status(case, name, part)
            case Required(name) if case.is_only(Kind.OBJECT):
                return name in case.present or (False if name in case.absent else None)
            case _:
                return self._scalar_status(case, node)

    def _member_status(self, case: Case, name: str, part: Node) -> Known:
        if name in case.absent:
            return True
        nodes = case.value_nodes(name)
        if isinstance(self._ask(nodes | {self._algebra.negate(part)}, name), Closed):
            return True
        is_refused = name in case.present and isinstance(self._ask(nodes | {part}, name), Closed)
        return False if is_refused else None

    def _scalar_status(self, case: Case, node: Node) -> Known:
        if not (case.is_only(Kind.NUMBER) or case.is_only(Kind.STRING)):
            return None
        for tried, answer in ((node, False), (self._algebra.negate(node), True)):
            self._budget.spend(1 + len(case.held) // _HELD_PER_STEP)
            trial = case.copy()
            closed = self._add(trial, (tried,))
            if closed is None and trial.keys is None:
                outcome = self._leaf(trial)
                closed = outcome if isinstance(outcome, Closed) else None
            if closed is not None:
                return answer
        return None

    def _clashes(self, case: Case, parts: tuple[Node, ...]) -> bool:
        """Tell whether nodes, each of which may hold, cannot hold together for one property."""
        if not case.is_only(Kind.OBJECT):
            return False
        trial = Case()
        for part in parts:
            self._hold(trial, part)
        return any(
            isinstance(self._ask(nodes | case.value_nodes(name), name), Closed)
            for name, nodes in trial.named.items()
            if name in trial.present or name in case.present
        )

    # --- decided cases ----------------------------------------------------------------------------

    def _enumerate(self, case: Case) -> Outcome:
        """Try the only values that are left."""
        stuck: Stuck | None = None
        for key in sorted(case.keys or (), key=repr):
            if kind_of_key(key) in case.kinds:
                value = value_of(key)
                known = self._membership.holds_all(case.held, value)
                if known:
                    return Found(value)
                if known is None:
                    stuck = Stuck("enum", "whether a listed value is accepted is not known")
        return stuck or Closed("enum", "no listed value is left")

    def _leaf(self, case: Case) -> Outcome:
        """Find a value in a case, whatever its choices."""
        self._budget.spend(1 + len(case.held) // _HELD_PER_STEP)
        outcome: Outcome = Closed("type", "no type is left")
        opaque = case.opaque()
        for kind in _ORDER:
            if kind in case.kinds:
                latest = self._typed(case, kind)
                if isinstance(latest, Found) and opaque is None:
                    return latest
                if isinstance(latest, Found) and opaque is not None:
                    return Stuck(opaque.keyword, opaque.reason)
                if not isinstance(outcome, Stuck):
                    outcome = latest
        return outcome

    def _typed(self, case: Case, kind: Kind) -> Outcome:
        match kind:
            case Kind.NULL:
                return self._either(case, (None,))
            case Kind.BOOLEAN:
                return self._either(case, (False, True))
            case Kind.NUMBER:
                return find_number(case.atoms(kind), self._budget)
            case Kind.STRING:
                return find_string(case.atoms(kind), self._membership, self._budget)
            case Kind.ARRAY:
                return ArraySearch(case.atoms(kind), self._ask, self._algebra, self._budget).find()
            case Kind.OBJECT:
                return self._objects(case).find()

    def _objects(self, case: Case) -> ObjectSearch:
        return ObjectSearch(
            case.atoms(Kind.OBJECT), self._ask, self._algebra, self._membership, self._budget
        )

    def _either(self, case: Case, values: tuple[Json, ...]) -> Outcome:
        excluded = [
            node for node in case.held if isinstance(node, Not) and isinstance(node.part, Values)
        ]
        for value in values:
            if self._membership.holds_all(excluded, value):
                return Found(value)
        return Closed("type", "no value of the type is left")


def _urgency(choice: Choice) -> tuple[int, int]:
    """Order choices: what says most of the value, then what is to be broken, then the rest."""
    rank = 0 if choice.is_telling else 1 if choice.is_goal else 2
    return rank, len(choice.nodes)

"""Regular languages: what patterns, lists of strings and lengths let through, and combinations.

Whether a language has a member is answered exactly: with a shortest one, or with None once every
state that its derivatives lead to has been seen.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import inf
from typing import ClassVar, Final

from tallystick.compatibility.budget import Budget, BudgetSpent
from tallystick.compatibility.languages.boolean import complement, intersection, union
from tallystick.compatibility.languages.derivative import Branch, State, after, branches, start
from tallystick.compatibility.languages.expression import EVERYTHING, NOTHING, Expression, length
from tallystick.compatibility.languages.expression import words as listed
from tallystick.compatibility.languages.regex import UnsupportedPattern, parse, search

# So that a step takes about the same time everywhere. Derivatives can take time, and space, with
# the square of the size of an expression.
_STEPS_PER_STATE: Final = 10
_SIZE_SQUARED_PER_STEP: Final = 200
_SIZE_PER_STEP: Final = 1

__all__ = ["Language", "UnsupportedPattern", "is_finite_within", "members", "shortest"]


@dataclass(frozen=True, slots=True)
class Language:
    """A set of strings of Unicode scalar values; lengths count them.

    Two languages that compare equal are the same, but the same language may be written in ways
    that compare unequal.
    """

    expression: Expression

    EVERYTHING: ClassVar["Language"]
    NOTHING: ClassVar["Language"]

    @staticmethod
    def of_pattern(pattern: str) -> "Language":
        """Return the strings in which a pattern is found, as `compile_pattern` reads it.

        Raises:
            UnsupportedPattern: The engine refuses it, or it is outside what is modelled exactly.
        """
        return _of_pattern(pattern)

    @staticmethod
    def of_words(words: Iterable[str]) -> "Language":
        """Return some strings."""
        return Language(listed(words))

    @staticmethod
    def of_length(minimum: int, maximum: int | None = None) -> "Language":
        """Return the strings of so many characters, with no upper bound if `maximum` is None."""
        return Language(length(minimum, inf if maximum is None else maximum))

    def __and__(self, other: "Language") -> "Language":
        return Language(intersection((self.expression, other.expression)))

    def __or__(self, other: "Language") -> "Language":
        return Language(union((self.expression, other.expression)))

    def __invert__(self) -> "Language":
        return Language(complement(self.expression))

    def matches(self, text: str) -> bool:
        """Return whether a string is a member."""
        state = start(self.expression)
        for character in text:
            state = after(state).at(character)
        return state.is_accepting


Language.EVERYTHING = Language(EVERYTHING)
Language.NOTHING = Language(NOTHING)


@lru_cache(maxsize=1024)
def _of_pattern(pattern: str) -> Language:
    return Language(search(parse(pattern)))


def shortest(
    language: Language, budget: Budget, *, excluding: frozenset[str] = frozenset()
) -> str | None:
    """Return a shortest member that is not excluded, or None: then it is proven there is none.

    Raises:
        BudgetSpent: The steps were used up before either was found.
    """
    if excluding:
        language &= ~Language.of_words(excluding)
    return _nearest(start(language.expression), budget)


def members(language: Language, budget: Budget) -> Iterator[str]:
    """Yield the members, each once, shortest first.

    It ends when a finite language is exhausted.

    Raises:
        BudgetSpent: While it is iterated, the steps were used up.
    """
    living = _Living(budget)
    first = start(language.expression)
    layers = [{first}]
    while living.has(first) and layers[-1]:
        if any(state.is_accepting for state in layers[-1]):
            yield from _of_one_length(layers, budget)
        targets = {branch.target for state in layers[-1] for branch in _explored(state, budget)}
        layers.append({target for target in targets if living.has(target)})


def is_finite_within(language: Language, limit: int, budget: Budget) -> tuple[str, ...] | None:
    """Return all members if there are at most so many, else None.

    Raises:
        BudgetSpent: The steps were used up before this was known.
    """
    found = tuple(islice(members(language, budget), limit + 1))
    return found if len(found) <= limit else None


def _explored(state: State, budget: Budget) -> tuple[Branch, ...]:
    """Return the branches of a state, and pay for them, whether they are known already or not."""
    size = state.expression.size
    budget.spend(_STEPS_PER_STATE + size * size // _SIZE_SQUARED_PER_STEP)
    found = branches(state)
    sizes = sum(branch.target.expression.size for branch in found)
    budget.spend(len(found) + sizes // _SIZE_PER_STEP)
    return found


def _nearest(first: State, budget: Budget) -> str | None:
    """Search breadth first for a state that accepts, and return what leads there."""
    if first.expression.low > budget.left:
        raise BudgetSpent
    came: dict[State, tuple[State, str] | None] = {first: None}
    pending = deque(came)
    while pending:
        state = pending.popleft()
        if state.is_accepting:
            return _spelled(state, came)
        for branch in _explored(state, budget):
            if branch.target not in came:
                came[branch.target] = state, branch.character
                pending.append(branch.target)
    return None


def _spelled(state: State, came: Mapping[State, tuple[State, str] | None]) -> str:
    text: list[str] = []
    while (step := came[state]) is not None:
        state, character = step
        text.append(character)
    return "".join(reversed(text))


class _Living:
    """Which states have a member ahead of them; each is found out once."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._known: dict[State, bool] = {}

    def has(self, first: State) -> bool:
        came: dict[State, State] = {first: first}
        pending = deque(came)
        while pending:
            state = pending.popleft()
            if state.is_accepting or self._known.get(state):
                self._remember(state, came)
                return True
            if state not in self._known:
                targets = [branch.target for branch in _explored(state, self._budget)]
                fresh = [target for target in targets if target not in came]
                came.update(dict.fromkeys(fresh, state))
                pending.extend(dict.fromkeys(fresh))
        self._known.update(dict.fromkeys(came, False))
        return False

    def _remember(self, state: State, came: Mapping[State, State]) -> None:
        while not self._known.get(state):
            self._known[state] = True
            state = came[state]


def _of_one_length(layers: Sequence[set[State]], budget: Budget) -> Iterator[str]:
    """Yield the members that have one character for each layer after the first.

    Args:
        layers: The states that can be reached with no character, with one, and so on.
        budget: Pays for each character that is tried.
    """
    ahead = [{state for state in layers[-1] if state.is_accepting}]
    for layer in reversed(layers[:-1]):
        leading = (state for state in layer if any(b.target in ahead[-1] for b in branches(state)))
        ahead.append(set(leading))
    ahead.reverse()

    def onward(state: State, length: int) -> Iterator[tuple[str, State]]:
        for branch in branches(state):
            if length < len(ahead) and branch.target in ahead[length]:
                yield from ((character, branch.target) for character in branch.characters())

    text: list[str] = []
    pending = [iter([("", state) for state in ahead[0]])]
    while pending:
        step = next(pending[-1], None)
        if step is None:
            pending.pop()
            del text[-1:]
            continue
        budget.spend()
        text.append(step[0])
        if len(pending) == len(ahead):
            yield "".join(text)
            text.pop()
        else:
            pending.append(onward(step[1], len(pending)))

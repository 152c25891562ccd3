"""Derivatives of an expression: what is left to match once a character has been read.

All derivatives of one expression are taken at once, as a function of the character (the symbolic
derivatives of Stanford, Veanes and Bjørner, PLDI 2021). An anchor looks at both its neighbours, so
the one before goes into a derivative beside the expression, and the one after is the character
that it is a function of.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, lru_cache, partial
from typing import NamedTuple

from tallystick.compatibility.languages.boolean import complement, intersection, union
from tallystick.compatibility.languages.characters import (
    Range,
    Steps,
    at_points,
    combine,
    constant,
    in_order,
    ordinal,
    preference,
    word_characters,
)
from tallystick.compatibility.languages.expression import (
    EDGES,
    EMPTY,
    NOTHING,
    WORDS,
    Anchor,
    Complement,
    Concat,
    Expression,
    Intersection,
    OneOf,
    Place,
    Repeat,
    Union,
    Words,
    concat,
    repeat,
    words,
)


class Side(IntEnum):
    """What stands beside a place of a text: its edge, or a character of a word or another."""

    EDGE = 0
    WORD = 1
    OTHER = 2


class State(NamedTuple):
    """What is left to match, and what stands before it as far as that matters."""

    expression: Expression
    before: Side

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here."""
        return accepts_empty(self.expression, self.before, Side.EDGE)


@dataclass(frozen=True, slots=True)
class Branch:
    """The characters that lead from one state to another."""

    ranges: tuple[Range, ...]
    target: State

    @property
    def character(self) -> str:
        """The most readable of the characters."""
        return next(self.characters())

    def characters(self) -> Iterator[str]:
        """Yield the characters, the most readable first."""
        return in_order(self.ranges)


def start(expression: Expression) -> State:
    """Return the state before a whole text."""
    return _state(expression, Side.EDGE)


@lru_cache(maxsize=1 << 13)
def after(state: State) -> Steps[State]:
    """Return the state that each character leads to."""
    left = derivatives(state.expression, state.before)
    if state.expression.looks & WORDS:
        return combine(_state, left, _sides())
    return left.map(lambda expression: _state(expression, Side.OTHER))


@lru_cache(maxsize=1 << 13)
def branches(state: State) -> tuple[Branch, ...]:
    """Return the states that lie one character ahead, the most readable character first.

    Those that match nothing, as far as their expressions say so, are left out.
    """
    ranges: dict[State, list[Range]] = {}
    for target, span in after(state).ranges():
        if target.expression != NOTHING:
            ranges.setdefault(target, []).append(span)
    found = (Branch(tuple(spans), target) for target, spans in ranges.items())
    return tuple(sorted(found, key=lambda branch: preference(branch.character)))


def accepts_empty(expression: Expression, before: Side, after: Side) -> bool:
    """Whether an expression matches the empty string between two neighbours."""
    if expression.nullable is not None:
        return expression.nullable
    match expression:
        case Place(content=anchor):
            return _holds(anchor, before, after)
        case Concat(content=parts) | Intersection(content=parts):
            return all(accepts_empty(part, before, after) for part in parts)
        case Union(content=parts):
            return any(accepts_empty(part, before, after) for part in parts)
        case Repeat(content=(part, _, _)):
            return accepts_empty(part, before, after)
        case Complement(content=part):
            return not accepts_empty(part, before, after)
        case _:
            raise AssertionError(expression)


def derivatives(expression: Expression, before: Side) -> Steps[Expression]:
    """Return what is left of an expression after each character."""
    return _derivatives(expression, _seen(expression, before))


@lru_cache(maxsize=1 << 13)
def _derivatives(expression: Expression, before: Side) -> Steps[Expression]:
    match expression:
        case OneOf(content=characters):
            return characters.map(lambda is_member: EMPTY if is_member else NOTHING)
        case Words(content=texts):
            return _of_words(texts)
        case Concat(content=parts):
            return _of_concat(parts, before)
        case Repeat(content=(part, low, high)):
            return combine(
                lambda left, is_skipped: concat(
                    (left, repeat(part, 0 if is_skipped else max(low - 1, 0), high - 1))
                ),
                derivatives(part, before),
                _skips(part, before),
            )
        case Union(content=parts):
            return _gathered(union, (derivatives(part, before) for part in parts))
        case Intersection(content=parts):
            return _gathered(intersection, (derivatives(part, before) for part in parts))
        case Complement(content=part):
            return derivatives(part, before).map(complement)
        case _:
            return constant(NOTHING)


def _of_words(texts: frozenset[str]) -> Steps[Expression]:
    rests: dict[int, list[str]] = {}
    for text in texts:
        if text:
            rests.setdefault(ordinal(text[0]), []).append(text[1:])
    return at_points({place: words(rest) for place, rest in rests.items()}, NOTHING)


def _of_concat(parts: tuple[Expression, ...], before: Side) -> Steps[Expression]:
    """Return what is left of a sequence: its first part that is not empty loses the character."""
    found: list[Steps[Expression]] = []
    reached = constant(value=True)
    for at, part in enumerate(parts):
        read = partial(_read, rest=concat(parts[at + 1 :]))
        found.append(combine(read, derivatives(part, before), reached))
        if part.nullable is False:
            break
        reached = combine(_both, reached, _skips(part, before))
    return _gathered(union, found)


def _read(left: Expression, is_reached: bool, rest: Expression) -> Expression:  # noqa: FBT001 -- of a character
    if not is_reached or left == NOTHING:
        return NOTHING
    return rest if left == EMPTY else concat((left, rest))


def _both(one: bool, other: bool) -> bool:  # noqa: FBT001 -- an operator
    return one and other


def _gathered(
    gather: Callable[[Iterable[Expression]], Expression], found: Iterable[Steps[Expression]]
) -> Steps[Expression]:
    """Combine many pair by pair: two alone have fewer edges, and often much in common."""

    def both(one: Expression, other: Expression) -> Expression:
        return gather((one, other))

    pending = list(found)
    while len(pending) > 1:
        joined = [combine(both, *pair) for pair in zip(pending[::2], pending[1::2], strict=False)]
        pending = joined + pending[2 * len(joined) :]
    return pending[0]


def _skips(expression: Expression, before: Side) -> Steps[bool]:
    """Return whether an expression is empty here, for each character that may come next."""
    if expression.looks & WORDS:
        return _sides().map(lambda side: accepts_empty(expression, before, side))
    return constant(accepts_empty(expression, before, Side.OTHER))


@cache
def _sides() -> Steps[Side]:
    return word_characters().map(lambda is_word: Side.WORD if is_word else Side.OTHER)


def _state(expression: Expression, before: Side) -> State:
    return State(expression, _seen(expression, before))


def _seen(expression: Expression, before: Side) -> Side:
    """Return what an expression makes out of the character before: one state for many."""
    is_seen = expression.looks & (EDGES if before is Side.EDGE else WORDS)
    return before if is_seen else Side.OTHER


def _holds(anchor: Anchor, before: Side, after: Side) -> bool:
    match anchor:
        case Anchor.START:
            return before is Side.EDGE
        case Anchor.END:
            return after is Side.EDGE
        case Anchor.BOUNDARY:
            return (before is Side.WORD) != (after is Side.WORD)
        case Anchor.INSIDE:
            return (before is Side.WORD) == (after is Side.WORD)

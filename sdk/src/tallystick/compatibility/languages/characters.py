"""Characters, sets of them, and functions of one character that are constant over ranges.

A character is a Unicode scalar value. It is known by its ordinal, its place among all of them:
that is its code point, with the surrogates (which are no characters) left out of the count.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Final, Generic, TypeVar, overload

from tallystick.subschema import compile_pattern

Value = TypeVar("Value")
Other = TypeVar("Other")
Third = TypeVar("Third")
Result = TypeVar("Result")
Range = tuple[int, int]

_SURROGATES: Final = 0xD800
_SURROGATE_COUNT: Final = 0x800
LAST: Final = 0x10FFFF - _SURROGATE_COUNT
_BLOCK: Final = 4096


def ordinal(character: str) -> int:
    """Return the place of a character among all of them."""
    code = ord(character)
    return code if code < _SURROGATES else code - _SURROGATE_COUNT


def character(place: int) -> str:
    """Return the character at a place."""
    return chr(place if place < _SURROGATES else place + _SURROGATE_COUNT)


@dataclass(frozen=True, slots=True)
class Steps(Generic[Value]):
    """A function of one character, as its values between edges.

    Args:
        edges: The ordinals where another value begins, rising from 0.
        values: The value from each edge up to the next; no two neighbours are equal.
    """

    edges: tuple[int, ...]
    values: tuple[Value, ...]

    def at(self, character: str) -> Value:
        """Return the value at a character."""
        return self.values[bisect_right(self.edges, ordinal(character)) - 1]

    def map(self, function: Callable[[Value], Result]) -> "Steps[Result]":
        """Return the function that gives another value where this one gives its own."""
        return combine(function, self)

    def ranges(self) -> Iterator[tuple[Value, Range]]:
        """Yield each value with its first and its last ordinal."""
        ends = chain(self.edges[1:], (LAST + 1,))
        for value, first, end in zip(self.values, self.edges, ends, strict=True):
            yield value, (first, end - 1)


Characters = Steps[bool]


def constant(value: Value) -> Steps[Value]:
    """Return the function that has the same value everywhere."""
    return Steps((0,), (value,))


@overload
def combine(
    function: Callable[[Value, Other], Result], one: Steps[Value], other: Steps[Other], /
) -> Steps[Result]: ...
@overload
def combine(
    function: Callable[[Value, Other, Third], Result],
    one: Steps[Value],
    other: Steps[Other],
    third: Steps[Third],
    /,
) -> Steps[Result]: ...
@overload
def combine(function: Callable[..., Result], /, *steps: Steps[Any]) -> Steps[Result]: ...
def combine(function: Callable[..., Result], /, *steps: Steps[Any]) -> Steps[Result]:
    """Apply a function to the values of others, character by character."""
    edges = steps[0].edges
    columns: list[Iterable[Any]] = [steps[0].values]
    if len(steps) > 1:
        edges = sorted(set(chain.from_iterable(step.edges for step in steps)))
        columns = [_spread(step, edges) for step in steps]
    known: dict[tuple[Any, ...], Result] = {}
    starts: list[int] = []
    values: list[Result] = []
    for edge, row in zip(edges, zip(*columns, strict=True), strict=True):
        if row not in known:
            known[row] = function(*row)
        if not values or values[-1] != known[row]:
            starts.append(edge)
            values.append(known[row])
    return Steps(tuple(starts), tuple(values))


def _spread(step: Steps[Any], edges: Iterable[int]) -> list[Any]:
    if len(step.edges) == 1:
        return [step.values[0] for _ in edges]
    return [step.values[bisect_right(step.edges, edge) - 1] for edge in edges]


def at_points(values: Mapping[int, Value], otherwise: Value) -> Steps[Value]:
    """Return the function that has these values at these ordinals, and another elsewhere."""
    table = {0: otherwise}
    for place in sorted(values):
        table[place] = values[place]
        if place < LAST:
            table[place + 1] = otherwise
    return Steps(tuple(table), tuple(table.values())).map(lambda value: value)


ALL: Final[Characters] = constant(value=True)
NONE: Final[Characters] = constant(value=False)


def characters(ranges: Iterable[Range]) -> Characters:
    """Return the set of the characters in some ranges of ordinals, both ends included."""
    edges, values = [0], [False]
    for first, last in sorted(ranges):
        if first > edges[-1] or not edges[-1]:
            edges += [first, last + 1]
            values += [True, False]
        elif last >= edges[-1]:
            edges[-1] = last + 1
    if edges[-1] > LAST:
        del edges[-1], values[-1]
    if edges[1:2] == [0]:
        del edges[0], values[0]
    return Steps(tuple(edges), tuple(values))


# The order in which characters are chosen: what reads well first, NUL last of all, because some
# stores refuse it. Each character is in one of these ranges.
_PREFERENCE: Final = tuple(
    (ordinal(first), ordinal(last))
    for first, last in (
        *("az", "09", "AZ", "-/", "!,", ":@", "[`", "{~", "  ", "\xa1\u024f"),
        *("\x01\x1f", "\x7f\xa0", "\u0250\U0010ffff", "\0\0"),
    )
)


def in_order(ranges: Iterable[Range]) -> Iterator[str]:
    """Yield the characters of some ranges of ordinals, the most readable first."""
    kept = tuple(ranges)
    for low, high in _PREFERENCE:
        for first, last in kept:
            yield from map(character, range(max(first, low), min(last, high) + 1))


def preference(character: str) -> tuple[int, int]:
    """Return the sort key of the order in which characters are chosen."""
    place = ordinal(character)
    ranks = (rank for rank, (low, high) in enumerate(_PREFERENCE) if low <= place <= high)
    return next(ranks), place


@lru_cache(maxsize=256)
def asked(item: str) -> Characters:
    r"""Return the characters that an expression for one character matches.

    The engine is asked, block by block, so that the tables of Unicode are always its own.

    Args:
        item: Such an expression, as in ``\p{L}``.

    Raises:
        ValueError: The engine does not know it.
    """
    holds_one, holds_all = compile_pattern(item).is_valid, compile_pattern(f"^{item}*$").is_valid
    found: list[Range] = []
    pending = [(first, min(first + _BLOCK - 1, LAST)) for first in range(0, LAST + 1, _BLOCK)]
    while pending:
        first, last = pending.pop()
        text = "".join(map(character, range(first, last + 1)))
        if not holds_one(text):
            continue
        if holds_all(text):
            found.append((first, last))
        else:
            middle = (first + last) // 2
            pending += [(first, middle), (middle + 1, last)]
    return characters(found)


@cache
def word_characters() -> Characters:
    r"""Return the characters that a word boundary (``\b``) takes for a part of a word.

    These are those of Unicode (UTS #18, annex C), though ``\w`` means those of ASCII.
    """
    return asked(r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]")

"""Extended regular expressions: with intersection, complement and anchors, and kept in normal form.

Built only by the functions below, which simplify: two expressions that differ by no more than the
order, grouping or repetition of alternatives are equal. That is what keeps the derivatives of an
expression finite in number (Brzozowski 1964, theorem 5.2), and much more of it than the theorem
asks for is what keeps them few.
"""

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import Final

from tallystick.compatibility.languages.characters import ALL, NONE, Characters, characters, ordinal

# What looks for words tells hundreds of ranges of characters apart.
_WORDS_SIZE: Final = 100


# What of its neighbourhood an expression looks at: a set of bits.
EDGES: Final = 1
WORDS: Final = 2


class Anchor(Enum):
    """A condition on a place between two characters, which takes none itself."""

    START = "^"
    END = "$"
    BOUNDARY = r"\b"
    INSIDE = r"\B"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Expression:
    """A set of strings, seen at one place of a text.

    Args:
        content: What it is made of; with its class it says all about it.
        size: How many sets of characters, words and operators it has, about.
        depth: How deep they are nested.
        low: No member is shorter.
        high: No member is longer.
        nullable: Whether the empty string is a member, or None if that depends on the place.
        looks: What of its neighbourhood it depends on, `EDGES | WORDS` at most.
    """

    content: Hashable
    size: int = 1
    depth: int = 1
    low: float = 0
    high: float = inf
    nullable: bool | None
    looks: int = 0
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((type(self).__name__, self.content)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Expression)
            and self._hash == other._hash
            and type(self) is type(other)
            and self.content == other.content
        )


class OneOf(Expression):
    """One character of a set."""

    __slots__ = ()
    content: Characters


class Words(Expression):
    """One of some strings."""

    __slots__ = ()
    content: frozenset[str]


class Place(Expression):
    """The empty string, where an anchor holds."""

    __slots__ = ()
    content: Anchor


class Concat(Expression):
    """One expression after the other."""

    __slots__ = ()
    content: tuple[Expression, ...]


class Repeat(Expression):
    """An expression so many times: at least the first number, at most the second."""

    __slots__ = ()
    content: tuple[Expression, float, float]


class Union(Expression):
    """What is in any of some expressions."""

    __slots__ = ()
    content: frozenset[Expression]


class Intersection(Expression):
    """What is in all of some expressions."""

    __slots__ = ()
    content: frozenset[Expression]


class Complement(Expression):
    """What is not in an expression."""

    __slots__ = ()
    content: Expression


def one_of(characters: Characters) -> Expression:
    """Return the strings of one character of a set."""
    if characters == NONE:
        return NOTHING
    return OneOf(
        content=characters, size=1 + len(characters.edges) // 8, low=1, high=1, nullable=False
    )


def words(texts: Iterable[str]) -> Expression:
    """Return some strings."""
    content = frozenset(texts)
    lengths = {len(text) for text in content}
    if lengths == {1}:
        return one_of(characters((ordinal(text), ordinal(text)) for text in content))
    low, high = min(lengths, default=0), max(lengths, default=0)
    size = 1 + sum(map(len, content)) // 16
    return Words(content=content, size=size, low=low, high=high, nullable="" in content)


def place(anchor: Anchor) -> Expression:
    """Return the empty string, where an anchor holds."""
    if anchor in (Anchor.START, Anchor.END):
        return Place(content=anchor, high=0, nullable=None, looks=EDGES)
    return Place(content=anchor, size=_WORDS_SIZE, high=0, nullable=None, looks=WORDS)


NOTHING: Final = words(())
EMPTY: Final = words(("",))
ANY: Final = one_of(ALL)


def _least(part: Expression) -> Expression:
    """Return as little of a part as is needed beside anything at all."""
    if part.nullable:
        return EMPTY
    if isinstance(part, Repeat):
        repeated, low, _ = part.content
        return repeat(repeated, low, low)
    return part


def concat(parts: Iterable[Expression]) -> Expression:
    """Return expressions one after the other."""
    content: list[Expression] = []
    pending = deque(parts)
    while pending:
        piece = pending.popleft()
        if isinstance(piece, Concat):
            pending.extendleft(reversed(piece.content))
            continue
        if piece == NOTHING:
            return NOTHING
        # What stands beside anything at all need not be there more often than it must.
        last = content[-1] if content else EMPTY
        if last == EVERYTHING and piece != (least := _least(piece)):
            pending.appendleft(least)
        elif piece == EVERYTHING and last != (least := _least(last)):
            pending.extendleft((piece, least))
            content.pop()
        elif (joined := _joined(last, piece)) is not None:
            content[-1] = joined
        elif piece != EMPTY:
            content.append(piece)
    if len(content) < 2:  # noqa: PLR2004 -- none or one
        return content[0] if content else EMPTY
    return Concat(
        content=tuple(content),
        size=1 + sum(part.size for part in content),
        depth=1 + max(part.depth for part in content),
        low=sum(part.low for part in content),
        high=sum(part.high for part in content),
        nullable=all_of(part.nullable for part in content),
        looks=looks_of(content),
    )


def repeat(part: Expression, low: float, high: float = inf) -> Expression:
    """Return an expression repeated at least `low` and at most `high` times."""
    if part.nullable:
        low = 0
    if high == 0 or part == EMPTY or (part == NOTHING and low == 0):
        return EMPTY
    if part == NOTHING or (low, high) == (1, 1):
        return part
    if isinstance(part, Repeat):
        inner, fewest, most = part.content
        if fewest <= 1:  # then the numbers of repetitions that add up have no gaps
            return repeat(inner, low * fewest, high * most)
    return Repeat(
        content=(part, low, high),
        size=1 + part.size,
        depth=1 + part.depth,
        low=low * part.low,
        high=high * part.high if part.high else 0,
        nullable=True if low == 0 else part.nullable,
        looks=part.looks,
    )


def length(low: float, high: float = inf) -> Expression:
    """Return all strings of at least `low` and at most `high` characters."""
    return repeat(ANY, max(low, 0), high) if low <= high else NOTHING


EVERYTHING: Final = length(0)


def all_of(answers: Iterable[bool | None]) -> bool | None:
    """Return whether all answers are yes, with None for what is not known."""
    known = set(answers)
    return False if False in known else None if None in known else True


def any_of(answers: Iterable[bool | None]) -> bool | None:
    """Return whether any answer is yes, with None for what is not known."""
    known = set(answers)
    return True if True in known else None if None in known else False


def looks_of(parts: Iterable[Expression]) -> int:
    """Return what any of some expressions looks at."""
    looks = 0
    for part in parts:
        looks |= part.looks
    return looks


def _joined(one: Expression, other: Expression) -> Expression | None:
    """Return two neighbours as one repetition, if they repeat the same."""
    part, low, high = one.content if isinstance(one, Repeat) else (one, 1, 1)
    same, more, most = other.content if isinstance(other, Repeat) else (other, 1, 1)
    is_repeated = isinstance(one, Repeat) or isinstance(other, Repeat)
    return repeat(part, low + more, high + most) if is_repeated and part == same else None


def span_of(part: Expression) -> tuple[float, float] | None:
    """Return the fewest and the most characters of an expression that bounds nothing else."""
    if isinstance(part, Repeat) and part.content[0] == ANY:
        return part.content[1], part.content[2]
    return (1, 1) if part == ANY else (0, 0) if part == EMPTY else None

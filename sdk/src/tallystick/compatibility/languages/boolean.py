"""Union, intersection and complement of expressions, in normal form.

Every combination is a union without complements, an intersection with one complement at most, or
the complement of either; the rules below say which of several ways to write it is taken.
"""

from collections.abc import Callable, Iterable
from math import inf
from typing import TypeVar

from tallystick.compatibility.languages.characters import combine
from tallystick.compatibility.languages.expression import (
    EMPTY,
    EVERYTHING,
    NOTHING,
    Complement,
    Concat,
    Expression,
    Intersection,
    OneOf,
    Repeat,
    Union,
    Words,
    all_of,
    any_of,
    concat,
    length,
    looks_of,
    one_of,
    repeat,
    span_of,
    words,
)

Kind = TypeVar("Kind", bound=Expression)


def complement(part: Expression) -> Expression:
    """Return what is not in an expression."""
    if isinstance(part, Complement):
        return part.content
    if part == NOTHING:
        return EVERYTHING
    span = span_of(part)
    if span is not None:
        return union((length(0, span[0] - 1), length(span[1] + 1) if span[1] < inf else NOTHING))
    spans = {inner for inner in _parts(part) if span_of(inner) is not None}
    if spans:
        rest = complement(union(_parts(part) - spans))
        return intersection((rest, *(complement(inner) for inner in spans)))
    return Complement(
        content=part,
        size=1 + part.size,
        depth=1 + part.depth,
        nullable=None if part.nullable is None else not part.nullable,
        looks=part.looks,
    )


def union(parts: Iterable[Expression]) -> Expression:
    """Return what is in any of some expressions.

    No union has a complement among its parts: `a | ~b` is written as `~(b & ~a)`.
    """
    content = _flat(parts, Union)
    denied = [part.content for part in content if isinstance(part, Complement)]
    if denied:
        others = (part for part in content if not isinstance(part, Complement))
        return complement(intersection((*denied, complement(union(others)))))
    content.discard(NOTHING)
    if len(content) > 1:
        settled = {_beside_union(part, content) for part in content}
        if settled != content:
            return union(settled)
        _merge(content, OneOf, _any_of)
        _merge(content, Words, _any_word)
        _merge_counts(content)
        _drop_longer(content)
        if EVERYTHING in content:
            return EVERYTHING
        if EMPTY in content and any(part.nullable for part in content - {EMPTY}):
            content.discard(EMPTY)
    if len(content) < 2:  # noqa: PLR2004 -- none or one
        return content.pop() if content else NOTHING
    return Union(
        content=frozenset(content),
        size=1 + sum(part.size for part in content),
        depth=1 + max(part.depth for part in content),
        low=min(part.low for part in content),
        high=max(part.high for part in content),
        nullable=any_of(part.nullable for part in content),
        looks=looks_of(content),
    )


def intersection(parts: Iterable[Expression]) -> Expression:
    """Return what is in all of some expressions.

    No intersection has two complements among its parts: `~a & ~b` is written as `~(a | b)`.
    """
    content = _flat(parts, Intersection)
    denied = [part.content for part in content if isinstance(part, Complement)]
    if len(denied) > 1:
        others = (part for part in content if not isinstance(part, Complement))
        return intersection((*others, complement(union(denied))))
    content.discard(EVERYTHING)
    if len(content) > 1:
        settled = {_beside_intersection(part, content) for part in content}
        if settled != content:
            return intersection(settled)
        _merge(content, OneOf, _each_of)
        _merge(content, Words, _each_word)
        _sift_words(content)
        _narrow_span(content)
        if NOTHING in content or _is_denied(content):
            return NOTHING
        if EMPTY in content and all(part.nullable is not None for part in content):
            return EMPTY if all(part.nullable for part in content) else NOTHING
    if len(content) < 2:  # noqa: PLR2004 -- none or one
        return content.pop() if content else EVERYTHING
    low, high = max(part.low for part in content), min(part.high for part in content)
    if low > high:
        return NOTHING
    return Intersection(
        content=frozenset(content),
        size=1 + sum(part.size for part in content),
        depth=1 + max(part.depth for part in content),
        low=low,
        high=high,
        nullable=all_of(part.nullable for part in content),
        looks=looks_of(content),
    )


def _flat(parts: Iterable[Expression], kind: type[Union | Intersection]) -> set[Expression]:
    return {
        inner for part in parts for inner in (part.content if isinstance(part, kind) else [part])
    }


def _parts(part: Expression) -> frozenset[Expression]:
    return part.content if isinstance(part, Union) else frozenset((part,))


def _denied(content: set[Expression] | frozenset[Expression]) -> frozenset[Expression]:
    """Return what the complement in an intersection excludes, if there is one."""
    none: frozenset[Expression] = frozenset()
    return next((_parts(part.content) for part in content if isinstance(part, Complement)), none)


def _is_denied(content: set[Expression]) -> bool:
    """Return whether the complement in an intersection plainly excludes another part."""
    denied = _denied(content)
    if not denied.isdisjoint(content):
        return True
    counted = [_counted(part) for part in denied if isinstance(part, Repeat | Concat)]
    return any(
        repeated == first and rest == then and least <= low and high <= most
        for part in content
        if counted and isinstance(part, Repeat | Concat)
        for repeated, rest, (low, high) in (_counted(part),)
        for first, then, (least, most) in counted
    )


def _beside_intersection(part: Expression, content: set[Expression]) -> Expression:
    """Return what a part adds to others: `a & (a | b)` is `a`, `~a & (a | b)` is `~a & b`."""
    if not isinstance(part, Union):
        return part
    return EVERYTHING if part.content & content else union(part.content - _denied(content))


def _beside_union(part: Expression, content: set[Expression]) -> Expression:
    """Return what a part adds to others: `a | (a & b)` is `a`, `a | (~a & b)` is `a | b`."""
    if not isinstance(part, Intersection):
        return part
    if part.content & content:
        return NOTHING
    denied = _denied(part.content)
    if denied.isdisjoint(content):
        return part
    others = (inner for inner in part.content if not isinstance(inner, Complement))
    return intersection((*others, complement(union(denied - content))))


def _merge(
    content: set[Expression], kind: type[Kind], join: Callable[[list[Kind]], Expression]
) -> None:
    """Make one part of all the parts of a kind."""
    found = [part for part in content if isinstance(part, kind)]
    if len(found) > 1:
        content.difference_update(found)
        content.add(join(found))


def _any_of(parts: list[OneOf]) -> Expression:
    return one_of(combine(lambda *held: any(held), *(part.content for part in parts)))


def _each_of(parts: list[OneOf]) -> Expression:
    return one_of(combine(lambda *held: all(held), *(part.content for part in parts)))


def _any_word(parts: list[Words]) -> Expression:
    return words(frozenset[str]().union(*(part.content for part in parts)))


def _each_word(parts: list[Words]) -> Expression:
    return words(parts[0].content.intersection(*(part.content for part in parts)))


def _merge_counts(content: set[Expression]) -> None:
    """Make one part of those that differ only in how often their first expression is repeated."""
    alike: dict[tuple[Expression, tuple[Expression, ...]], dict[Expression, tuple[float, float]]]
    alike = {}
    for part in content - {EMPTY}:
        repeated, rest, span = _counted(part)
        alike.setdefault((repeated, rest), {})[part] = span
    for (repeated, rest), counts in alike.items():
        if not rest and EMPTY in content:
            counts[EMPTY] = 0, 0
        joined = _joined_spans(counts.values())
        if len(joined) < len(counts):
            content.difference_update(counts.keys() - {EMPTY})
            content.update(concat((repeat(repeated, *span), *rest)) for span in joined)


def _counted(
    part: Expression,
) -> tuple[Expression, tuple[Expression, ...], tuple[float, float]]:
    """Return what a part repeats first, what comes then, and how often it may repeat it."""
    head, *rest = part.content if isinstance(part, Concat) else (part,)
    repeated, low, high = head.content if isinstance(head, Repeat) else (head, 1, 1)
    return repeated, tuple(rest), (low, inf if rest and rest[0] == EVERYTHING else high)


def _joined_spans(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Make one of the spans that overlap or adjoin."""
    joined: list[tuple[float, float]] = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], high)
        else:
            joined.append((low, high))
    return joined


def _drop_longer(content: set[Expression]) -> None:
    """Drop what ends in another part that begins with anything at all."""
    endings = {
        part.content
        for part in content
        if isinstance(part, Concat) and part.content[0] == EVERYTHING
    }
    for part in list(content) if endings else ():
        if isinstance(part, Concat) and any(
            part.content[at:] in endings for at in range(1, len(part.content))
        ):
            content.discard(part)


def _narrow_span(content: set[Expression]) -> None:
    """Make one length of all, as narrow as the other parts allow, or none if they see to it."""
    found = {part: span for part in content if (span := span_of(part)) is not None}
    if not found:
        return
    content.difference_update(found)
    low, high = max(span[0] for span in found.values()), min(span[1] for span in found.values())
    lowest = max((part.low for part in content), default=0)
    highest = min((part.high for part in content), default=inf)
    if low > lowest or high < highest or not content:
        content.add(length(max(low, lowest), min(high, highest)))


def _sift_words(content: set[Expression]) -> None:
    """Leave only the words that the other parts allow, as far as those can be asked."""
    listed = next((part for part in content if isinstance(part, Words)), None)
    if listed is None:
        return
    denied = _denied(content)
    asked = {part for part in content - {listed} if _can_list(part)}
    refused = {part for part in denied if _can_list(part)}
    texts = {
        text
        for text in listed.content
        if all(_lists(part, text) for part in asked)
        and not any(_lists(part, text) for part in refused)
    }
    content -= {listed, *asked}
    content.add(words(texts))
    if refused:
        content -= {part for part in content if isinstance(part, Complement)}
        content.add(complement(union(denied - refused)))


def _can_list(part: Expression) -> bool:
    return isinstance(part, Words | OneOf) or span_of(part) is not None


def _lists(part: Expression, text: str) -> bool:
    span = span_of(part)
    if span is not None:
        return span[0] <= len(text) <= span[1]
    if isinstance(part, OneOf):
        return len(text) == 1 and part.content.at(text)
    return isinstance(part, Words) and text in part.content

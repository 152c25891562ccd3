"""Finds a string that obeys lengths, patterns and formats, or proves that there is none.

Lengths and patterns are regular languages, and decided as such. Of formats only an outline is one.
They, and patterns beyond that, are tried: on the members of what is regular in the question, and on
samples.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

from tallystick.canonical import Json
from tallystick.compatibility.algebra.formats import OUTLINES, SAMPLES
from tallystick.compatibility.algebra.membership import Membership
from tallystick.compatibility.algebra.node import (
    Format,
    MaxLength,
    MinLength,
    Node,
    Not,
    Pattern,
    Values,
)
from tallystick.compatibility.budget import Budget
from tallystick.compatibility.languages.language import Language, members, shortest
from tallystick.compatibility.languages.regex import UnsupportedPattern
from tallystick.compatibility.search.bounds import Bounds
from tallystick.compatibility.search.outcome import Closed, Found, Outcome, Stuck

_TRIED_MAX: Final = 60
# A witness is to be read, and made in memory: nobody needs one of a million characters.
_LENGTH_MAX: Final = 10_000


@dataclass(slots=True)
class _Strings:
    """What is asked of a string.

    Args:
        language: What of it is regular.
        others: What is not.
        excluded: What it must not be.
    """

    language: Language
    others: list[Node] = field(default_factory=list[Node])
    excluded: set[str] = field(default_factory=set[str])
    size: Bounds = field(default_factory=Bounds)


def find_string(nodes: Iterable[Node], membership: Membership, budget: Budget) -> Outcome:
    """Find a string that all of these atoms, plain and negated, let through."""
    asked = _gather(nodes, budget)
    if asked.size.is_empty:
        return Closed("length", "no string is as long and as short as asked")
    if asked.size.least > _LENGTH_MAX:
        return Stuck("minLength", "a string as long as asked is not made")
    language = asked.language & Language.of_length(asked.size.least, asked.size.most)
    if not asked.others:
        text = shortest(language, budget, excluding=frozenset(asked.excluded))
        return Closed("language", "no string is as asked") if text is None else Found(text)
    if shortest(language, budget) is None:
        return Closed("language", "no string is as asked")
    candidates = chain(_samples(language), islice(members(language, budget), _TRIED_MAX))
    for text in candidates:
        if text not in asked.excluded and membership.holds_all(asked.others, text):
            return Found(text)
    return Stuck(*_obstacle(asked.others[0]))


def _gather(nodes: Iterable[Node], budget: Budget) -> _Strings:
    asked = _Strings(Language.EVERYTHING)
    for node in nodes:
        budget.spend()
        if asked.size.take(node, MinLength, MaxLength):
            continue
        match node:
            case Not(Values(keys)):
                asked.excluded.update(key for key in keys if isinstance(key, str))
            case Pattern(pattern) | Not(Pattern(pattern)):
                try:
                    language = Language.of_pattern(pattern)
                except UnsupportedPattern:
                    asked.others.append(node)
                else:
                    is_plain = isinstance(node, Pattern)
                    asked.language &= language if is_plain else ~language
            case Format(name) if name in OUTLINES:
                asked.language &= Language.of_pattern(OUTLINES[name])
                asked.others.append(node)
            case _:
                asked.others.append(node)
    return asked


def _samples(language: Language) -> Iterator[Json]:
    return (text for text in SAMPLES if language.matches(text))


def _obstacle(node: Node) -> tuple[str, str]:
    atom = node.part if isinstance(node, Not) else node
    if isinstance(atom, Format):
        return "format", f"what texts have the format {atom.name} is only tried, not known"
    return "pattern", "the pattern is beyond what is reasoned about"

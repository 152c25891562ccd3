"""Which property became which, told from names, types and texts alone.

A rename is claimed only where one old property and one new one fit each other best and nothing else
fits as well: what is ambiguous is told as one removed and one added. Names in other units
(`amount_dollars`, `amount_cents`) are never called a rename.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import IntEnum
from typing import Final

CANDIDATES_MAX: Final = 200

_TYPO_RATIO_MIN: Final = 0.85
# `msg`, `qty`, `src`: the consonants of a word stand for it.
_SKELETON_CHARS: Final = range(3, 5)
_VOWELS: Final = frozenset("aeiou")

# Longer names are compared word by word alone.
_NAME_CHARS_MAX: Final = 64

# camelCase, PascalCase, snake_case, kebab-case and dots: `pullNumber` is `pull_number`.
_TOKEN: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_]+")

_UNIT_NAMES: Final = (
    "cent cents dollar dollars eur euro euros gbp usd yen "
    "ms millis milliseconds s sec second seconds min minute minutes hour hours day days week weeks "
    "month months year years "
    "byte bytes kb mb gb kib mib gib "
    "mm cm m km meter meters metre metres inch inches foot feet mile miles "
    "g gram grams kg kilogram kilograms lb lbs pound pounds "
    "celsius fahrenheit kelvin degrees radians percent ratio fraction "
)
_UNITS: Final = frozenset(_UNIT_NAMES.split())


@dataclass(frozen=True, slots=True)
class Candidate:
    """A property that is only on one side.

    Args:
        name: Its name.
        types: The types that it lets through.
        structure: Equal for properties that say the same of their values.
        description: Its text, if it has one.
        is_required: Whether it is required.
    """

    name: str
    types: frozenset[str]
    structure: Hashable
    description: str | None
    is_required: bool


class _Fit(IntEnum):
    """How well two properties fit, from not at all to the same name spelled differently."""

    NONE = 0
    SAME_HEAD = 1
    SIMILAR = 2
    SAME_TEXT = 3
    SAME_WORDS = 4


def renamed(gone: Iterable[Candidate], come: Iterable[Candidate]) -> dict[str, str]:
    """Return the new name of each old property that was renamed.

    Beyond `CANDIDATES_MAX` on a side only names that differ in spelling alone are matched.
    """
    old, new = tuple(gone), tuple(come)
    if max(len(old), len(new)) > CANDIDATES_MAX:
        return _respelled(old, new)
    fits = {
        (left.name, right.name): fit
        for left in old
        for right in new
        if (fit := _fit(left, right)) is not _Fit.NONE
    }
    return _best(fits)


def _best(fits: Mapping[tuple[str, str], _Fit]) -> dict[str, str]:
    """Return the pairs that fit each other best, where nothing else fits as well."""
    found: dict[str, str] = {}
    used_old: set[str] = set()
    used_new: set[str] = set()
    for level in sorted(set(fits.values()), reverse=True):
        pairs = [
            (left, right)
            for (left, right), fit in fits.items()
            if fit is level and left not in used_old and right not in used_new
        ]
        lefts = Counter(left for left, _ in pairs)
        rights = Counter(right for _, right in pairs)
        found |= {left: right for left, right in pairs if lefts[left] == rights[right] == 1}
        # What is ambiguous here is not left over for a worse fit.
        used_old |= lefts.keys()
        used_new |= rights.keys()
    return found


def _respelled(old: tuple[Candidate, ...], new: tuple[Candidate, ...]) -> dict[str, str]:
    by_words: dict[tuple[str, ...], list[str]] = {}
    for each in new:
        by_words.setdefault(words(each.name), []).append(each.name)
    spellings = Counter(words(each.name) for each in old)
    return {
        each.name: by_words[words(each.name)][0]
        for each in old
        if spellings[words(each.name)] == 1 and len(by_words.get(words(each.name), ())) == 1
    }


def _fit(old: Candidate, new: Candidate) -> _Fit:
    mine, theirs = words(old.name), words(new.name)
    if mine == theirs or "".join(mine) == "".join(theirs):
        return _Fit.SAME_WORDS
    if _are_in_other_units(mine, theirs) or not _have_one_type(old, new):
        return _Fit.NONE
    is_same = old.structure == new.structure
    if is_same and old.description and old.description == new.description:
        return _Fit.SAME_TEXT
    if _is_shortened(mine, theirs) or (is_same and _is_similar(mine, theirs)):
        return _Fit.SIMILAR
    is_same_role = is_same and old.is_required == new.is_required
    has_one_head = len(mine) == len(theirs) > 1 and mine[-1] == theirs[-1]
    return _Fit.SAME_HEAD if is_same_role and has_one_head else _Fit.NONE


def words(name: str) -> tuple[str, ...]:
    """Return the words of a name, in lower case: `pullNumber` and `pull_number` are one name."""
    return tuple(token.lower() for token in _TOKEN.findall(name)) or (name,)


def _have_one_type(old: Candidate, new: Candidate) -> bool:
    def kinds(each: Candidate) -> frozenset[str]:
        return frozenset("number" if name == "integer" else name for name in each.types) - {"null"}

    return kinds(old) == kinds(new)


def _are_in_other_units(mine: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    return bool(_UNITS & (set(mine) ^ set(theirs)))


def _is_shortened(mine: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """Whether each word of one name is, or abbreviates, the word of the other in its place."""
    if len(mine) != len(theirs):
        return False
    pairs = zip(mine, theirs, strict=True)
    return all(left == right or _abbreviates(left, right) for left, right in pairs)


def _is_similar(mine: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """Whether one name is a part of the other, its initials, or the other mistyped.

    `number` for `issue_number`, `since` for `since_date`, `pr_number` for `pull_request_number`.
    """
    short, long = sorted((mine, theirs), key=len)
    if set(short) < set(long) or _initials(short, long):
        return True
    if len(short) > 1 and short[-1] == long[-1] and _initials(short[:-1], long[:-1]):
        return True
    return len(short) == len(long) and _is_typo("".join(mine), "".join(theirs))


def _is_typo(left: str, right: str) -> bool:
    if max(len(left), len(right)) > _NAME_CHARS_MAX:
        return False
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    return (
        matcher.real_quick_ratio() >= _TYPO_RATIO_MIN
        and matcher.quick_ratio() >= _TYPO_RATIO_MIN
        and matcher.ratio() >= _TYPO_RATIO_MIN
    )


def _abbreviates(left: str, right: str) -> bool:
    short, long = sorted((left, right), key=len)
    if not short or short == long:
        return False
    if long.startswith(short):
        return True
    letters = iter(long)
    return (
        len(short) in _SKELETON_CHARS
        and short[0] == long[0]
        and not _VOWELS & set(short[1:])
        and all(letter in letters for letter in short)
    )


def _initials(short: tuple[str, ...], long: tuple[str, ...]) -> bool:
    return len(short) == 1 < len(long) and short[0] == "".join(word[0] for word in long)

"""Changes of the bounds of a value: how great a number, how long a text, how many items."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isfinite
from typing import Final

from tallystick.canonical import MISSING, Json
from tallystick.compatibility.changes.change import Change, ChangeKind
from tallystick.compatibility.changes.face import Face
from tallystick.compatibility.changes.sides import NEW_TO_OLD, OLD_TO_NEW
from tallystick.compatibility.changes.wording import quoted


@dataclass(frozen=True, slots=True)
class _Bound:
    """One bound; the greater its `weight`, the fewer values are left."""

    weight: tuple[Fraction, bool]
    value: Json
    pointer: str
    phrase: str


_COUNTS: Final = {
    "minLength": ("be at least {} long", "character"),
    "maxLength": ("be at most {} long", "character"),
    "minItems": ("have at least {}", "item"),
    "maxItems": ("have at most {}", "item"),
    "minProperties": ("have at least {}", "property"),
    "maxProperties": ("have at most {}", "property"),
}
_LIMITS: Final = {
    "lower": {"minimum": "be at least {}", "exclusiveMinimum": "be more than {}"},
    "upper": {"maximum": "be at most {}", "exclusiveMaximum": "be less than {}"},
}
_FAMILY_OF_COUNT: Final = {"Length": "string", "Items": "array", "Properties": "object"}


def bound_changes(old: Face, new: Face) -> Iterator[Change]:
    """Yield what changed in the bounds of values of the types that both faces let through."""
    shared = old.families & new.families
    for keyword in _COUNTS:
        if _FAMILY_OF_COUNT[keyword[3:]] in shared:
            yield from _bound_change(new, _count(old, keyword), _count(new, keyword))
    if "number" in shared:
        is_whole = "integer" in old.types and "integer" in new.types
        for side in _LIMITS:
            before, after = (_limit(each, side, is_whole=is_whole) for each in (old, new))
            yield from _bound_change(new, before, after)
    if "array" in shared:
        yield from _bound_change(new, _uniqueness(old), _uniqueness(new))


def _bound_change(new: Face, before: _Bound | None, after: _Bound | None) -> Iterator[Change]:
    bound = before if after is None else after
    if bound is None:
        return
    if before is not None and after is not None and before.weight == after.weight:
        return
    is_tighter = before is None or (after is not None and after.weight > before.weight)
    if after is None:
        why = f"{new.name} need no longer {bound.phrase}"
    elif before is None:
        why = f"{new.name} must now {after.phrase}"
    else:
        verb = "must now" if is_tighter else "need only"
        why = f"{new.name} {verb} {after.phrase}; before, it had to {before.phrase}"
    yield Change(
        path=bound.pointer,
        kind=ChangeKind.BOUND_TIGHTENED if is_tighter else ChangeKind.BOUND_LOOSENED,
        old=MISSING if before is None else before.value,
        new=MISSING if after is None else after.value,
        breaks=OLD_TO_NEW if is_tighter else NEW_TO_OLD,
        why=why,
    )


def _count(face: Face, keyword: str) -> _Bound | None:
    held = face.keywords.get(keyword)
    number = None if held is None else exact(held.value)
    if held is None or number is None:
        return None
    phrase, noun = _COUNTS[keyword]
    plural = noun if number == 1 else f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    weight = number if keyword.startswith("min") else -number
    words_of = phrase.format(f"{quoted(held.value)} {plural}")
    return _Bound((weight, False), held.value, held.pointer, words_of)


def _limit(face: Face, side: str, *, is_whole: bool) -> _Bound | None:
    """Return the tighter of a face's two limits on one side."""
    found: list[_Bound] = []
    for keyword, phrase in _LIMITS[side].items():
        held = face.keywords.get(keyword)
        number = None if held is None else exact(held.value)
        if held is None or number is None:
            continue
        is_exclusive = keyword.startswith("exclusive")
        weight = number if side == "lower" else -number
        if is_whole:
            weight = Fraction(floor(weight) + 1 if is_exclusive else ceil(weight))
            is_exclusive = False
        words_of = phrase.format(quoted(held.value))
        found.append(_Bound((weight, is_exclusive), held.value, held.pointer, words_of))
    return max(found, key=lambda bound: bound.weight, default=None)


def _uniqueness(face: Face) -> _Bound | None:
    held = face.keywords.get("uniqueItems")
    if held is None or held.value is not True:
        return None
    return _Bound((Fraction(1), False), True, held.pointer, "have items that are all different")  # noqa: FBT003 -- the keyword's value


def exact(value: Json) -> Fraction | None:
    """Return a number as its shortest decimal says it; None for what is no finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return Fraction(value)
    return Fraction(repr(value)) if isfinite(value) else None

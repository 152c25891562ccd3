"""Changes of what a value may be: its types, the values listed, bounds, patterns and formats."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from tallystick.canonical import MISSING, Json, Missing
from tallystick.compatibility.changes.bound_changes import bound_changes, exact
from tallystick.compatibility.changes.change import Change, ChangeKind
from tallystick.compatibility.changes.face import ALL_TYPES, Face, Held
from tallystick.compatibility.changes.json_key import Key, key
from tallystick.compatibility.changes.renames import words
from tallystick.compatibility.changes.sides import BOTH, NEW_TO_OLD, NOBODY, OLD_TO_NEW
from tallystick.compatibility.changes.wording import enumerated, listed, of_types, quoted


def value_changes(old: Face, new: Face, *, assert_format: bool) -> Iterator[Change]:
    """Yield what changed between two faces of one value, apart from what they hold inside."""
    is_listed = _is_listed(old) and _is_listed(new)
    yield from _type_changes(old, new, is_listed=is_listed)
    yield from _listed_changes(old, new, is_listed=is_listed)
    yield from bound_changes(old, new)
    yield from _multiple_changes(old, new)
    yield from _pattern_changes(old, new)
    yield from _format_changes(old, new, is_asserted=assert_format)


# --- types ----------------------------------------------------------------------------------------


def _is_listed(face: Face) -> bool:
    """Whether all values are listed, `null` apart."""
    return bool(face.values) and face.families - _NULL <= face.values.keys()


def _type_changes(old: Face, new: Face, *, is_listed: bool) -> Iterator[Change]:
    before, after = old.types, new.types
    if is_listed:
        before, after = before & _NULL, after & _NULL
    lost, gained = _beyond(before, after), _beyond(after, before)
    if not lost and not gained:
        return
    kind, breaks = ChangeKind.TYPE_CHANGED, BOTH
    if not lost:
        kind, breaks = ChangeKind.TYPE_WIDENED, NEW_TO_OLD
    elif not gained:
        kind, breaks = ChangeKind.TYPE_NARROWED, OLD_TO_NEW
    yield Change(
        path=old.types_at if new.types == ALL_TYPES else new.types_at,
        kind=kind,
        old=_spoken(old.types),
        new=_spoken(new.types),
        breaks=breaks,
        why=f"{new.name} {_type_sentence(before, after, lost, gained)}",
    )


def _beyond(types: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    return types - others - ({"integer"} if "number" in others else set())


def _spoken(types: frozenset[str]) -> Json | Missing:
    if types == ALL_TYPES:
        return MISSING
    ordered: list[Json] = [*sorted(types)]
    return ordered[0] if len(ordered) == 1 else ordered


def _type_sentence(
    before: frozenset[str], after: frozenset[str], lost: frozenset[str], gained: frozenset[str]
) -> str:
    if not after and before != _NULL:
        return "no longer accepts any value"
    if before == ALL_TYPES:
        return f"could be anything and must now be {of_types(after)}"
    if after == ALL_TYPES:
        return f"had to be {of_types(before)} and may now be anything"
    if lost == _NUMBER and not gained:
        where = "" if after <= _WHOLE else " where it is a number"
        return f"must now be an integer{where}"
    if gained == _NUMBER and "integer" in before and not lost:
        return "may now be any number, not only an integer, and old readers may not expect it"
    if lost == before:
        return f"was {of_types(before)} and is now {of_types(after)}"
    parts = [f"may no longer be {of_types(lost)}"] if lost else []
    parts += [f"may now be {of_types(gained)}"] if gained else []
    return ", and ".join(parts) + ("" if lost else ", and old readers may not expect it")


_NULL: Final = frozenset({"null"})
_NUMBER: Final = frozenset({"number"})
_WHOLE: Final = frozenset({"integer", "null"})


# --- values that are listed -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Lists:
    """The values of both sides in the types that both let through."""

    old: dict[Key, Json]
    new: dict[Key, Json]


def _listed_changes(old: Face, new: Face, *, is_listed: bool) -> Iterator[Change]:
    shared = old.families & new.families
    before, after = old.values.keys() & shared, new.values.keys() & shared
    if is_listed:
        before = after = old.values.keys() | new.values.keys()
    both = before & after
    lists = _Lists(_of_families(old, both), _of_families(new, both))
    if lists.old.keys() != lists.new.keys():
        yield from _list_changes(old, new, lists)
    imposed, lifted = _of_families(new, after - before), _of_families(old, before - after)
    if imposed:
        why = f"{new.name} now accepts only {listed(imposed.values())}"
        yield _list_change(old, new, ChangeKind.ENUM_IMPOSED, why)
    if lifted:
        why = f"{new.name} is no longer limited to {listed(lifted.values())}"
        yield _list_change(old, new, ChangeKind.ENUM_LIFTED, why)


def _of_families(face: Face, families: frozenset[str] | set[str]) -> dict[Key, Json]:
    return {
        key(value): value
        for family, values in face.values.items()
        if family in families
        for value in values
    }


def _list_changes(old: Face, new: Face, lists: _Lists) -> Iterator[Change]:
    gone = [value for each, value in lists.old.items() if each not in lists.new]
    come = [value for each, value in lists.new.items() if each not in lists.old]
    respelled = _respelled(gone, come)
    if respelled:
        pairs = enumerated(respelled, _is_now, "and")
        why = f"{new.name} spells its values differently: {pairs}"
        yield _list_change(old, new, ChangeKind.ENUM_RESPELLED, why)
        spelled = {text for pair in respelled for text in pair}
        gone = [value for value in gone if not isinstance(value, str) or value not in spelled]
        come = [value for value in come if not isinstance(value, str) or value not in spelled]
    if len(lists.old) == len(lists.new) == 1 and gone and come:
        why = f"{new.name} must now be {listed(come)}, it was {listed(gone)}"
        yield _list_change(old, new, ChangeKind.CONST_CHANGED, why)
        return
    if gone:
        why = f"{new.name} no longer accepts {listed(gone)}"
        yield _list_change(old, new, ChangeKind.ENUM_REMOVED, why)
    if come:
        why = f"{new.name} now also accepts {listed(come)}, and old readers may not expect it"
        yield _list_change(old, new, ChangeKind.ENUM_ADDED, why)


def _is_now(pair: tuple[str, str]) -> str:
    before, after = pair
    return f"{quoted(before)} is now {quoted(after)}"


def _respelled(gone: list[Json], come: list[Json]) -> list[tuple[str, str]]:
    """Return the values that only changed their case or their separators."""
    spellings: dict[tuple[str, ...], list[str]] = {}
    for value in come:
        if isinstance(value, str):
            spellings.setdefault(words(value), []).append(value)
    return [
        (value, found[0])
        for value in gone
        if isinstance(value, str) and len(found := spellings.get(words(value), [])) == 1
    ]


_LIST_BREAKS: Final = {
    ChangeKind.ENUM_IMPOSED: OLD_TO_NEW,
    ChangeKind.ENUM_REMOVED: OLD_TO_NEW,
    ChangeKind.ENUM_LIFTED: NEW_TO_OLD,
    ChangeKind.ENUM_ADDED: NEW_TO_OLD,
}


def _list_change(old: Face, new: Face, kind: ChangeKind, why: str) -> Change:
    return Change(
        path=new.values_at if new.values else old.values_at,
        kind=kind,
        old=_all_values(old),
        new=_all_values(new),
        breaks=_LIST_BREAKS.get(kind, BOTH),
        why=why,
    )


def _all_values(face: Face) -> Json | Missing:
    values = [value for listed_values in face.values.values() for value in listed_values]
    return values or MISSING


# --- multiples, patterns and formats --------------------------------------------------------------


def _both(old: Face, new: Face, keyword: str, family: str) -> tuple[Held | None, Held | None]:
    """Return a keyword of both faces; nothing where one of them has no values of its type."""
    if family not in old.families & new.families:
        return None, None
    return old.keywords.get(keyword), new.keywords.get(keyword)


def _value(held: Held | None) -> Json | Missing:
    return MISSING if held is None else held.value


def _is_equal(before: Held | None, after: Held | None) -> bool:
    if before is None or after is None:
        return before is after
    return key(before.value) == key(after.value)


def _pointer(before: Held | None, after: Held | None) -> str:
    where = before if after is None else after
    assert where is not None
    return where.pointer


def _multiple_changes(old: Face, new: Face) -> Iterator[Change]:
    before, after = _both(old, new, "multipleOf", "number")
    if _is_equal(before, after):
        return
    was = None if before is None else exact(before.value)
    now = None if after is None else exact(after.value)
    narrows, widens = (
        now is not None and not _divides(now, was),
        was is not None and not _divides(was, now),
    )
    why = (
        f"{new.name} need no longer be a multiple of {quoted(before.value)}"
        if after is None and before is not None
        else f"{new.name} must now be a multiple of {listed([after.value] if after else [])}"
    )
    if before is not None and after is not None:
        why += f", it was {quoted(before.value)}"
    yield Change(
        path=_pointer(before, after),
        kind=ChangeKind.MULTIPLE_OF_CHANGED,
        old=_value(before),
        new=_value(after),
        breaks=(OLD_TO_NEW if narrows else NOBODY) | (NEW_TO_OLD if widens else NOBODY),
        why=why,
    )


def _divides(divisor: Fraction, number: Fraction | None) -> bool:
    return number is not None and divisor != 0 and (number / divisor).denominator == 1


def _pattern_changes(old: Face, new: Face) -> Iterator[Change]:
    before, after = _both(old, new, "pattern", "string")
    if _is_equal(before, after):
        return
    if before is None:
        kind, breaks = ChangeKind.PATTERN_ADDED, OLD_TO_NEW
        why = f"{new.name} must now match `{_text(after)}`"
    elif after is None:
        kind, breaks = ChangeKind.PATTERN_REMOVED, NEW_TO_OLD
        why = f"{new.name} need no longer match `{_text(before)}`"
    else:
        kind, breaks = ChangeKind.PATTERN_CHANGED, BOTH
        why = f"{new.name} must now match `{_text(after)}`, it was `{_text(before)}`"
    yield Change(_pointer(before, after), kind, _value(before), _value(after), breaks, why)


def _format_changes(old: Face, new: Face, *, is_asserted: bool) -> Iterator[Change]:
    before, after = _both(old, new, "format", "string")
    if _is_equal(before, after):
        return
    verb = "must now be" if is_asserted else "is now described as"
    if before is None:
        kind, breaks, why = (
            ChangeKind.FORMAT_ADDED,
            OLD_TO_NEW,
            f"{new.name} {verb} `{_text(after)}`",
        )
    elif after is None:
        kind, breaks = ChangeKind.FORMAT_REMOVED, NEW_TO_OLD
        verb = "need no longer be" if is_asserted else "is no longer described as"
        why = f"{new.name} {verb} `{_text(before)}`"
    else:
        kind, breaks = ChangeKind.FORMAT_CHANGED, BOTH
        why = f"{new.name} {verb} `{_text(after)}`, it was `{_text(before)}`"
    if not is_asserted:
        breaks, why = NOBODY, f"{why}; formats are not asserted, so nothing is refused"
    yield Change(_pointer(before, after), kind, _value(before), _value(after), breaks, why)


def _text(held: Held | None) -> str:
    return "" if held is None else str(held.value)

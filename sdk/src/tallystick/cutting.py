"""Cuts a JSON value to the room that there is: fairly, the same way each time, and never in half.

First the longest texts are shortened, all to one length. Where texts of a readable length are still
too much, lists keep the first items that fit, and what an object has no room for is taken from its
largest members. Pure.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tallystick.canonical import MISSING, Json, Missing

MARK: Final = "…"
"""Stands at the end of a text that was cut."""

# A text is not cut below this, or below an eighth of the room, to spare an item of a list.
_TEXT_CHARS_MIN: Final = 200
_TEXT_SHARE: Final = 8

_EMPTY_CHARS: Final = len("[]")
_CUT_TEXT_CHARS_MIN: Final = len(f'"{MARK}"')


@dataclass(frozen=True, slots=True)
class Cut:
    """What was kept of a value, and how much was left out of what was kept.

    Args:
        value: What was kept.
        characters: How many characters are missing from its texts.
        items: How many items are missing from its lists.
        members: How many members are missing from its objects.
    """

    value: Json
    characters: int = 0
    items: int = 0
    members: int = 0


def cut(value: Json, room: int) -> Cut | None:
    """Return what is kept of a value in so many characters of compact JSON; None if nothing is.

    Args:
        value: Strict JSON.
        room: How many characters there are for it.
    """
    texts = [_size(each) for each in _texts(value)]
    fixed = _size(value) - sum(texts)
    readable = max(min(_TEXT_CHARS_MIN, room // _TEXT_SHARE), _CUT_TEXT_CHARS_MIN)
    most = max(_level(texts, room - fixed), readable)
    kept = _fitted(_shortened(value, most), room)
    return None if isinstance(kept, Missing) else _compared(value, kept)


def cut_text(text: str, room: int) -> Cut:
    """Return a text that takes at most so many characters as JSON, its quotes counted.

    There must be room for the quotes and the mark.
    """
    assert room >= _CUT_TEXT_CHARS_MIN
    if len(text) + _EMPTY_CHARS <= room and _size(text) <= room:
        return Cut(text)
    fits, most = 0, min(len(text), room - _CUT_TEXT_CHARS_MIN)
    while fits < most:  # escapes take more than one character each
        middle = (fits + most + 1) // 2
        if _size(text[:middle]) + len(MARK) <= room:
            fits = middle
        else:
            most = middle - 1
    return Cut(text[:fits] + MARK, characters=len(text) - fits)


def _size(value: Json) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _level(sizes: Iterable[int], room: int) -> int:
    """Return the largest size to which all larger ones can be brought so that all have room."""
    ordered = sorted(sizes)
    left = room
    for index, size in enumerate(ordered):
        share = left // (len(ordered) - index)
        if size > share:
            return max(share, 0)
        left -= size
    return max(ordered, default=0)


def _texts(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _texts(item)
        case dict():
            for member in value.values():
                yield from _texts(member)
        case _:
            pass


def _shortened(value: Json, most: int) -> Json:
    match value:
        case str():
            return cut_text(value, most).value
        case list():
            return [_shortened(item, most) for item in value]
        case dict():
            return {name: _shortened(member, most) for name, member in value.items()}
        case _:
            return value


def _fitted(value: Json, room: int) -> Json | Missing:
    """Return as much of a value as there is room for, or `MISSING`."""
    if _size(value) <= room:
        return value
    if room < _least(value):
        return MISSING
    match value:
        case str():
            return cut_text(value, room).value
        case list():
            return _fitted_list(value, room)
        case dict():
            return _fitted_object(value, room)
        case _:
            return MISSING


def _least(value: Json) -> int:
    """Return the least room in which something of a value can stand."""
    match value:
        case str():
            return min(_size(value), _CUT_TEXT_CHARS_MIN)
        case list() | dict():
            return _EMPTY_CHARS
        case _:
            return _size(value)


def _fitted_list(items: list[Json], room: int) -> list[Json]:
    kept: list[Json] = []
    left = room - _EMPTY_CHARS
    for item in items:
        taken = _size(item) + (1 if kept else 0)
        if taken > left:
            break
        kept.append(item)
        left -= taken
    if not kept:
        # Rather a part of the first than nothing; of a later one a part would only mislead.
        part = _fitted(items[0], left)
        kept = [] if isinstance(part, Missing) else [part]
    return kept


def _fitted_object(members: dict[str, Json], room: int) -> dict[str, Json]:
    left = room - _EMPTY_CHARS
    wanted: dict[str, int] = {}
    for name, value in members.items():
        least = _size(name) + len(":") + _least(value) + (1 if wanted else 0)
        if least <= left:
            left -= least
            wanted[name] = _size(value) - _least(value)
    level = _level(wanted.values(), left)
    kept: dict[str, Json] = {}
    for name, more in wanted.items():
        part = _fitted(members[name], _least(members[name]) + min(more, level))
        assert not isinstance(part, Missing), "there is the least room for each"
        kept[name] = part
    return kept


def _compared(whole: Json, kept: Json) -> Cut:
    """Return what was kept, with the counts of what it lacks."""
    characters = items = members = 0
    pending = [(whole, kept)]
    while pending:
        match pending.pop():
            case str() as text, str() as rest:
                characters += 0 if rest == text else len(text) - len(rest) + len(MARK)
            case list() as all_items, list() as rest:
                items += len(all_items) - len(rest)
                pending.extend(zip(all_items, rest, strict=False))
            case dict() as all_members, dict() as rest:
                members += len(all_members) - len(rest)
                pending.extend((all_members[name], rest[name]) for name in rest)
            case _:
                pass
    return Cut(kept, characters, items, members)

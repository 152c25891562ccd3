"""The list of changes between two schemas that a reviewer reads.

Both schemas are walked together by what they mean: references are followed, and what is written in
another way alone is no change. The list explains, and never decides; `agreeing` brings it into line
with what the engine found out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from tallystick.canonical import MISSING, Json
from tallystick.compatibility.changes.change import Change, ChangeKind, Direction
from tallystick.compatibility.changes.faces import Faces
from tallystick.compatibility.changes.moves import with_moves
from tallystick.compatibility.changes.object_changes import object_changes
from tallystick.compatibility.changes.sides import Pair, Sides
from tallystick.compatibility.changes.structure_changes import choice_changes, structure_changes
from tallystick.compatibility.changes.text_changes import text_changes
from tallystick.compatibility.changes.value_changes import value_changes
from tallystick.compatibility.verdict import Answer

PAIRS_MAX: Final = 5_000

_ORDER: Final = {kind: index for index, kind in enumerate(ChangeKind)}


def changes(
    old: Json, new: Json, *, is_closed: bool = True, assert_format: bool = False
) -> tuple[Change, ...]:
    """Return what changed between two schemas in the 2020-12 dialect, in the order of the paths.

    Args:
        old: The old schema.
        new: The new schema.
        is_closed: Whether nobody writes a property that is not declared.
        assert_format: Whether `format` is asserted.

    Of schemas with more than `PAIRS_MAX` places the rest is `untold`.
    """
    sides = Sides(Faces(old), Faces(new), is_closed, assert_format)
    walk = _Walk(sides)
    walk.compare([Pair(sides.old.root, sides.new.root)])
    found, moved = with_moves(sides, walk.found)
    walk.found = found
    walk.compare(moved)
    unique = {(each.path, each.kind): each for each in reversed(walk.found)}
    return tuple(sorted(unique.values(), key=lambda each: (each.path, _ORDER[each.kind])))


class _Walk:
    """Compares pairs of schemas, each pair once, until none is left."""

    def __init__(self, sides: Sides) -> None:
        self.found: list[Change] = []
        self._sides = sides
        self._seen: set[tuple[str, str, str | None]] = set()

    def compare(self, pairs: list[Pair]) -> None:
        pending = list(reversed(pairs))
        while pending:
            pair = pending.pop()
            within = None if pair.within is None else pair.within.path
            place = (pair.old.pointer, pair.new.pointer, within)
            if place in self._seen:
                continue
            if len(self._seen) == PAIRS_MAX:
                self.found.append(_untold(pair))
                return
            self._seen.add(place)
            for each in self._compare(pair):
                if isinstance(each, Pair):
                    pending.append(replace(each, within=pair.within or each.within))
                elif pair.within is None or each.is_prompt_facing:
                    self.found.append(each)
                else:
                    self.found.append(pair.within)

    def _compare(self, pair: Pair) -> Iterator[Change | Pair]:
        old, new = self._sides.old.face(pair.old), self._sides.new.face(pair.new)
        yield from text_changes(old, new)
        chosen = choice_changes(self._sides, old, new)
        if chosen is not None:
            yield from chosen
            return
        yield from value_changes(old, new, assert_format=self._sides.assert_format)
        yield from object_changes(self._sides, old, new)
        yield from structure_changes(self._sides, old, new)


def _untold(pair: Pair) -> Change:
    return Change(
        path=pair.new.pointer,
        kind=ChangeKind.UNTOLD,
        old=MISSING,
        new=MISSING,
        breaks=frozenset(),
        why=f"what changed from here on is not told: {PAIRS_MAX} places were compared",
    )


def agreeing(changes: Iterable[Change], judged: Mapping[Direction, Answer]) -> tuple[Change, ...]:
    """Return the changes without any claim that the engine has disproved.

    A rule sees one place, the engine the whole: a direction that is proven compatible is broken by
    no change, and the change says so.
    """
    proven = frozenset(each for each in judged if judged[each] is Answer.COMPATIBLE)
    return tuple(_agreeing(each, proven) for each in changes)


_STILL_ACCEPTED: Final = {
    Direction.OLD_TO_NEW: "every old value is still accepted",
    Direction.NEW_TO_OLD: "the old schema accepts every new value",
}


def _agreeing(change: Change, proven: frozenset[Direction]) -> Change:
    dropped = change.breaks & proven
    if not dropped:
        return change
    facts = " and ".join(_STILL_ACCEPTED[each] for each in Direction if each in dropped)
    return replace(change, breaks=change.breaks - dropped, why=f"{change.why}; but {facts}")

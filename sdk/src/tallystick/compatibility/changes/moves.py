"""Properties that are gone at one level of a schema and there at another."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tallystick.canonical import Missing, pointer_split
from tallystick.compatibility.changes.change import Change, ChangeKind, Direction
from tallystick.compatibility.changes.faces import Faces
from tallystick.compatibility.changes.sides import Pair, Sides
from tallystick.subschema import Position

# Of the properties inside those that are gone or new: enough for any tool, and bounded.
_PLACES_MAX: Final = 500


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """A property that is only on one side, with the change that tells so, if one does."""

    position: Position
    change: Change | None


def with_moves(sides: Sides, found: list[Change]) -> tuple[list[Change], list[Pair]]:
    """Return the changes with each property that moved told once, and what is to be compared."""
    gone = _places(sides.old, (each for each in found if each.kind is ChangeKind.PROPERTY_REMOVED))
    come = _places(sides.new, (each for each in found if _is_new(each)))
    told: set[int] = set()
    moves: list[Change] = []
    pairs: list[Pair] = []
    for key, lefts in gone.items():
        rights = come.get(key, [])
        if len(lefts) != 1 or len(rights) != 1:
            continue
        left, right = lefts[0], rights[0]
        changes = [each.change for each in (left, right) if each.change is not None]
        if changes:
            moves.append(_move(key[0], left.position, right.position, changes))
            pairs.append(Pair(left.position, right.position))
            told |= {id(each) for each in changes}
    return [each for each in found if id(each) not in told] + moves, pairs


def _is_new(change: Change) -> bool:
    kinds = (ChangeKind.PROPERTY_ADDED, ChangeKind.REQUIRED_ADDED)
    return change.kind in kinds and isinstance(change.old, Missing)


def _places(faces: Faces, changes: Iterable[Change]) -> dict[tuple[str, int], list[_Place]]:
    found: defaultdict[tuple[str, int], list[_Place]] = defaultdict(list)
    seen: set[str] = set()
    for change in changes:
        top = faces.at(change.path)
        pending = [] if top is None else [_Place(top, change)]
        while pending and len(seen) < _PLACES_MAX:
            place = pending.pop()
            position = place.position
            if position.pointer not in seen:
                seen.add(position.pointer)
                name = pointer_split(position.pointer)[-1]
                found[name, faces.fingerprint(position)].append(place)
                pending.extend(_Place(each, None) for each in faces.face(position).members.values())
    return found


def _move(name: str, left: Position, right: Position, changes: list[Change]) -> Change:
    breaks = frozenset(direction for each in changes for direction in each.breaks)
    home = _home(right)
    why = f"`{name}` has moved {home}"
    if Direction.OLD_TO_NEW in breaks:
        why += ": values that hold it where it was are refused"
    return Change(
        path=left.pointer,
        kind=ChangeKind.MOVED,
        old=left.schema,
        new=right.schema,
        breaks=breaks,
        why=why,
        replacement=right.pointer,
    )


def _home(position: Position) -> str:
    tokens = pointer_split(position.pointer)[:-2]
    names = [tokens[i + 1] for i in range(len(tokens) - 1) if tokens[i] == "properties"]
    return f"into `{names[-1]}`" if names else "to the top level"

"""Which alternative of an old union became which of a new one."""

from collections import defaultdict
from collections.abc import Callable, Hashable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from typing import Final

from tallystick.compatibility.changes.face import Face
from tallystick.compatibility.changes.faces import Faces
from tallystick.compatibility.changes.json_key import Key, key
from tallystick.compatibility.changes.wording import enumerated, listed, of_types
from tallystick.subschema import Position

BRANCHES_MAX: Final = 200

_LIKENESS_MIN: Final = 0.3
_OBJECT: Final = frozenset({"object"})


@dataclass(frozen=True, slots=True)
class Matching:
    """What became of the alternatives of a union."""

    pairs: tuple[tuple[Position, Position], ...]
    removed: tuple[Position, ...]
    added: tuple[Position, ...]


def matched(
    old: Faces, new: Faces, before: tuple[Position, ...], after: tuple[Position, ...]
) -> Matching:
    """Match alternatives: equal ones first, then by how alike they are.

    Beyond `BRANCHES_MAX` on a side only equal ones are matched.
    """
    removed, added = list(before), list(after)
    pairs = _equal(removed, added, old.fingerprint, new.fingerprint)
    # What changed further inside still refers to the same thing.
    pairs += _equal(removed, added, _text, _text)
    if max(len(removed), len(added)) <= BRANCHES_MAX:
        for i, j in _alike(
            [_traits(old, each) for each in removed], [_traits(new, each) for each in added]
        ):
            pairs.append((removed[i], added[j]))
    lefts = {left.pointer for left, _ in pairs}
    rights = {right.pointer for _, right in pairs}
    return Matching(
        pairs=tuple(pairs),
        removed=tuple(each for each in removed if each.pointer not in lefts),
        added=tuple(each for each in added if each.pointer not in rights),
    )


def _text(position: Position) -> Key:
    return key(position.schema)


def _equal(
    removed: list[Position],
    added: list[Position],
    old_mark: Callable[[Position], Hashable],
    new_mark: Callable[[Position], Hashable],
) -> list[tuple[Position, Position]]:
    """Take the pairs with equal marks out of both lists, in order, and return them."""
    equal: defaultdict[Hashable, list[Position]] = defaultdict(list)
    for each in reversed(added):
        equal[new_mark(each)].append(each)
    pairs: list[tuple[Position, Position]] = []
    left_over: list[Position] = []
    for each in removed:
        same = equal[old_mark(each)]
        if same:
            pairs.append((each, same.pop()))
        else:
            left_over.append(each)
    taken = {right.pointer for _, right in pairs}
    removed[:] = left_over
    added[:] = [each for each in added if each.pointer not in taken]
    return pairs


@dataclass(frozen=True, slots=True)
class _Traits:
    """What alternatives are told apart by.

    Args:
        families: The types that it lets through.
        tags: The constants of its properties: what tells it from the others.
        members: The names of its properties.
        required: Those that are required.
        values: The values that it lists.
        title: Its title.
    """

    families: frozenset[str]
    tags: dict[str, frozenset[Key]]
    members: frozenset[str]
    required: frozenset[str]
    values: frozenset[Key]
    title: Key | None


def _traits(faces: Faces, position: Position) -> _Traits:
    face = faces.face(position)
    constants = {name: _values(faces.face(each)) for name, each in face.members.items()}
    title = face.notes.get(("", "title"))
    return _Traits(
        families=face.families,
        tags={name: values for name, values in constants.items() if values},
        members=frozenset(face.members),
        required=frozenset(face.required),
        values=_values(face),
        title=None if title is None else key(title.value),
    )


def _values(face: Face) -> frozenset[Key]:
    return frozenset(key(value) for values in face.values.values() for value in values)


def _alike(removed: list[_Traits], added: list[_Traits]) -> list[tuple[int, int]]:
    scores = sorted(
        (-score, i, j)
        for i, left in enumerate(removed)
        for j, right in enumerate(added)
        if (score := _likeness(left, right)) >= _LIKENESS_MIN
    )
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for _, i, j in scores:
        if i not in pairs and j not in taken:
            pairs[i] = j
            taken.add(j)
    return list(pairs.items())


def _likeness(mine: _Traits, theirs: _Traits) -> float:
    """Return how alike two alternatives are, from 0 to 1; 0 if a constant tells them apart."""
    if not mine.families & theirs.families:
        return 0.0
    shared = mine.tags.keys() & theirs.tags.keys()
    if any(mine.tags[name].isdisjoint(theirs.tags[name]) for name in shared):
        return 0.0
    scores = [1.0] * len(shared)
    if mine.members or theirs.members:
        scores.append(_overlap(mine.members, theirs.members))
    if mine.required or theirs.required:
        scores.append(_overlap(mine.required, theirs.required))
    if mine.values and theirs.values:
        scores.append(_overlap(mine.values, theirs.values))
    if mine.title is not None and theirs.title is not None:
        scores.append(float(mine.title == theirs.title))
    # Objects are alike by what they hold: that both are objects says nothing.
    if not scores or not mine.families == theirs.families == _OBJECT:
        scores.append(_overlap(mine.families, theirs.families))
    return sum(scores) / len(scores)


def _overlap(left: AbstractSet[object], right: AbstractSet[object]) -> float:
    return len(left & right) / len(left | right)


def phrase(faces: Faces, branches: tuple[Position, ...]) -> str:
    """Return what a reader calls alternatives."""
    return enumerated(branches, lambda each: _phrase(faces, faces.face(each)))


def _phrase(faces: Faces, face: Face) -> str:
    title = face.notes.get(("", "title"))
    values = [*chain(*face.values.values())]
    if title is not None and isinstance(title.value, str):
        return f"“{title.value}”"
    if values:
        return listed(values)
    tags = [name for name in face.required if name in face.members]
    for name in tags:
        constants = faces.face(face.members[name]).values
        if constants:
            return f"an object whose `{name}` is {listed([*chain(*constants.values())])}"
    names = face.required or face.members
    if names:
        return f"an object with {enumerated(names, '`{}`'.format, 'and')}"
    return of_types(face.types) if face.types else "nothing"

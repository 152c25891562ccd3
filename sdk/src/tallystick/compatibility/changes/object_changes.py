"""Changes of what an object may hold: its properties, their names, and which must be there."""

from collections.abc import Iterator

from tallystick.canonical import MISSING, Json
from tallystick.compatibility.changes.change import Change, ChangeKind, Direction
from tallystick.compatibility.changes.face import Face, Held
from tallystick.compatibility.changes.faces import Faces
from tallystick.compatibility.changes.json_key import key
from tallystick.compatibility.changes.renames import Candidate, renamed
from tallystick.compatibility.changes.sides import (
    BOTH,
    NEW_TO_OLD,
    NOBODY,
    OLD_TO_NEW,
    Pair,
    Sides,
)
from tallystick.compatibility.changes.wording import enumerated
from tallystick.subschema import Position


def object_changes(sides: Sides, old: Face, new: Face) -> Iterator[Change | Pair]:
    """Yield what changed between two faces in the properties, and the properties to compare."""
    if "object" not in old.types & new.types:
        return
    yield from _property_changes(sides, old, new)
    yield from _pattern_changes(sides, old, new)
    yield from _rest_changes(sides, old, new)
    yield from _dependency_changes(old, new)


# --- properties by name ---------------------------------------------------------------------------


def _property_changes(sides: Sides, old: Face, new: Face) -> Iterator[Change | Pair]:
    gone = [name for name in old.members if name not in new.members]
    come = [name for name in new.members if name not in old.members]
    names = renamed(
        [_candidate(sides.old, old, name) for name in gone],
        [_candidate(sides.new, new, name) for name in come],
    )
    for before, after in names.items():
        yield _rename(sides, old, new, (before, after))
        yield Pair(old.members[before], new.members[after])
    for name in gone:
        if name not in names:
            yield _removal(sides, old, new, name)
    for name in set(come) - set(names.values()):
        yield _addition(sides, old, new, name)
    for name in new.members.keys() & old.members.keys():
        yield Pair(old.members[name], new.members[name])
    told = {*gone, *come}
    for name in (new.required.keys() ^ old.required.keys()) - told:
        yield _requirement(new, name, old.required, new.required)


def _candidate(faces: Faces, face: Face, name: str) -> Candidate:
    position = face.members[name]
    member = faces.face(position)
    text = member.notes.get(("", "description"))
    return Candidate(
        name=name,
        types=member.types,
        structure=faces.fingerprint(position),
        description=text.value if text is not None and isinstance(text.value, str) else None,
        is_required=name in face.required,
    )


def _rename(sides: Sides, old: Face, new: Face, names: tuple[str, str]) -> Change:
    before, after = names
    breaks = sides.breaks(old, new, before) | sides.breaks(old, new, after)
    breaks |= OLD_TO_NEW if after in new.required else NOBODY
    breaks |= NEW_TO_OLD if before in old.required else NOBODY
    effect = "callers that send" if Direction.OLD_TO_NEW in breaks else "nothing reads"
    why = f"`{before}` is now called `{after}`: {effect} `{before}`"
    why += " are refused" if Direction.OLD_TO_NEW in breaks else " any more"
    if (before in old.required) != (after in new.required):
        why += f"; it is {'now' if after in new.required else 'no longer'} required"
    return Change(
        path=old.members[before].pointer,
        kind=ChangeKind.RENAMED,
        old=before,
        new=after,
        breaks=breaks,
        why=why,
        replacement=new.members[after].pointer,
    )


def _removal(sides: Sides, old: Face, new: Face, name: str) -> Change:
    breaks = sides.breaks(old, new, name) | (NEW_TO_OLD if name in old.required else NOBODY)
    effects = ["values with it are refused"] if Direction.OLD_TO_NEW in breaks else []
    effects += ["old readers may need it"] if name in old.required else []
    return Change(
        path=old.members[name].pointer,
        kind=ChangeKind.PROPERTY_REMOVED,
        old=old.members[name].schema,
        new=MISSING,
        breaks=breaks,
        why=f"`{name}` is gone: {' and '.join(effects) or 'it is no longer declared'}",
    )


def _addition(sides: Sides, old: Face, new: Face, name: str) -> Change:
    position = new.members[name]
    breaks = sides.breaks(old, new, name)
    if name in new.required and name not in old.required:
        why = f"`{name}` is new and required: values without it are refused"
        if ("", "default") in sides.new.face(position).notes:
            why += ", its default notwithstanding"
        kind, breaks = ChangeKind.REQUIRED_ADDED, breaks | OLD_TO_NEW
    else:
        kind, why = ChangeKind.PROPERTY_ADDED, f"`{name}` is new and optional"
        if Direction.OLD_TO_NEW in breaks:
            why += ", but values that held it undeclared may be refused"
        else:
            why += ": values without it stay valid"
    return Change(position.pointer, kind, MISSING, position.schema, breaks, why)


def _requirement(new: Face, name: str, before: dict[str, str], after: dict[str, str]) -> Change:
    is_required = name in after
    where = after[name] if is_required else before[name]
    return Change(
        path=new.members[name].pointer if name in new.members else where,
        kind=ChangeKind.REQUIRED_ADDED if is_required else ChangeKind.REQUIRED_REMOVED,
        old=not is_required,
        new=is_required,
        breaks=OLD_TO_NEW if is_required else NEW_TO_OLD,
        why=f"`{name}` is now required: values without it are refused"
        if is_required
        else f"`{name}` may now be left out, and old readers may not expect it",
    )


# --- properties by pattern, and all others --------------------------------------------------------


def _pattern_changes(sides: Sides, old: Face, new: Face) -> Iterator[Change | Pair]:
    before, after = _by_name(old, "patternProperties"), _by_name(new, "patternProperties")
    for pattern, position in after.items():
        if pattern in before:
            yield Pair(before[pattern], position)
            continue
        yield Change(
            path=position.pointer,
            kind=ChangeKind.PATTERN_PROPERTY_ADDED,
            old=MISSING,
            new=position.schema,
            breaks=OLD_TO_NEW | (NEW_TO_OLD if sides.rest(old) is False else NOBODY),
            why=f"{new.name} now says what properties that match `{pattern}` hold",
        )
    for pattern, position in before.items():
        if pattern not in after:
            yield Change(
                path=position.pointer,
                kind=ChangeKind.PATTERN_PROPERTY_REMOVED,
                old=position.schema,
                new=MISSING,
                breaks=NEW_TO_OLD | (OLD_TO_NEW if sides.rest(new) is False else NOBODY),
                why=f"{new.name} no longer says what properties that match `{pattern}` hold",
            )


def _by_name(face: Face, keyword: str) -> dict[str, Position]:
    held = face.keywords.get(keyword)
    names = held.value if held is not None and isinstance(held.value, dict) else {}
    return dict(zip(names, face.parts(keyword), strict=False))


def _rest_changes(sides: Sides, old: Face, new: Face) -> Iterator[Change | Pair]:
    before, after = _rest(old), _rest(new)
    was, now = sides.rest(old), sides.rest(new)
    if isinstance(was, Position) and isinstance(now, Position):
        yield Pair(was, now)
        return
    held = before if after is None else after
    if held is None or (before and after and key(before.value) == key(after.value)):
        return
    # As written, a rest that is not spoken of is open; saying so matters to the closed reading.
    is_said = (before is None or before.value is True) and (after is None or after.value is True)
    if is_said and was == now:
        return
    forth = (now is False and was is not False) or (was is True and isinstance(now, Position))
    back = (was is False and now is not False) or (now is True and isinstance(was, Position))
    kind, sentence = _rest_sentence(before, after)
    yield Change(
        path=held.pointer,
        kind=kind,
        old=MISSING if before is None else before.value,
        new=MISSING if after is None else after.value,
        breaks=(OLD_TO_NEW if forth else NOBODY) | (NEW_TO_OLD if back else NOBODY),
        why=f"{new.name} {sentence}",
    )


def _rest(face: Face) -> Held | None:
    return face.keywords.get("additionalProperties", face.keywords.get("unevaluatedProperties"))


def _rest_sentence(before: Held | None, after: Held | None) -> tuple[ChangeKind, str]:
    was: Json = True if before is None else before.value
    now: Json = True if after is None else after.value
    match was, now:
        case _, False:
            return ChangeKind.ADDITIONAL_PROPERTIES_CLOSED, "now refuses further properties"
        case False, _:
            kind = ChangeKind.ADDITIONAL_PROPERTIES_OPENED
            return kind, "no longer refuses further properties"
        case True, True:
            if after is None:
                kind = ChangeKind.ADDITIONAL_PROPERTIES_CLOSED
                return kind, "no longer says that further properties may be sent"
            kind = ChangeKind.ADDITIONAL_PROPERTIES_OPENED
            return kind, "now says that further properties may be sent"
        case True, _:
            kind = ChangeKind.ADDITIONAL_PROPERTIES_CHANGED
            return kind, "now says what further properties hold"
        case _:
            kind = ChangeKind.ADDITIONAL_PROPERTIES_CHANGED
            return kind, "no longer says what further properties hold"


# --- properties that ask for others ---------------------------------------------------------------


def _dependency_changes(old: Face, new: Face) -> Iterator[Change | Pair]:
    yield from _dependent_names(old, new)
    before, after = _by_name(old, "dependentSchemas"), _by_name(new, "dependentSchemas")
    for name in before | after:
        position = after.get(name, before.get(name))
        assert position is not None
        if name in before and name in after:
            why = f"what holds of {new.name} where `{name}` is sent has changed"
            breaks = BOTH
        elif name in after:
            why = f"where `{name}` is sent, {new.name} must now fit one more schema"
            breaks = OLD_TO_NEW
        else:
            why = f"where `{name}` is sent, {new.name} is no longer held to a schema"
            breaks = NEW_TO_OLD
        change = Change(
            path=position.pointer,
            kind=ChangeKind.CONDITION_CHANGED,
            old=before[name].schema if name in before else MISSING,
            new=after[name].schema if name in after else MISSING,
            breaks=breaks,
            why=why,
        )
        if breaks is BOTH:
            yield Pair(before[name], after[name], within=change)
        else:
            yield change


def _dependent_names(old: Face, new: Face) -> Iterator[Change]:
    before, after = old.keywords.get("dependentRequired"), new.keywords.get("dependentRequired")
    asked, asks = _names(before), _names(after)
    for name in asked | asks:
        lost = asked.get(name, frozenset()) - asks.get(name, frozenset())
        gained = asks.get(name, frozenset()) - asked.get(name, frozenset())
        held = after if name in asks else before
        if held is None or not (lost or gained):
            continue
        parts = [f"must now come with {_all(gained)}"] if gained else []
        parts += [f"need no longer come with {_all(lost)}"] if lost else []
        yield Change(
            path=f"{held.pointer}/{name.replace('~', '~0').replace('/', '~1')}",
            kind=ChangeKind.CONDITION_CHANGED,
            old=[*sorted(asked[name])] if name in asked else MISSING,
            new=[*sorted(asks[name])] if name in asks else MISSING,
            breaks=(OLD_TO_NEW if gained else NOBODY) | (NEW_TO_OLD if lost else NOBODY),
            why=f"`{name}` {' and '.join(parts)}",
        )


def _names(held: Held | None) -> dict[str, frozenset[str]]:
    lists = held.value if held is not None and isinstance(held.value, dict) else {}
    return {
        name: frozenset(each for each in names if isinstance(each, str))
        for name, names in lists.items()
        if isinstance(names, list) and names
    }


def _all(names: frozenset[str]) -> str:
    return enumerated(sorted(names), "`{}`".format, "and")

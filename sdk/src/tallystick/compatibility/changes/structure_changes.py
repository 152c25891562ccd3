"""Changes of what holds of a value beside its properties: items, alternatives, conditions."""

from collections.abc import Iterator
from typing import Final

from tallystick.canonical import MISSING, Json, Missing
from tallystick.compatibility.changes.branches import matched, phrase
from tallystick.compatibility.changes.change import Change, ChangeKind
from tallystick.compatibility.changes.face import FAMILY, Face, Held, Union
from tallystick.compatibility.changes.json_key import key
from tallystick.compatibility.changes.sides import BOTH, NEW_TO_OLD, NOBODY, OLD_TO_NEW, Pair, Sides
from tallystick.subschema import Position


def structure_changes(sides: Sides, old: Face, new: Face) -> Iterator[Change | Pair]:
    """Yield what changed in items, alternatives, conditions and all other keywords."""
    yield from _item_changes(old, new)
    yield from _union_changes(sides, old, new)
    yield from _conjunct_changes(sides, old, new)
    for keywords, kind, noun in _GROUPS:
        yield from _group_changes(old, new, keywords, kind, noun)
    yield from _other_changes(old, new)


def _value(held: Held | None) -> Json | Missing:
    return MISSING if held is None else held.value


# --- items ----------------------------------------------------------------------------------------


def _item_changes(old: Face, new: Face) -> Iterator[Change | Pair]:
    if "array" not in old.types & new.types:
        return
    before, after = old.parts("prefixItems"), new.parts("prefixItems")
    rest_before, rest_after = _rest(old), _rest(new)
    for index in range(max(len(before), len(after))):
        was = before[index] if index < len(before) else rest_before
        now = after[index] if index < len(after) else rest_after
        yield from _item_change(new, was, now, f"item {index}")
    yield from _item_change(new, rest_before, rest_after, "items")


def _rest(face: Face) -> Position | None:
    parts = face.parts("items") or face.parts("unevaluatedItems")
    return parts[0] if parts else None


def _item_change(
    new: Face, was: Position | None, now: Position | None, noun: str
) -> Iterator[Change | Pair]:
    if was is not None and now is not None:
        yield Pair(was, now)
    elif was is not None or now is not None:
        where = was if now is None else now
        assert where is not None
        if where.schema is False:
            sentence = f"may {'now' if now is None else 'no longer'} have further {noun}"
        else:
            sentence = f"{'no longer says' if now is None else 'now says'} what its {noun} must be"
        yield Change(
            path=where.pointer,
            kind=ChangeKind.ITEMS_CHANGED,
            old=MISSING if was is None else was.schema,
            new=MISSING if now is None else now.schema,
            breaks=NEW_TO_OLD if now is None else OLD_TO_NEW,
            why=f"{new.name} {sentence}",
        )


# --- alternatives ---------------------------------------------------------------------------------


def choice_changes(sides: Sides, old: Face, new: Face) -> list[Change | Pair] | None:
    """Return the changes if one side is a choice, and the other is like one of its alternatives.

    None if that is not so: then the two are to be compared as they are.
    """
    if len(old.unions) == len(new.unions):
        return None
    before = _union(old, new) if old.is_only_union else _single(old, new)
    after = _union(new, old) if new.is_only_union else _single(new, old)
    if before is None or after is None:
        return None
    found = list(_branch_changes(sides, new, before, after))
    return found if any(isinstance(each, Pair) for each in found) else None


def _union(face: Face, other: Face) -> Union | None:
    return face.unions[0] if not other.unions else None


def _single(face: Face, other: Face) -> Union | None:
    """Return a schema as a choice of one, against one with a choice of several."""
    is_one_type = len(face.families - {"null"}) == 1
    if face.is_bare or face.unions or not (is_one_type and other.is_only_union):
        return None
    return Union(other.unions[0].keyword, face.at.schema, face.at.pointer, (face.at,))


def _union_changes(sides: Sides, old: Face, new: Face) -> Iterator[Change | Pair]:
    if len(old.unions) == len(new.unions):
        for before, after in zip(old.unions, new.unions, strict=True):
            yield from _branch_changes(sides, new, before, after)
        return
    known = {key(union.value) for union in old.unions}
    kept = {key(union.value) for union in new.unions}
    for union in new.unions:
        if key(union.value) not in known:
            what = phrase(sides.new, union.branches)
            why = f"{new.name} must now fit {_choice(union)}: {what}"
            yield _condition(union.pointer, MISSING, union.value, why)
    for union in old.unions:
        if key(union.value) not in kept:
            what = phrase(sides.old, union.branches)
            why = f"{new.name} need no longer fit {_choice(union)}: {what}"
            yield _condition(union.pointer, union.value, MISSING, why)


def _choice(union: Union) -> str:
    count = len(union.branches)
    return f"{'exactly' if union.keyword == 'oneOf' else 'at least'} one of {count} alternatives"


def _branch_changes(
    sides: Sides, new: Face, before: Union, after: Union
) -> Iterator[Change | Pair]:
    match = matched(sides.old, sides.new, before.branches, after.branches)
    yield from (Pair(left, right) for left, right in match.pairs)
    for each in match.removed:
        why = f"an alternative of {new.name} is gone: {phrase(sides.old, (each,))}"
        kind = ChangeKind.UNION_BRANCH_REMOVED
        yield Change(each.pointer, kind, each.schema, MISSING, OLD_TO_NEW, why)
    for each in match.added:
        what = phrase(sides.new, (each,))
        why = f"{new.name} has a new alternative: {what}, and old readers may not expect it"
        kind = ChangeKind.UNION_BRANCH_ADDED
        yield Change(each.pointer, kind, MISSING, each.schema, NEW_TO_OLD, why)
    if before.keyword != after.keyword:
        is_one = after.keyword == "oneOf"
        yield Change(
            path=after.pointer,
            kind=ChangeKind.CONDITION_CHANGED,
            old=before.keyword,
            new=after.keyword,
            breaks=OLD_TO_NEW if is_one else NEW_TO_OLD,
            why=f"{new.name} must fit {'exactly' if is_one else 'at least'} one alternative now, "
            f"it was {'at least' if is_one else 'exactly'} one",
        )


def _conjunct_changes(sides: Sides, old: Face, new: Face) -> Iterator[Change | Pair]:
    match = matched(sides.old, sides.new, old.conjuncts, new.conjuncts)
    yield from (Pair(left, right) for left, right in match.pairs)
    for each in match.added:
        why = f"{new.name} must now fit one more schema: {phrase(sides.new, (each,))}"
        yield _condition(each.pointer, MISSING, each.schema, why)
    for each in match.removed:
        why = f"{new.name} need no longer fit one more schema: {phrase(sides.old, (each,))}"
        yield _condition(each.pointer, each.schema, MISSING, why)


def _condition(path: str, old: Json | Missing, new: Json | Missing, why: str) -> Change:
    breaks = NEW_TO_OLD if isinstance(new, Missing) else OLD_TO_NEW
    return Change(path, ChangeKind.CONDITION_CHANGED, old, new, breaks, why)


# --- what only holds under a condition ------------------------------------------------------------

# Groups of keywords that mean something together, and nothing without the first.
_GROUPS: Final = (
    (("if", "then", "else"), ChangeKind.CONDITION_CHANGED, "a condition"),
    (("not",), ChangeKind.NOT_CHANGED, "an exclusion"),
    (
        ("contains", "minContains", "maxContains"),
        ChangeKind.CONTAINS_CHANGED,
        "a rule on `contains`",
    ),
    (("propertyNames",), ChangeKind.PROPERTY_NAMES_CHANGED, "a rule on property names"),
)
_TOLD_ELSEWHERE: Final = frozenset(
    {keyword for keywords, _, _ in _GROUPS for keyword in keywords}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems"}
    | {"minProperties", "maxProperties", "items", "prefixItems", "unevaluatedItems"}
    | {"patternProperties", "additionalProperties", "unevaluatedProperties"}
    | {"dependentRequired", "dependentSchemas"}
)


def _group_changes(
    old: Face, new: Face, keywords: tuple[str, ...], kind: ChangeKind, noun: str
) -> Iterator[Change | Pair]:
    family = FAMILY.get(keywords[0])
    if family is not None and family not in old.families & new.families:
        return
    first = keywords[0]
    before, after = old.keywords.get(first), new.keywords.get(first)
    held = before if after is None else after
    if held is None:
        return
    if before is None or after is None:
        verb = "is no longer held to" if after is None else "is now held to"
        breaks = NEW_TO_OLD if after is None else OLD_TO_NEW
        why = f"{new.name} {verb} {noun}"
        yield Change(held.pointer, kind, _value(before), _value(after), breaks, why)
        return
    why = f"{noun} that {new.name} is held to has changed"
    for keyword in keywords:
        was, now = old.keywords.get(keyword), new.keywords.get(keyword)
        held = was if now is None else now
        if held is None:
            continue
        change = Change(held.pointer, kind, _value(was), _value(now), BOTH, why)
        if was is not None and now is not None and was.parts and now.parts:
            yield Pair(was.parts[0], now.parts[0], within=change)
        elif was is None or now is None or key(was.value) != key(now.value):
            yield change


def _other_changes(old: Face, new: Face) -> Iterator[Change]:
    """Yield what changed in keywords that constrain nothing, or that nobody can follow."""
    for keyword in dict.fromkeys((*new.keywords, *old.keywords)):
        before, after = old.keywords.get(keyword), new.keywords.get(keyword)
        if keyword in _TOLD_ELSEWHERE or (
            before is not None and after is not None and key(before.value) == key(after.value)
        ):
            continue
        family = FAMILY.get(keyword)
        if family is not None and family not in old.families & new.families:
            continue
        held = before if after is None else after
        assert held is not None
        is_reference = keyword in ("$ref", "$dynamicRef")
        yield Change(
            path=held.pointer,
            kind=ChangeKind.REFERENCE_CHANGED if is_reference else ChangeKind.KEYWORD_CHANGED,
            old=_value(before),
            new=_value(after),
            breaks=BOTH if is_reference else NOBODY,
            why=f"{new.name} refers to another schema, which is not followed"
            if is_reference
            else f"`{keyword}` of {new.name} has changed, which refuses no value",
        )

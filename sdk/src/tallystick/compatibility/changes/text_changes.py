"""Changes of what a schema says beside its constraints: the text a model reads, and defaults."""

from collections.abc import Iterator
from typing import Final

from tallystick.canonical import MISSING, Json, Missing
from tallystick.compatibility.changes.change import Change, ChangeKind
from tallystick.compatibility.changes.face import Face, Held
from tallystick.compatibility.changes.faces import TEXT
from tallystick.compatibility.changes.json_key import key
from tallystick.compatibility.changes.sides import NOBODY
from tallystick.compatibility.changes.wording import quoted

_KINDS: Final = {
    "title": ChangeKind.TITLE_CHANGED,
    "description": ChangeKind.DESCRIPTION_CHANGED,
    "examples": ChangeKind.EXAMPLES_CHANGED,
    "deprecated": ChangeKind.DEPRECATED_CHANGED,
}


def text_changes(old: Face, new: Face) -> Iterator[Change]:
    """Yield what changed in prompt-facing text and defaults; it refuses no value.

    The text of an alternative that is only on one side belongs to that alternative.
    """
    labels = {label for label, _ in old.notes} & {label for label, _ in new.notes} | {""}
    for label, keyword in dict.fromkeys((*new.notes, *old.notes)):
        before, after = old.notes.get((label, keyword)), new.notes.get((label, keyword))
        if label not in labels or _is_equal(before, after):
            continue
        if keyword == "default":
            kind, why = _default(new.name, before, after)
        else:
            kind, why = _KINDS[keyword], _text(new.name, keyword, before, after)
        held = before if after is None else after
        assert held is not None
        yield Change(held.pointer, kind, _value(before), _value(after), NOBODY, why)


assert _KINDS.keys() == set(TEXT)


def _is_equal(before: Held | None, after: Held | None) -> bool:
    if before is None or after is None:
        return before is after
    return key(before.value) == key(after.value)


def _value(held: Held | None) -> Json | Missing:
    return MISSING if held is None else held.value


def _default(name: str, before: Held | None, after: Held | None) -> tuple[ChangeKind, str]:
    if after is None:
        assert before is not None
        why = f"{name} no longer defaults to {quoted(before.value)}"
        return ChangeKind.DEFAULT_REMOVED, f"{why}: leaving it out may have another effect"
    now = f"{name} now defaults to {quoted(after.value)}"
    if before is None:
        return ChangeKind.DEFAULT_ADDED, f"{now}: leaving it out may have another effect"
    was = f"it was {quoted(before.value)}"
    return ChangeKind.DEFAULT_CHANGED, f"{now}, {was}: leaving it out may have another effect"


def _text(name: str, keyword: str, before: Held | None, after: Held | None) -> str:
    if keyword == "deprecated":
        is_deprecated = after is not None and after.value is True
        return f"{name} is {'now' if is_deprecated else 'no longer'} deprecated"
    noun = "examples" if keyword == "examples" else f"a {keyword}"
    if before is None:
        return f"{name} now has {noun}, which a model reads"
    if after is None:
        return f"{name} no longer has {noun}, which a model read"
    verb = "read" if keyword == "examples" else "reads"
    return f"the {keyword} of {name} {verb} differently, which may change what a model sends"

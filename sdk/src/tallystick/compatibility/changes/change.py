"""One change between two schemas, as a reviewer reads it.

A change explains, and never decides: whether a direction is broken is the engine's verdict alone.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tallystick.canonical import Json, Missing


class Direction(StrEnum):
    """Whose values meet whose schema."""

    OLD_TO_NEW = "old_to_new"
    NEW_TO_OLD = "new_to_old"


class ChangeKind(StrEnum):
    """What changed. The order is the one in which changes at one path are told."""

    RENAMED = "renamed"
    MOVED = "moved"
    REQUIRED_ADDED = "required_added"
    REQUIRED_REMOVED = "required_removed"
    PROPERTY_ADDED = "property_added"
    PROPERTY_REMOVED = "property_removed"
    PATTERN_PROPERTY_ADDED = "pattern_property_added"
    PATTERN_PROPERTY_REMOVED = "pattern_property_removed"
    ADDITIONAL_PROPERTIES_OPENED = "additional_properties_opened"
    ADDITIONAL_PROPERTIES_CLOSED = "additional_properties_closed"
    ADDITIONAL_PROPERTIES_CHANGED = "additional_properties_changed"
    PROPERTY_NAMES_CHANGED = "property_names_changed"
    TYPE_NARROWED = "type_narrowed"
    TYPE_WIDENED = "type_widened"
    TYPE_CHANGED = "type_changed"
    CONST_CHANGED = "const_changed"
    ENUM_IMPOSED = "enum_imposed"
    ENUM_LIFTED = "enum_lifted"
    ENUM_REMOVED = "enum_removed"
    ENUM_ADDED = "enum_added"
    ENUM_RESPELLED = "enum_respelled"
    BOUND_TIGHTENED = "bound_tightened"
    BOUND_LOOSENED = "bound_loosened"
    MULTIPLE_OF_CHANGED = "multiple_of_changed"
    PATTERN_ADDED = "pattern_added"
    PATTERN_REMOVED = "pattern_removed"
    PATTERN_CHANGED = "pattern_changed"
    FORMAT_ADDED = "format_added"
    FORMAT_REMOVED = "format_removed"
    FORMAT_CHANGED = "format_changed"
    ITEMS_CHANGED = "items_changed"
    CONTAINS_CHANGED = "contains_changed"
    UNION_BRANCH_ADDED = "union_branch_added"
    UNION_BRANCH_REMOVED = "union_branch_removed"
    CONDITION_CHANGED = "condition_changed"
    NOT_CHANGED = "not_changed"
    REFERENCE_CHANGED = "reference_changed"
    DEFAULT_ADDED = "default_added"
    DEFAULT_REMOVED = "default_removed"
    DEFAULT_CHANGED = "default_changed"
    KEYWORD_CHANGED = "keyword_changed"
    TITLE_CHANGED = "title_changed"
    DESCRIPTION_CHANGED = "description_changed"
    EXAMPLES_CHANGED = "examples_changed"
    DEPRECATED_CHANGED = "deprecated_changed"
    UNTOLD = "untold"


PROMPT_FACING: Final = frozenset(
    {
        ChangeKind.TITLE_CHANGED,
        ChangeKind.DESCRIPTION_CHANGED,
        ChangeKind.EXAMPLES_CHANGED,
        ChangeKind.DEPRECATED_CHANGED,
    }
)


@dataclass(frozen=True, slots=True)
class Change:
    """One change between an old schema and a new one.

    Args:
        path: A JSON Pointer into the new schema, or into the old one where the thing is gone.
        kind: What changed.
        old: The keyword's old value, or `MISSING`.
        new: The keyword's new value, or `MISSING`.
        breaks: In which direction it refuses values by itself.
        why: One plain sentence for a reviewer.
        replacement: Where a renamed or moved property is now, a JSON Pointer into the new schema.
    """

    path: str
    kind: ChangeKind
    old: Json | Missing
    new: Json | Missing
    breaks: frozenset[Direction]
    why: str
    replacement: str | None = None

    @property
    def is_prompt_facing(self) -> bool:
        """Whether it is about text that a model reads, which is never a structural break."""
        return self.kind in PROMPT_FACING

    def to_json(self) -> dict[str, Json]:
        """Return the change as a JSON object; `old`, `new` and `replacement` only where present."""
        values = {"old": self.old, "new": self.new}
        present: dict[str, Json] = {
            name: value for name, value in values.items() if not isinstance(value, Missing)
        }
        replacement: dict[str, Json] = (
            {} if self.replacement is None else {"replacement": self.replacement}
        )
        return {
            "path": self.path,
            "kind": self.kind.value,
            **present,
            **replacement,
            "breaks": [each.value for each in Direction if each in self.breaks],
            "is_prompt_facing": self.is_prompt_facing,
            "why": self.why,
        }

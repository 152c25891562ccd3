"""The two schemas of one walk, and what is still to be looked at in them."""

from dataclasses import dataclass
from typing import Final, TypeAlias

from tallystick.compatibility.changes.change import Change, Direction
from tallystick.compatibility.changes.face import Face
from tallystick.compatibility.changes.faces import Faces
from tallystick.subschema import Position, compile_pattern

NOBODY: Final[frozenset[Direction]] = frozenset()
OLD_TO_NEW: Final = frozenset({Direction.OLD_TO_NEW})
NEW_TO_OLD: Final = frozenset({Direction.NEW_TO_OLD})
BOTH: Final = OLD_TO_NEW | NEW_TO_OLD


# What holds of a property: a schema, all that may be sent (True), or that it is not sent (False).
Rest: TypeAlias = Position | bool


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two schemas for the same value, to be compared.

    Args:
        old: The old schema.
        new: The new schema.
        within: The one change that all changes in here are told as, if any; of what stands in a
            `not` or an `if`, only that it changed is said.
    """

    old: Position
    new: Position
    within: Change | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """Both schemas, and how they are read.

    Args:
        old: The old schema.
        new: The new schema.
        is_closed: Whether nobody writes properties that are not declared.
        assert_format: Whether `format` is asserted.
    """

    old: Faces
    new: Faces
    is_closed: bool
    assert_format: bool

    def breaks(self, old: Face, new: Face, name: str) -> frozenset[Direction]:
        """Return where a property that one side writes may be refused by the other."""
        forth = self._is_refused(self.rest(old, name), self.rest(new, name), self.old, self.new)
        back = self._is_refused(self.rest(new, name), self.rest(old, name), self.new, self.old)
        return (OLD_TO_NEW if forth else NOBODY) | (NEW_TO_OLD if back else NOBODY)

    def rest(self, face: Face, name: str | None = None) -> Rest:
        """Return the schema of a property; without a name, of one that is declared nowhere."""
        if name is not None:
            if name in face.members:
                return face.members[name]
            patterns = face.keywords.get("patternProperties")
            if patterns is not None and isinstance(patterns.value, dict):
                for pattern, part in zip(patterns.value, patterns.parts, strict=False):
                    if matches(pattern, name):
                        return part
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            held = face.keywords.get(keyword)
            if held is not None:
                return held.value if isinstance(held.value, bool) else held.parts[0]
        is_map = "patternProperties" in face.keywords
        return not (self.is_closed and face.members and not is_map)

    def _is_refused(self, written: Rest, read: Rest, writer: Faces, reader: Faces) -> bool:
        if isinstance(written, bool) and not written:
            return False
        if isinstance(read, bool):
            return not read
        if isinstance(written, bool):
            return not reader.face(read).is_anything
        return writer.fingerprint(written) != reader.fingerprint(read)


def matches(pattern: str, name: str) -> bool:
    """Whether a regular expression is found in a property's name; not, if it cannot be run."""
    try:
        return compile_pattern(pattern).is_valid(name)
    except ValueError:
        return False

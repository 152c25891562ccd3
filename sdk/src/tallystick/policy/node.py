"""A policy document while it is read: each value with its place, each fault noted, none the last.

A reader that gets None from a node has been told already; the document is refused in the end.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Final, TypeVar, cast

from tallystick.canonical import Json, pointer_join
from tallystick.document import MarkedDocument
from tallystick.plain import plain
from tallystick.policy.fault import Fault, Guesses
from tallystick.policy.operators import Kind, kind_of
from tallystick.policy.transformations import decimal_of

Choice = TypeVar("Choice", bound=StrEnum)

_QUOTED_CHARS_MAX: Final = 60
_NAMED_MAX: Final = 16


class Need(Enum):
    """Whether an object has a member."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    LATER = "later"
    """Optional, and only known since version 0.2."""


class Faults:
    """Collects the faults of one document.

    Args:
        document: The document.
    """

    def __init__(self, document: MarkedDocument) -> None:
        self._document = document
        self._found: dict[tuple[str, str], Fault] = {
            (flaw.pointer, ""): Fault(flaw.detail, flaw.pointer, flaw.mark)
            for flaw in document.flaws
        }
        self._guesses = Guesses()
        self.is_later = False

    @property
    def all(self) -> list[Fault]:
        """All faults, in the order of the text."""
        found = list(self._found.values())
        if self._document.marks:
            found.sort(key=lambda fault: (fault.mark.line, fault.mark.column) if fault.mark else ())
        return found

    def meant(self, name: str, known: Collection[str]) -> str:
        """Return what to say of a name that is not known."""
        names = f": known are {', '.join(sorted(known))}" if 0 < len(known) <= _NAMED_MAX else ""
        return self.near(name, known) or names

    def near(self, name: str, known: Collection[str]) -> str:
        """Return which name may be meant by one that is not known, if any is like it."""
        return self._guesses.guess(name[:_QUOTED_CHARS_MAX], known)

    def add(self, pointer: str, message: str, *, of_key: bool = False) -> None:
        """Note a fault, unless the text itself is at fault in this place."""
        if (pointer, "") in self._found:
            return
        marks = self._document.marks
        mark = self._document.keys.get(pointer) if of_key else None
        mark = mark or marks.get(pointer)
        self._found.setdefault((pointer, message), Fault(message, pointer, mark))


class Node:
    """One value of the document.

    Args:
        faults: Where its faults go.
        value: The value.
        pointer: Its place, a JSON Pointer.
    """

    def __init__(self, faults: Faults, value: Json, pointer: str) -> None:
        self.faults = faults
        self.value = value
        self.pointer = pointer

    def refuse(self, message: str) -> None:
        """Note a fault of this value."""
        self.faults.add(self.pointer, message)

    def needs_later(self, what: str) -> bool:
        """Note, in a document of version 0.1, that something needs 0.2; return whether it does."""
        if not self.faults.is_later:
            self.refuse(f'{what} needs version "0.2"')
        return not self.faults.is_later

    def members(self) -> dict[str, "Node"]:
        """Return the members of an object, whatever they are called."""
        if not isinstance(self.value, dict):
            self.refuse(f"a mapping belongs here, not {_described(self.value)}")
            return {}
        return {
            name: Node(self.faults, value, self.pointer + pointer_join(name))
            for name, value in self.value.items()
        }

    def fields(self, needs: Mapping[str, Need]) -> dict[str, "Node"]:
        """Return the members of an object that has these and no others."""
        members = self.members()
        for name, node in members.items():
            if name not in needs:
                message = f'no field is called "{_cut(name)}"{self.faults.meant(name, needs)}'
                self.faults.add(node.pointer, message, of_key=True)
            elif needs[name] is Need.LATER and not self.faults.is_later:
                message = f'the field "{name}" needs version "0.2"'
                self.faults.add(node.pointer, message, of_key=True)
        if isinstance(self.value, dict):
            for name, need in needs.items():
                if need is Need.REQUIRED and name not in members:
                    self.refuse(f'the field "{name}" is missing')
        return {name: node for name, node in members.items() if name in needs}

    def items(self, most: int, *, least: int = 0) -> Iterator["Node"]:
        """Return the items of a list."""
        if not isinstance(self.value, list):
            self.refuse(f"a list belongs here, not {_described(self.value)}")
            return
        if not least <= len(self.value) <= most:
            self.refuse(f"a list of {least} to {most} items belongs here")
            return
        for index, item in enumerate(self.value):
            yield Node(self.faults, item, self.pointer + pointer_join(index))

    def text(self, most: int) -> str | None:
        """Return a text that is not empty."""
        if not isinstance(self.value, str):
            self.refuse(f"a text belongs here, not {_described(self.value)}")
        elif not self.value.strip():
            self.refuse("the text is empty")
        elif len(self.value) > most:
            self.refuse(f"the text is longer than {most} characters")
        else:
            return self.value
        return None

    def name(self, pattern: re.Pattern[str], form: str, most: int) -> str | None:
        """Return a text of a form."""
        text = self.text(most)
        if text is not None and not pattern.fullmatch(text):
            self.refuse(f"{form} belongs here")
            return None
        return text

    def one_of(self, choices: Collection[Choice], later: Collection[Choice] = ()) -> Choice | None:
        """Return one of some words, of which some are only known since version 0.2."""
        known = {choice.value: choice for choice in choices}
        if not isinstance(self.value, str) or self.value not in known:
            given = str(self.value) if isinstance(self.value, str) else ""
            self.refuse(
                f"one of {', '.join(known)} belongs here, not {_described(self.value)}"
                f"{self.faults.near(given, known)}"
            )
            return None
        chosen = known[self.value]
        return None if chosen in later and self.needs_later(f'"{chosen.value}"') else chosen

    def known(self, names: Collection[str], what: str) -> str | None:
        """Return a name that the document defines elsewhere."""
        if isinstance(self.value, str) and self.value in names:
            return self.value
        if isinstance(self.value, str):
            self.refuse(
                f'no {what} is called "{_cut(self.value)}"{self.faults.meant(self.value, names)}'
            )
        else:
            self.refuse(f"the name of a {what} belongs here, not {_described(self.value)}")
        return None

    def number(self, most: Decimal) -> Decimal | None:
        """Return a number that is not negative."""
        if kind_of(self.value) is Kind.NUMBER:
            number = decimal_of(cast("float", self.value))
            if 0 <= number <= most:
                return number
        self.refuse(f"a number from 0 to {most:f} belongs here, not {_described(self.value)}")
        return None

    def count(self, most: int) -> int | None:
        """Return a whole number that is not negative."""
        if type(self.value) is int and 0 <= self.value <= most:
            return self.value
        self.refuse(f"a whole number from 0 to {most} belongs here, not {_described(self.value)}")
        return None


def _described(value: Json) -> str:
    match value:
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str():
            return f'"{_cut(value)}"'
        case _:
            return "nothing" if value is None else plain(value)


def _cut(text: str) -> str:
    shown = plain(text[:_QUOTED_CHARS_MAX])
    return shown if len(text) <= _QUOTED_CHARS_MAX else f"{shown}…"

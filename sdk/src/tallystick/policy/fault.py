"""What is wrong with a policy document: every fault with its place."""

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from tallystick.canonical import Json
from tallystick.document import Mark
from tallystick.errors import InvalidPolicy

FAULTS_MAX: Final = 100
_GUESSES_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong.

    Args:
        message: What, in one sentence that says what to write instead.
        pointer: Where in the document, a JSON Pointer.
        mark: Where in the text; None without a text.
    """

    message: str
    pointer: str = ""
    mark: Mark | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the fault as a JSON object."""
        return {
            "line": self.mark.line if self.mark else None,
            "column": self.mark.column if self.mark else None,
            "pointer": self.pointer,
            "message": self.message,
        }


def invalid(faults: Sequence[Fault]) -> InvalidPolicy:
    """Return the refusal of a document: the first fault as its sentence, all as its facts.

    Of more than `FAULTS_MAX` faults the others are counted.
    """
    first = faults[0]
    where = f"line {first.mark.line} column {first.mark.column}: " if first.mark else ""
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return InvalidPolicy(
        f"{where}{first.message}{more}",
        pointer=first.pointer,
        facts={"faults": [fault.to_json() for fault in faults[:FAULTS_MAX]]},
    )


class Guesses:
    """Says what a misspelt name was meant to be, for the first few: a guess takes its time."""

    def __init__(self) -> None:
        self._left = _GUESSES_MAX

    def guess(self, name: str, known: Collection[str]) -> str:
        """Return a question to put behind a sentence; empty if nothing is near."""
        if self._left == 0 or not known:
            return ""
        self._left -= 1
        near = difflib.get_close_matches(name, known, n=1)
        return f': did you mean "{near[0]}"?' if near else ""

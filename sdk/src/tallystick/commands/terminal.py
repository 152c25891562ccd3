"""Plain text for a terminal: columns, colour where it is wanted, and nothing that obeys others."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TextIO

from tallystick.lockfile.entry import Level
from tallystick.plain import plain

_GAP: Final = "  "
_RESET: Final = "\x1b[0m"


class Colour(StrEnum):
    """The few colours in use, by what they say."""

    GOOD = "\x1b[32m"
    CAUTION = "\x1b[33m"
    BAD = "\x1b[1;31m"
    QUIET = "\x1b[2m"


LEVEL_COLOURS: Final = {
    Level.UNCHANGED: Colour.GOOD,
    Level.TEXT: Colour.GOOD,
    Level.COMPATIBLE: Colour.CAUTION,
    Level.REVIEW: Colour.CAUTION,
    Level.BREAKING: Colour.BAD,
    Level.NEW: Colour.CAUTION,
    Level.REMOVED: Colour.BAD,
    None: Colour.QUIET,
}
"""How a tool is coloured, by its level; None for one that was not checked."""


@dataclass(frozen=True, slots=True)
class Painter:
    """Colours text, or leaves it as it is."""

    is_on: bool

    @classmethod
    def of(cls, stream: TextIO, environment: Mapping[str, str]) -> "Painter":
        """Return what suits a stream: colour on a terminal alone, and never with NO_COLOR set.

        Source: https://no-color.org.
        """
        is_dumb = environment.get("TERM") == "dumb" or bool(environment.get("NO_COLOR"))
        # The Windows console obeys these codes only where something has switched it to do so.
        return cls(is_on=os.name != "nt" and stream.isatty() and not is_dumb)

    def __call__(self, colour: Colour, text: str) -> str:
        """Return the text in a colour."""
        return f"{colour}{text}{_RESET}" if self.is_on and text else text


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines whose cells stand below each other; all rows have as many cells."""
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def version_step(before: str | None, after: str | None, *, arrow: str = " -> ") -> str:
    """Return the way from one version to another, or the one version that there is."""
    return arrow.join(dict.fromkeys(each for each in (before, after) if each is not None))


def count(number: int, noun: str) -> str:
    """Return a number of things in words: `1 tool`, `2 tools`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

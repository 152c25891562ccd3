"""Markdown and workflow commands for GitHub that hold the text of others. Pure.

Names, texts and values are others': none of them ends the command, cell or block that it is in.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from tallystick.commands.difference import Severity
from tallystick.plain import plain

ANNOTATIONS_MAX: Final = 10
"""The most that GitHub shows of one severity and one step; what comes after is dropped unsaid."""

SUMMARY_BYTES_MAX: Final = 1_000_000
"""A little less than the 1 MiB that GitHub takes of one step; of more it shows nothing at all."""

_CELL_CHARS_MAX: Final = 300


# --- workflow commands ----------------------------------------------------------------------------


def workflow_command(severity: Severity, message: str, **properties: str) -> str:
    """Return a workflow command that makes an annotation; an empty property is left out.

    Source: docs.github.com, "Workflow commands for GitHub Actions".
    """
    given = ",".join(
        f"{name}={value.translate(_IN_PROPERTIES)}" for name, value in properties.items() if value
    )
    command = f"::{_COMMANDS[severity]} {given}".rstrip()
    return f"{command}::{message.translate(_IN_MESSAGES)}"


_COMMANDS: Final = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "notice",
}
# As the Actions toolkit has it, in packages/core/src/command.ts.
_IN_MESSAGES: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTIES: Final = _IN_MESSAGES | str.maketrans({":": "%3A", ",": "%2C"})


def at_most(severity: Severity, commands: list[str]) -> list[str]:
    """Return the commands of one severity, and in the place of too many the word that they are."""
    if len(commands) <= ANNOTATIONS_MAX:
        return commands
    shown = commands[: ANNOTATIONS_MAX - 1]
    more = f"{len(commands) - len(shown)} more like these: the summary of the job lists them."
    return [*shown, workflow_command(severity, more)]


# --- Markdown -------------------------------------------------------------------------------------


def fitting(blocks: Iterable[str], *, cut: str) -> Iterator[str]:
    """Yield blocks while a summary has room for them, and for the word that some are missing."""
    room = SUMMARY_BYTES_MAX - len(cut)
    for block in blocks:
        room -= len(block.encode()) + 1
        if room < 0:
            yield cut
            return
        yield block


def text(shown: str) -> str:
    """Return text that is shown as it is, wherever it stands.

    A character reference is never taken for markup: in no cell, no line and no HTML.

    Source: CommonMark 0.31, section 2.5.
    """
    cut = shortened(plain(shown), _CELL_CHARS_MAX)
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", cut)


# GitHub makes links of what only looks like an address.
_MARKUP: Final = re.compile(r"""[^\w\s.,;?'"/()=%→-]|_|(?<=www)\.""")


def code(shown: str) -> str:
    """Return text as code."""
    return f"<code>{text(shown)}</code>"


def table_head(*titles: str) -> Iterator[str]:
    """Yield the first two lines of a table."""
    yield table_row(*titles)
    yield table_row(*("---" for _ in titles))


def table_row(*cells: str) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def fenced(language: str, content: str) -> Iterator[str]:
    """Yield a fenced block, with a fence that is longer than any in its content."""
    longest = max((len(ticks) for ticks in re.findall("`+", content)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}{language}", content, fence)


def shortened(shown: str, chars_max: int) -> str:
    """Return text, or as much of it as there is room for."""
    return shown if len(shown) <= chars_max else f"{shown[: chars_max - 4]} ..."

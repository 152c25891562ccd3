"""A tool that differs, as reviewers of code are told it: where, how grave, and what to do. Pure.

What `github` and `sarif` share; each writes it in a form of its own.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from tallystick.commands.report import Report, Row
from tallystick.lockfile.drift import Drift
from tallystick.lockfile.entry import Level
from tallystick.plain import plain

_NAMES_MAX: Final = 20


class Severity(StrEnum):
    """How grave a difference is for those who review code."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


SEVERITIES: Final = {
    Level.BREAKING: Severity.ERROR,
    Level.REMOVED: Severity.ERROR,
    Level.NEW: Severity.ERROR,
    Level.REVIEW: Severity.WARNING,
    Level.COMPATIBLE: Severity.WARNING,
    Level.TEXT: Severity.NOTE,
}
"""The levels that differ, the gravest first."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One tool that is not what its lockfile accepts."""

    row: Row
    drift: Drift

    @property
    def severity(self) -> Severity:
        """How grave it is."""
        return SEVERITIES[self.drift.level]

    @property
    def accept_command(self) -> str:
        """The command that takes what the code has into the lockfile."""
        command = f"tallystick accept {self.row.name}"
        if self.drift.level is Level.NEW and self.row.source is not None:
            # Where the code of the others is, the lockfile tells.
            command += f" -m {self.row.source.partition(':')[0]}"
        return plain(command)

    def file(self, root: Path) -> str:
        """Return the file of the code, or else the lockfile: with `/`, and from the root if in it.

        Args:
            root: The root of the repository.
        """
        file = self.row.lockfile if self.row.file is None else Path(self.row.file)
        return shown_from(root, file)


def differences(report: Report) -> list[Difference]:
    """Return the tools that differ, the gravest first."""
    order = [*SEVERITIES]
    found = [
        Difference(row, row.drift)
        for row in report.rows
        if row.drift is not None and row.drift.level in SEVERITIES
    ]
    return sorted(found, key=lambda each: order.index(each.drift.level))


def unchecked(report: Report) -> str | None:
    """Return one line about the tools that were not checked, if there are any."""
    names = [plain(row.name) for row in report.rows if row.level is None]
    if not names:
        return None
    listed = ", ".join(names[:_NAMES_MAX])
    more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
    return f"Not checked, since the module was not imported: {listed}{more}"


def shown_from(root: Path, file: Path) -> str:
    """Return a path with `/`: from the root where it lies in it, else as it is."""
    return (file.relative_to(root) if file.is_relative_to(root) else file).as_posix()

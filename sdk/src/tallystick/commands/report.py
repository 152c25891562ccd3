"""What a check found, as a value: a row for each tool of the code and of the lockfile.

Pure: how it is written for people and for pipelines is decided elsewhere.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tallystick.canonical import Json
from tallystick.commands.exit_code import ExitCode
from tallystick.lockfile.drift import Drift
from tallystick.lockfile.entry import Level

PASSING: Final = frozenset({None, Level.UNCHANGED, Level.TEXT})
"""The levels that fail no check, unless it is strict: what nobody's call or reader notices."""


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one tool.

    Args:
        name: The tool's name.
        level: How grave its drift is; None if it was not checked, since its module was not
            imported.
        source: `module:qualname` of its code, as declared or else as the lockfile remembers it.
        file: The absolute path of the file that declares it, where there is one.
        line: The line of its `def` or `class`, from 1.
        lockfile: The lockfile that it was held against.
        drift: What lies between the lockfile's entry and the code; None if it was not checked.
    """

    name: str
    level: Level | None
    source: str | None
    file: str | None
    line: int | None
    lockfile: Path
    drift: Drift | None

    @property
    def accepted_version(self) -> str | None:
        """The version that the lockfile holds."""
        entry = None if self.drift is None else self.drift.entry
        return None if entry is None else str(entry.document["version"])

    @property
    def version(self) -> str | None:
        """The version that the code has, or would get by being accepted."""
        document = None if self.drift is None else self.drift.document
        return None if document is None else str(document["version"])

    def to_json(self) -> dict[str, Json]:
        """Return the row as a JSON object; `comparison` only where two contracts were compared."""
        row: dict[str, Json] = {
            "name": self.name,
            "level": "not_checked" if self.level is None else self.level.value,
            "accepted_version": self.accepted_version,
            "version": self.version,
            "source": self.source,
            "file": self.file,
            "line": self.line,
            "lockfile": str(self.lockfile),
        }
        if self.drift is not None:
            row["findings"] = [each.to_json() for each in self.drift.findings]
            if self.drift.comparison is not None:
                row["comparison"] = self.drift.comparison.to_json()
        return row


@dataclass(frozen=True, slots=True)
class Report:
    """The rows of all tools, by name."""

    rows: tuple[Row, ...]

    def to_json(self, *, strict: bool = False) -> dict[str, Json]:
        """Return the report as a JSON object; `matches` is what a check, strict or not, says."""
        return {
            "matches": exit_code(self, strict=strict) is ExitCode.DONE,
            "tools": [row.to_json() for row in self.rows],
        }


def exit_code(report: Report, *, strict: bool = False) -> ExitCode:
    """Return how a check ends that found this; when strict, text that changed counts too."""
    passing = PASSING - {Level.TEXT} if strict else PASSING
    if all(row.level in passing for row in report.rows):
        return ExitCode.DONE
    return ExitCode.DIFFERS

"""A report as a SARIF 2.1.0 log, for code scanning and for editors. Pure, and without a date.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from tallystick.canonical import Json
from tallystick.commands.difference import (
    SEVERITIES,
    Difference,
    Severity,
    differences,
    shown_from,
    unchecked,
)
from tallystick.commands.report import Report
from tallystick.compatibility.contracts.flow import Flow
from tallystick.lockfile.drift import Drift
from tallystick.lockfile.entry import Level
from tallystick.lockfile.wording import ToldChange, headline, told_changes
from tallystick.plain import plain

SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_ROOT: Final = "%SRCROOT%"
_CHANGES_MAX: Final = 50
_FAULTS_MAX: Final = 10


class _Rule(NamedTuple):
    """What is said of every tool at one level.

    Args:
        title: In a few words.
        meaning: In a sentence or two.
        cure: What to do.
    """

    title: str
    meaning: str
    cure: str


_RULES: Final = {
    Level.BREAKING: _Rule(
        "The contract of a tool breaks callers or readers",
        "An agent that was prompted with the accepted contract makes calls that fail now, or reads"
        " results that it does not expect, or it cannot be proven that it does not.",
        "Keep the old parameters working, or accept the change as a new major version.",
    ),
    Level.REMOVED: _Rule(
        "An accepted tool is gone",
        "The lockfile accepts a tool that the code no longer declares: whoever calls it fails.",
        "Bring the tool back, or accept that it is gone.",
    ),
    Level.NEW: _Rule(
        "A tool is not accepted yet",
        "The code declares a tool that the lockfile does not hold: nobody has accepted its contract"
        " and nobody would notice a change of it.",
        "Accept the tool, and commit the lockfile.",
    ),
    Level.REVIEW: _Rule(
        "The contract of a tool changes in what a person has to judge",
        "No call and no reader fails, but a call may do something else than before: a default, the"
        " capabilities, the meaning of an error, identity, idempotency or approval changed.",
        "Judge whether those who call the tool are still served, and accept the change.",
    ),
    Level.COMPATIBLE: _Rule(
        "The contract of a tool changes, and breaks nobody",
        "Every call that was accepted is accepted still, and every reader goes on as before.",
        "Accept the change, so that the lockfile is what the code is.",
    ),
    Level.TEXT: _Rule(
        "The text of a tool's contract changes",
        "Only what people and models read changes, or only the number of the version.",
        "Accept the change when you are content with the text.",
    ),
}
_PROBLEMS: Final = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.NOTE: "recommendation",
}


def log(report: Report, root: Path, tool_version: str) -> dict[str, Json]:
    """Return the log: a result for each tool that differs, the gravest first.

    The same report gives the same log. Paths are relative to the root, which it does not tell.

    Args:
        report: The report.
        root: The root of the repository.
        tool_version: The version of this library.
    """
    driver: dict[str, Json] = {
        "name": "Tallystick",
        "version": tool_version,
        "rules": [_rule(level) for level in SEVERITIES],
    }
    base: dict[str, Json] = {"description": {"text": "The root of the repository."}}
    run: dict[str, Json] = {
        "tool": {"driver": driver},
        "invocations": [_invocation(report)],
        "originalUriBaseIds": {_ROOT: base},
        "columnKind": "unicodeCodePoints",
        "results": [_result(each, root) for each in differences(report)],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(level: Level) -> dict[str, Json]:
    rule, severity = _RULES[level], SEVERITIES[level]
    return {
        "id": level.value,
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": rule.meaning},
        "help": {
            "text": f"{rule.meaning}\n\n{rule.cure}\n\n{_COMMANDS}",
            "markdown": f"{rule.meaning}\n\n{rule.cure}\n\n```sh\n{_COMMANDS}\n```",
        },
        "defaultConfiguration": {"level": severity.value},
        "properties": {
            "precision": "very-high",
            "problem.severity": _PROBLEMS[severity],
            "tags": ["compatibility", "tool-contract"],
        },
    }


_COMMANDS: Final = """\
tallystick diff TOOL      # see all of it
tallystick accept TOOL    # accept it"""


def _invocation(report: Report) -> dict[str, Json]:
    unseen = unchecked(report)
    told: list[Json] = [] if unseen is None else [{"level": "note", "message": _message([unseen])}]
    return {"executionSuccessful": True, "toolExecutionNotifications": told}


def _result(difference: Difference, root: Path) -> dict[str, Json]:
    row, drift = difference.row, difference.drift
    lockfile = shown_from(root, row.lockfile)
    location = _location(difference.file(root), row.line or 1)
    if row.source is not None:
        location["logicalLocations"] = [{"fullyQualifiedName": row.source.replace(":", ".")}]
    return {
        "ruleId": drift.level.value,
        "ruleIndex": [*SEVERITIES].index(drift.level),
        "level": difference.severity.value,
        "message": _message(_told(difference)),
        "locations": [location],
        "relatedLocations": [
            {"id": 0, "message": {"text": "The accepted contract."}, **_location(lockfile, 1)}
        ],
        # One tool of one lockfile, wherever its code goes and whatever else changes of it.
        "partialFingerprints": {"tallystickTool/v1": f"{lockfile}#{row.name}"},
        "properties": _properties(difference),
    }


def _location(file: str, line: int) -> dict[str, Json]:
    is_absolute = Path(file).is_absolute()
    artifact: dict[str, Json] = (
        {"uri": Path(file).as_uri()} if is_absolute else {"uri": quote(file), "uriBaseId": _ROOT}
    )
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": line}}}


def _told(difference: Difference) -> list[str]:
    drift = difference.drift
    changes = told_changes(drift)
    lines = [headline(drift, difference.row.lockfile.name), *map(_change, changes[:_CHANGES_MAX])]
    if len(changes) > _CHANGES_MAX:
        lines.append(f"... and {len(changes) - _CHANGES_MAX} more")
    lines += _faults(drift)
    lines += [plain(each.detail) for each in drift.findings]
    return [*lines, f"Accept it: {difference.accept_command}"]


def _change(change: ToldChange) -> str:
    return f"{change.place}: {change.what}" + (f" ({change.effect})" if change.effect else "")


def _faults(drift: Drift) -> list[str]:
    if drift.comparison is None:
        return []
    return [
        f"{introduction} {plain(each.pointer) or '/'}: {plain(each.message)}"
        for flow, introduction in _INTRODUCED.items()
        if (witness := drift.comparison.flows[flow].declared.witness) is not None
        for each in witness.violations[:_FAULTS_MAX]
    ]


_INTRODUCED: Final = {
    Flow.OLD_CALLS: "A call that worked fails now, at",
    Flow.NEW_RESULTS: "Readers refuse a result that may come now, at",
}


def _message(lines: Sequence[str]) -> dict[str, Json]:
    """Return a message in which the text of others is neither a placeholder nor a link.

    Source: sections 3.11.5 and 3.11.6.
    """
    text = "\n".join(lines).replace("{", "{{").replace("}", "}}")
    return {"text": text.replace("](", "] (")}


def _properties(difference: Difference) -> dict[str, Json]:
    row, comparison = difference.row, difference.drift.comparison
    properties: dict[str, Json] = {"acceptedVersion": row.accepted_version, "version": row.version}
    if comparison is None:
        return properties
    properties["changes"] = [each.to_json() for each in comparison.changes]
    for flow, name in ((Flow.OLD_CALLS, "failingCall"), (Flow.NEW_RESULTS, "refusedResult")):
        witness = comparison.flows[flow].declared.witness
        if witness is not None:
            properties[name] = witness.value
    return properties

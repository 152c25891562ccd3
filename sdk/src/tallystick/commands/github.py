"""A report for GitHub: annotations on the lines of code, and a summary of the job. Pure."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tallystick.canonical import Json
from tallystick.commands.difference import Difference, Severity, differences, unchecked
from tallystick.commands.markup import (
    at_most,
    code,
    fenced,
    fitting,
    shortened,
    table_head,
    table_row,
    text,
    workflow_command,
)
from tallystick.commands.report import Report
from tallystick.commands.terminal import count, version_step
from tallystick.compatibility.contracts.flow import Flow
from tallystick.compatibility.verdict import Witness
from tallystick.lockfile.drift import Drift
from tallystick.lockfile.wording import headline, told_changes, verdict
from tallystick.lockfile.wording import summary as told_shortly

_MESSAGE_CHARS_MAX: Final = 4_000
_VALUE_CHARS_MAX: Final = 4_000
_CHANGES_MAX: Final = 50
_REMARKS_MAX: Final = 10


# --- annotations ----------------------------------------------------------------------------------


def annotations(report: Report, root: Path) -> list[str]:
    """Return the annotations as workflow commands, a line each, the gravest first.

    Args:
        report: The report.
        root: The root of the repository.

    Source: docs.github.com, "Workflow commands for GitHub Actions".
    """
    told: dict[Severity, list[str]] = {severity: [] for severity in Severity}
    for each in differences(report):
        told[each.severity].append(_annotation(each, root))
    unseen = unchecked(report)
    if unseen is not None:
        told[Severity.NOTE].append(workflow_command(Severity.NOTE, unseen))
    return [line for severity in Severity for line in at_most(severity, told[severity])]


def _annotation(difference: Difference, root: Path) -> str:
    row, drift = difference.row, difference.drift
    told = "\n".join([headline(drift, row.lockfile.name), "", *told_shortly(drift)]).rstrip()
    return workflow_command(
        difference.severity,
        f"{shortened(told, _MESSAGE_CHARS_MAX)}\n\nAccept it: {difference.accept_command}",
        file=difference.file(root),
        line="" if row.line is None else str(row.line),
        title=f"{row.name} {verdict(drift)}",
    )


# --- the summary of the job -----------------------------------------------------------------------


def summary(report: Report) -> str:
    """Return the summary of the job in GitHub's Markdown, at most `SUMMARY_BYTES_MAX` long."""
    found = differences(report)
    return "\n".join(fitting([*_overview(report, found), *map(_section, found)], cut=_CUT))


_CUT: Final = "\nThe rest is more than GitHub shows: `tallystick check` tells all of it.\n"


def _overview(report: Report, found: Sequence[Difference]) -> Iterator[str]:
    checked = sum(row.level is not None for row in report.rows)
    yield "### Tool contracts\n"
    if found:
        verb = "differs" if len(found) == 1 else "differ"
        yield f"{len(found)} of {count(checked, 'tool')} {verb} from what the lockfile accepts.\n"
        yield from table_head("Tool", "What", "Version")
        for each in found:
            row = each.row
            versions = version_step(row.accepted_version, row.version, arrow=" → ")
            yield table_row(code(row.name), text(verdict(each.drift)), text(versions))
    else:
        verb = "is" if checked == 1 else "are"
        yield f"{count(checked, 'tool')} {verb} what the lockfile accepts."
    unseen = unchecked(report)
    if unseen is not None:
        yield f"\n{text(unseen)}."


def _section(difference: Difference) -> str:
    drift = difference.drift
    lines = [
        "",
        f"#### {code(drift.name)} {text(verdict(drift))}",
        "",
        *_changes(drift),
        *_counter_examples(drift),
        *_remarks(drift),
        "Accept it:",
        "",
        *fenced("sh", difference.accept_command),
    ]
    return "\n".join(lines)


def _changes(drift: Drift) -> Iterator[str]:
    changes = told_changes(drift)
    if not changes:
        return
    yield from table_head("Where", "What", "Effect")
    for each in changes[:_CHANGES_MAX]:
        yield table_row(code(each.place), text(each.what), text(each.effect))
    yield ""
    if len(changes) > _CHANGES_MAX:
        yield f"... and {len(changes) - _CHANGES_MAX} more\n"


def _counter_examples(drift: Drift) -> Iterator[str]:
    comparison = drift.comparison
    if comparison is None:
        return
    for flow, introduction in _INTRODUCED.items():
        witness = comparison.flows[flow].declared.witness
        if witness is not None:
            yield from (introduction, "", *_counter_example(witness), "")


_INTRODUCED: Final = {
    Flow.OLD_CALLS: "A call that worked and fails now:",
    Flow.NEW_RESULTS: "A result that may come now, and that old readers refuse:",
}


def _counter_example(witness: Witness) -> Iterator[str]:
    value = _readable(witness.value)
    if len(value) <= _VALUE_CHARS_MAX:
        yield from fenced("json", value)
    else:
        yield f"(It has {len(value)} characters: `tallystick diff` shows it.)"
    yield ""
    for each in witness.violations[:_REMARKS_MAX]:
        yield f"- {code(each.pointer or '/')}: {text(each.message)}"


def _readable(value: Json) -> str:
    """Return a value as JSON over several lines, in which nothing is that cannot be seen."""
    written = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(
        each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in written
    )


def _remarks(drift: Drift) -> Iterator[str]:
    review = () if drift.comparison is None else drift.comparison.review
    details = dict.fromkeys(each.detail for each in (*drift.findings, *review))
    if details:
        yield "For a person to judge:"
        yield ""
        yield from (f"- {text(each)}" for each in [*details][:_REMARKS_MAX])
        yield ""

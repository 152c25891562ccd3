"""A report for GitHub: annotations on the lines of code, and a summary of the job. Pure.

Names, texts and values are others': none of them ends the command, cell or block that it is in.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tallystick.canonical import Json
from tallystick.commands.difference import Difference, Severity, differences, unchecked
from tallystick.commands.report import Report
from tallystick.commands.terminal import count, version_step
from tallystick.compatibility.contracts.flow import Flow
from tallystick.compatibility.verdict import Witness
from tallystick.lockfile.drift import Drift
from tallystick.lockfile.wording import headline, told_changes, verdict
from tallystick.lockfile.wording import summary as told_shortly
from tallystick.plain import plain

ANNOTATIONS_MAX: Final = 10
"""The most that GitHub shows of one severity and one step; what comes after is dropped unsaid."""

SUMMARY_BYTES_MAX: Final = 1_000_000
"""A little less than the 1 MiB that GitHub takes of one step; of more it shows nothing at all."""

_MESSAGE_CHARS_MAX: Final = 4_000
_CELL_CHARS_MAX: Final = 300
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
        told[Severity.NOTE].append(_command(Severity.NOTE, unseen))
    return [line for severity in Severity for line in _at_most(severity, told[severity])]


def _at_most(severity: Severity, lines: list[str]) -> list[str]:
    if len(lines) <= ANNOTATIONS_MAX:
        return lines
    shown = lines[: ANNOTATIONS_MAX - 1]
    more = f"{len(lines) - len(shown)} more like these: the summary of the job lists them."
    return [*shown, _command(severity, more)]


def _annotation(difference: Difference, root: Path) -> str:
    row, drift = difference.row, difference.drift
    told = "\n".join([headline(drift, row.lockfile.name), "", *told_shortly(drift)]).rstrip()
    return _command(
        difference.severity,
        f"{_shortened(told, _MESSAGE_CHARS_MAX)}\n\nAccept it: {difference.accept_command}",
        file=difference.file(root),
        line="" if row.line is None else str(row.line),
        title=f"{row.name} {verdict(drift)}",
    )


def _command(severity: Severity, message: str, **properties: str) -> str:
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


# --- the summary of the job -----------------------------------------------------------------------


def summary(report: Report) -> str:
    """Return the summary of the job in GitHub's Markdown, at most `SUMMARY_BYTES_MAX` long."""
    found = differences(report)
    return "\n".join(_fitting([*_overview(report, found), *map(_section, found)]))


def _fitting(blocks: Iterable[str]) -> Iterator[str]:
    """Yield blocks while there is room for them, and for the word that some are missing."""
    room = SUMMARY_BYTES_MAX - len(_CUT)
    for block in blocks:
        room -= len(block.encode()) + 1
        if room < 0:
            yield _CUT
            return
        yield block


_CUT: Final = "\nThe rest is more than GitHub shows: `tallystick check` tells all of it.\n"


def _overview(report: Report, found: Sequence[Difference]) -> Iterator[str]:
    checked = sum(row.level is not None for row in report.rows)
    yield "### Tool contracts\n"
    if found:
        verb = "differs" if len(found) == 1 else "differ"
        yield f"{len(found)} of {count(checked, 'tool')} {verb} from what the lockfile accepts.\n"
        yield from _table_head("Tool", "What", "Version")
        for each in found:
            row = each.row
            versions = version_step(row.accepted_version, row.version, arrow=" → ")
            yield _table_row(_code(row.name), _text(verdict(each.drift)), _text(versions))
    else:
        verb = "is" if checked == 1 else "are"
        yield f"{count(checked, 'tool')} {verb} what the lockfile accepts."
    unseen = unchecked(report)
    if unseen is not None:
        yield f"\n{_text(unseen)}."


def _section(difference: Difference) -> str:
    drift = difference.drift
    lines = [
        "",
        f"#### {_code(drift.name)} {_text(verdict(drift))}",
        "",
        *_changes(drift),
        *_counter_examples(drift),
        *_remarks(drift),
        "Accept it:",
        "",
        *_block("sh", difference.accept_command),
    ]
    return "\n".join(lines)


def _changes(drift: Drift) -> Iterator[str]:
    changes = told_changes(drift)
    if not changes:
        return
    yield from _table_head("Where", "What", "Effect")
    for each in changes[:_CHANGES_MAX]:
        yield _table_row(_code(each.place), _text(each.what), _text(each.effect))
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
        yield from _block("json", value)
    else:
        yield f"(It has {len(value)} characters: `tallystick diff` shows it.)"
    yield ""
    for each in witness.violations[:_REMARKS_MAX]:
        yield f"- {_code(each.pointer or '/')}: {_text(each.message)}"


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
        yield from (f"- {_text(each)}" for each in [*details][:_REMARKS_MAX])
        yield ""


# --- Markdown that holds the text of others -------------------------------------------------------


def _text(text: str) -> str:
    """Return text that is shown as it is, wherever it stands.

    A character reference is never taken for markup: in no cell, no line and no HTML.

    Source: CommonMark 0.31, section 2.5.
    """
    shown = _shortened(plain(text), _CELL_CHARS_MAX)
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", shown)


# GitHub makes links of what only looks like an address.
_MARKUP: Final = re.compile(r"""[^\w\s.,;?'"/()=%→-]|_|(?<=www)\.""")


def _code(text: str) -> str:
    return f"<code>{_text(text)}</code>"


def _table_head(*titles: str) -> Iterator[str]:
    yield _table_row(*titles)
    yield _table_row(*("---" for _ in titles))


def _table_row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _block(language: str, content: str) -> Iterator[str]:
    """Yield a fenced block, with a fence that is longer than any in its content."""
    longest = max((len(ticks) for ticks in re.findall("`+", content)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}{language}", content, fence)


def _shortened(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else f"{text[: chars_max - 4]} ..."

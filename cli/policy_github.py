"""Policies as files, for GitHub: annotations on their lines, and summaries of the job. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from cli import policy_file_views as views
from cli.connection import JsonObject
from tallystick.commands.difference import Severity
from tallystick.commands.markup import (
    at_most,
    code,
    fitting,
    table_head,
    table_row,
    text,
    workflow_command,
)
from tallystick.plain import plain

_CUT: Final = "\nThe rest is more than GitHub shows: the log of the step has all of it.\n"
_SEVERITIES: Final = {"error": Severity.ERROR, "warning": Severity.WARNING}
_WORDS: Final = {
    "allow": "allow",
    "needs_human": "needs human",
    "block": "block",
    None: "not known",
}
_VERDICTS: Final = {"pass": "PASS", "needs_human": "NEEDS HUMAN", "fail": "FAIL"}


# --- annotations ----------------------------------------------------------------------------------


def lint(answer: JsonObject) -> Sequence[RenderableType]:
    """The findings, as text and as annotations."""
    return [*views.lint(answer), *faults(answer)]


def faults(answer: JsonObject) -> Sequence[RenderableType]:
    """The findings as annotations alone, where their text goes another way."""
    found: dict[Severity, list[str]] = {severity: [] for severity in Severity}
    for each in answer["files"]:
        for finding in each["findings"]:
            severity = _SEVERITIES[finding["severity"]]
            found[severity].append(
                workflow_command(
                    severity,
                    plain(finding["message"]),
                    file=plain(each["file"]),
                    line=str(finding["line"] or ""),
                    col=str(finding["column"] or ""),
                    title=finding["code"],
                )
            )
    lines = [line for severity in Severity for line in at_most(severity, found[severity])]
    return [*map(Text, lines)]


def cases(answer: JsonObject) -> Sequence[RenderableType]:
    """The cases, as text, and those that failed as annotations."""
    lines = [
        workflow_command(
            Severity.ERROR,
            "\n".join(
                plain(f"{each['what']}: expected {each['expected']}, found {each['found']}")
                for each in case["mismatches"]
            ),
            file=plain(answer["table"]),
            line=str(case["line"]),
            title=plain(case["name"]),
        )
        for case in answer["cases"]
        if not case["passed"]
    ]
    return [*views.cases(answer), *map(Text, at_most(Severity.ERROR, lines))]


# --- the summary of the job -----------------------------------------------------------------------


def cases_summary(answer: JsonObject) -> str:
    """Return the summary of a table of cases, in GitHub's Markdown."""
    failed = [each for each in answer["cases"] if not each["passed"]]
    total = answer["passed"] + answer["failed"]
    return _summary(
        f"{answer['policy']}: {answer['passed']} of {total} cases passed",
        (
            ("Case", "Expected", "Found"),
            *(
                (text(each["name"]), _pairs(each, "expected"), _pairs(each, "found"))
                for each in failed
            ),
        ),
    )


def run_summary(answer: JsonObject) -> str:
    """Return the summary of a run, in GitHub's Markdown."""
    told = answer["reason"] or views.run_sentence(answer)
    return _summary(
        f"{_VERDICTS[answer['verdict']]} {answer['policy']}",
        (
            ("#", "Tool", "Decision", "Rule", "What the model was told"),
            *(
                (
                    str(each["number"]),
                    code(each["tool"]),
                    _WORDS[each["outcome"]],
                    code(each["rule"]) if each["rule"] else "",
                    text(each["message"]),
                )
                for each in answer["calls"]
            ),
        ),
        told,
    )


def replay_summary(answer: JsonObject) -> str:
    """Return the summary of a replay, in GitHub's Markdown."""
    differing = [each for each in answer["calls"] if each["is_changed"]]
    return _summary(
        f"Replay under {answer['policy']}",
        (
            ("#", "Tool", "Before", "Now", "Why"),
            *(
                (
                    str(each["number"]),
                    code(each["tool"]),
                    _WORDS[each["decision"]],
                    _WORDS[(each["after"] or {"decision": None})["decision"]],
                    text(each["explanation"]),
                )
                for each in differing
            ),
        ),
        views.replay_sentence(answer),
    )


def _summary(title: str, rows: Iterable[Sequence[str]], told: str = "") -> str:
    return "\n".join(fitting(_blocks(title, told, [*rows]), cut=_CUT))


def _blocks(title: str, told: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"### {text(title)}\n"
    if told:
        yield f"{text(told)}\n"
    head, *body = rows
    if body:
        yield from table_head(*head)
        yield from (table_row(*row) for row in body)


def _pairs(case: JsonObject, side: str) -> str:
    return ", ".join(
        f"{text(each['what'])} {code(each[side]) if each[side] else 'none'}"
        for each in case["mismatches"]
    )

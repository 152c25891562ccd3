"""What a person sees of policies as files: faults, cases, findings, runs.

Pure, as all views are.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from cli.connection import JsonObject
from cli.views import listing
from tallystick.plain import plain

_DECISIONS: Final = {
    "allow": ("allow", "green"),
    "needs_human": ("needs human", "yellow"),
    "block": ("block", "bold red"),
    None: ("not known", "yellow"),
}
_VERDICTS: Final = {
    "pass": ("PASS", "bold green"),
    "needs_human": ("NEEDS HUMAN", "bold yellow"),
    "fail": ("FAIL", "bold red"),
}
_SEVERITIES: Final = {"error": "bold red", "warning": "yellow"}
_DECISION_WIDTH: Final = len("needs human")


# --- checking -------------------------------------------------------------------------------------


def lint(answer: JsonObject) -> Sequence[RenderableType]:
    """The findings, each with its place; and how many there are."""
    lines = [
        _finding(each["file"], finding) for each in answer["files"] for finding in each["findings"]
    ]
    told = _counted(len(answer["files"]), "policy", "policies")
    if not lines:
        return [
            Text(f"{told}, and nothing to say of {'it' if len(answer['files']) == 1 else 'them'}.")
        ]
    errors = _counted(answer["errors"], "error", "errors")
    warnings = _counted(answer["warnings"], "warning", "warnings")
    return [*lines, Text(f"{told}: {errors}, {warnings}.")]


def _finding(file: str, finding: JsonObject) -> Text:
    place = ":".join(plain(each) for each in (file, finding["line"], finding["column"]) if each)
    severity = finding["severity"]
    return Text.assemble(
        (f"{place} ", "dim"),
        (f"{plain(severity)} ", _SEVERITIES.get(severity, "")),
        plain(finding["message"]),
        (f" [{plain(finding['code'])}]", "dim"),
    )


def cases(answer: JsonObject) -> Sequence[RenderableType]:
    """Each case, and of one that fails what was expected and what came."""
    lines = [line for each in answer["cases"] for line in _case(each)]
    total = answer["passed"] + answer["failed"]
    told = f"{answer['passed']} of {_counted(total, 'case', 'cases')} passed."
    return [*lines, Text(told, "bold red" if answer["failed"] else "green")]


def _case(each: JsonObject) -> Iterator[Text]:
    mark = ("ok    ", "green") if each["passed"] else ("FAILED", "bold red")
    yield Text.assemble(mark, "  ", plain(each["name"]))
    if each["passed"]:
        return
    for mismatch in each["mismatches"]:
        found = plain(mismatch["found"]) or "none"
        what = f"{plain(mismatch['what'])}:"
        yield Text(f"          {what:<9} expected {plain(mismatch['expected'])}, found {found}")
    if each["message"]:
        yield Text(f"          {plain(each['message'])}", "dim")
    yield Text(f"          line {plain(each['line'])}", "dim")


def explanation(answer: JsonObject) -> Sequence[RenderableType]:
    """What each rule found about a call, and which one decides."""
    names = [plain(each["rule"]) for each in answer["findings"]]
    width = max(map(len, names), default=0)
    lines = [
        Text.assemble(
            ("→ " if each["rule"] == answer["rule"] else "  ", "bold"),
            (f"{name:<{width}}  ", "bold red" if each["fired"] else ""),
            plain(each["explanation"]),
        )
        for name, each in zip(names, answer["findings"], strict=True)
    ]
    by = f" by {plain(answer['rule'])}" if answer["rule"] else ""
    told = Text.assemble(_decision(answer["decision"]), f"  {plain(answer['tool'])}{by}")
    message = [Text(plain(answer["message"]))] if answer["message"] else []
    return [*lines, *message, told]


# --- runs -----------------------------------------------------------------------------------------


def run(answer: JsonObject) -> Sequence[RenderableType]:
    """Each call with what became of it, and the verdict in the last line."""
    width = max((len(plain(each["tool"])) for each in answer["calls"]), default=0)
    lines = [line for each in answer["calls"] for line in _call(each, width)]
    word, style = _VERDICTS.get(answer["verdict"], (plain(answer["verdict"]), ""))
    told = plain(answer["reason"]) if answer["reason"] else run_sentence(answer)
    return [_title(answer), *lines, Text.assemble((word, style), f"  {told}")]


def run_sentence(answer: JsonObject) -> str:
    """Say in one sentence how many calls ran, and what became of the others."""
    calls = answer["calls"]
    total = _counted(len(calls), "call", "calls")
    refused = sum(each["outcome"] == "block" for each in calls)
    held = sum(each["outcome"] == "needs_human" for each in calls)
    others = [f"{refused} refused"] if refused else []
    others += [f"{held} held for a person"] if held else []
    return f"{total}: {len(calls) - refused - held} ran{''.join(f', {each}' for each in others)}."


def replay(answer: JsonObject) -> Sequence[RenderableType]:
    """Each call with what became of it, and what becomes of it now."""
    width = max((len(plain(each["tool"])) for each in answer["calls"]), default=0)
    lines = [line for each in answer["calls"] for line in _replayed(each, width)]
    return [_title(answer), *lines, Text(replay_sentence(answer))]


def replay_sentence(answer: JsonObject) -> str:
    """Say in one sentence how many calls are judged otherwise."""
    if not answer["calls"]:
        return "The record has no call: nothing was judged."
    total = _counted(len(answer["calls"]), "call", "calls")
    return f"{total}: {answer['changed']} decided otherwise, {answer['unknown']} not known."


def _title(answer: JsonObject) -> Text:
    return Text.assemble((plain(answer["policy"]), "bold"), f"  {plain(answer['title'])}".rstrip())


def _call(each: JsonObject, width: int) -> Iterator[Text]:
    note = f"approved by {plain(each['approved_by'])}" if each["approved_by"] else ""
    if each["gate"]:
        note = plain(each["rule"] or f"{each['gate']}: {each['code']}")
    yield Text.assemble(
        (f"{each['number']:>3}  ", "dim"),
        f"{plain(each['tool']):<{width}}  ",
        _decision(each["outcome"], padded=bool(note)),
        f"  {note}" if note else "",
    )
    if each["message"]:
        yield Text(f"     {plain(each['message'])}", "dim")


def _replayed(each: JsonObject, width: int) -> Iterator[Text]:
    after = each["after"] or {"decision": None, "rule": None}
    step = [("as before", "dim")]
    if each["is_changed"]:
        rule = f"  {plain(after['rule'])}" if after["rule"] else ""
        step = ["→ ", _decision(after["decision"]), rule]
    yield Text.assemble(
        (f"{each['number']:>3}  ", "dim"),
        f"{plain(each['tool']):<{width}}  ",
        _decision(each["decision"] or each["outcome"], padded=True),
        "  ",
        *step,
    )
    if each["is_changed"] and each["explanation"]:
        yield Text(f"     {plain(each['explanation'])}", "dim")


def _decision(decision: str | None, *, padded: bool = False) -> tuple[str, str]:
    word, style = _DECISIONS.get(decision, (plain(decision), ""))
    return word.ljust(_DECISION_WIDTH) if padded else word, style


# --- presets --------------------------------------------------------------------------------------


def presets(answer: JsonObject) -> Sequence[RenderableType]:
    """The table of `policy presets`."""
    return listing(answer["presets"], {"preset": "Preset", "title": "What it holds an agent to"})


def preset(answer: JsonObject) -> Sequence[RenderableType]:
    """A policy to start from: its text, or where it was written."""
    if not answer["files"]:
        return [Text(answer["policy"].rstrip("\n"))]
    policy, table = map(plain, answer["files"])
    return [
        Text(f"wrote {policy} and {table}"),
        Text(f"  registry policy test {policy} {table}", "dim"),
    ]


def _counted(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"

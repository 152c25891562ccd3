"""A drift in words: what a person reads of a refused import, in `check` and in `diff`.

Plain lines of at most `COLUMNS`, with nothing in them that a terminal would obey. Pure.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import chain, zip_longest
from textwrap import wrap
from typing import Final

from tallystick.canonical import MISSING, Json, Missing, pointer_split
from tallystick.compatibility.changes.change import ChangeKind
from tallystick.compatibility.contracts.comparison import ContractComparison
from tallystick.compatibility.contracts.contract_change import ContractChange, ContractChangeKind
from tallystick.compatibility.contracts.flow import Flow
from tallystick.compatibility.contracts.version_rule import Bump, Finding, FindingCode
from tallystick.compatibility.verdict import Answer, Witness
from tallystick.lockfile.drift import Drift, DriftFinding
from tallystick.lockfile.entry import Level
from tallystick.plain import plain

COLUMNS: Final = 96
"""The most characters of a line, so that it fits into 100 with an indentation."""

_CHANGES_MAX: Final = 12
_REMARKS_MAX: Final = 5
_FAULTS_MAX: Final = 4
_WITNESS_CHARS_MAX: Final = 240
_VALUE_CHARS_MAX: Final = 24
_ROOT: Final = "/"


# --- in one line ----------------------------------------------------------------------------------


def verdict(drift: Drift) -> str:
    """Return what became of a tool, as a clause about it: `breaks callers`."""
    match drift.level:
        case Level.BREAKING:
            return _harm(drift.comparison)
        case Level.TEXT if drift.comparison and drift.comparison.bump is Bump.NONE:
            return "changes its version alone"
        case level:
            return _VERDICTS[level]


_VERDICTS: Final = {
    Level.UNCHANGED: "is unchanged",
    Level.TEXT: "changes in text alone, and breaks nobody",
    Level.COMPATIBLE: "changes, and breaks nobody",
    Level.REVIEW: "changes in what a person has to judge",
    Level.NEW: "is not accepted yet",
    Level.REMOVED: "is no longer declared by the code",
}
_CAN: Final = {Answer.INCOMPATIBLE: "breaks", Answer.UNDECIDED: "may break"}
_WHOM: Final = {Flow.OLD_CALLS: "callers", Flow.NEW_RESULTS: "readers of its results"}


def _harm(comparison: ContractComparison | None) -> str:
    if comparison is None:
        return "may break callers"
    answers = {flow: comparison.flows[flow].declared.verdict for flow in _WHOM}
    harmed = {
        verb: [whom for flow, whom in _WHOM.items() if answers[flow] is answer]
        for answer, verb in _CAN.items()
    }
    harms = [f"{verb} {' and '.join(whom)}" for verb, whom in harmed.items() if whom]
    if any(each.code is FindingCode.EFFECT_CLASS for each in comparison.breaches):
        harms.append("changes its effect class")
    return ", ".join(harms) or "may break callers"


def headline(drift: Drift, lockfile: str = "tallystick.lock") -> str:
    """Return what became of a tool, in one sentence."""
    name, where = plain(drift.name), plain(lockfile)
    match drift.level:
        case Level.UNCHANGED:
            return f"{name} is what {where} accepts."
        case Level.NEW:
            return f"{name} is not in {where} yet."
        case Level.REMOVED:
            return f"{name} is in {where}, and the code no longer declares it."
        case _:
            return f"{name} is not what {where} accepts: it {verdict(drift)}."


def commands(name: str, *, prog: str = "tallystick", options: str = "") -> list[str]:
    """Return the lines that say how to see a drift in full, and how to accept it.

    Args:
        name: The tool's name.
        prog: How the command is called here.
        options: What else it has to be told, with a space before each word.
    """
    return [
        f"See all of it:  {prog} diff {plain(name)}{options}",
        f"Accept it:      {prog} accept {plain(name)}{options}",
    ]


# --- in short -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToldChange:
    """One change in words.

    Args:
        place: Where: `input/query`, without the way inside a schema.
        what: What changed: `renamed to search_query`.
        effect: What it does to those who stay with the accepted contract; may be empty.
    """

    place: str
    what: str
    effect: str


def told_changes(drift: Drift) -> list[ToldChange]:
    """Return the changes between the accepted contract and the code's, the gravest first."""
    comparison = drift.comparison
    if comparison is None:
        return []
    judged = {each.path for each in comparison.review}
    told = [
        ToldChange(place(each.path), _what(each), _effect(each, judged))
        for each in comparison.changes
    ]
    return sorted(told, key=lambda each: _EFFECTS.index(each.effect))


def summary(drift: Drift) -> list[str]:
    """Return the gravest changes, a call that fails now, and the version that they ask for."""
    comparison = drift.comparison
    if comparison is None:
        return []
    told = told_changes(drift)
    lines = _table([(each.place, each.what, each.effect) for each in told[:_CHANGES_MAX]])
    if len(told) > _CHANGES_MAX:
        lines.append(f"... and {len(told) - _CHANGES_MAX} more")
    for flow, introduction in _INTRODUCED.items():
        witness = comparison.flows[flow].declared.witness
        if witness is not None:
            lines += ["", introduction, *_told_witness(drift.name, flow, witness, is_short=True)]
    pressing = [
        each
        for each in comparison.review
        if drift.level is not Level.BREAKING or each.code is FindingCode.UNDECIDED
    ]
    remarks = _remarks((*drift.findings, *pressing), comparison)
    lines += _section(_JUDGE, remarks, limit=_REMARKS_MAX)
    lines += _section(_version(comparison), [])
    return lines if lines[:1] != [""] else lines[1:]


_JUDGE: Final = "For a person to judge:"
_INTRODUCED: Final = {
    Flow.OLD_CALLS: "A call that worked and fails now:",
    Flow.NEW_RESULTS: "A result that may come now, and that old readers refuse:",
}


def place(pointer: str) -> str:
    """Shorten a JSON Pointer into a contract for people: `input/lines/items/price`."""
    tokens = iter(pointer_split(pointer))
    first, *rest = (next(tokens, "") if token == "properties" else token for token in tokens)
    return plain("/".join([_FIELDS.get(first, first), *rest]))


_FIELDS: Final = {"input_schema": "input", "output_schema": "output"}


def _what(change: ContractChange) -> str:
    if change.kind is ChangeKind.RENAMED and isinstance(change.new, str):
        return f"renamed to {plain(change.new)}"
    if change.kind is ChangeKind.MOVED and change.replacement is not None:
        return f"moved to {place(change.replacement)}"
    if change.kind in _WORDS:
        return _WORDS[change.kind]
    words, values = change.kind.value.replace("_", " "), _values(change)
    return f"{words}: {' -> '.join(values)}" if _are_short(change) and values else words


def _values(change: ContractChange) -> list[str]:
    both = (change.old, change.new)
    return [_inline(each) for each in both if not isinstance(each, Missing)]


def _are_short(change: ContractChange) -> bool:
    """Tell whether what changed says its values in one line."""
    is_short = all(len(each) <= _VALUE_CHARS_MAX for each in _values(change))
    return is_short and not change.is_prompt_facing


_WORDS: Final[dict[ChangeKind | ContractChangeKind, str]] = {
    ChangeKind.REQUIRED_ADDED: "required now",
    ChangeKind.REQUIRED_REMOVED: "no longer required",
}


def _inline(value: Json) -> str:
    return plain(json.dumps(value, ensure_ascii=False))


def _effect(change: ContractChange, judged: set[str]) -> str:
    if Flow.OLD_CALLS in change.breaks:
        return _BREAKS_CALLS
    if Flow.NEW_RESULTS in change.breaks:
        return _BREAKS_READERS
    is_judged = (change.replacement or change.path) in judged
    return _TO_JUDGE if is_judged and not change.is_prompt_facing else ""


_BREAKS_CALLS: Final = "breaks old calls"
_BREAKS_READERS: Final = "breaks old readers"
_TO_JUDGE: Final = "to be judged"
_EFFECTS: Final = (_BREAKS_CALLS, _BREAKS_READERS, _TO_JUDGE, "")


def _remarks(
    findings: Iterable[Finding | DriftFinding], comparison: ContractComparison
) -> list[str]:
    """Return what findings say, each sentence once, and of a default what it was and is."""
    whys = {each.path: each.why for each in comparison.changes}
    return list(
        dict.fromkeys(
            whys.get(each.path, each.detail)
            if each.code is FindingCode.DEFAULT_CHANGED
            else each.detail
            for each in findings
        )
    )


def _version(comparison: ContractComparison) -> str:
    old, new = comparison.old.version, comparison.new.version
    if comparison.bump is Bump.NONE or old == new:
        return ""
    return f"A new {comparison.bump.value} version: {old} -> {new}"


# --- in full --------------------------------------------------------------------------------------


def details(drift: Drift, lockfile: str = "tallystick.lock") -> list[str]:
    """Return all that is known of a drift: both directions, every change with its values."""
    comparison, title = drift.comparison, headline(drift, lockfile)
    if comparison is None:
        return [title, *_told_document(drift)]
    lines = [title]
    if comparison.is_equivalent:
        lines.append("They are proven to mean the same.")
    flows = _flows(comparison)
    lines += ["", *_verdicts(comparison, {flow: label for flow, (label, _) in flows.items()})]
    for flow, (_, introduction) in flows.items():
        witness = comparison.flows[flow].declared.witness
        if witness is not None:
            lines += ["", introduction, *_told_witness(drift.name, flow, witness, is_short=False)]
    for change in comparison.changes:
        lines += ["", *_told_change(change)]
    lines += _section(_version(comparison) or "The version:", comparison.rule)
    remarks = _remarks((*drift.findings, *comparison.review), comparison)
    lines += _section(_JUDGE, [each for each in remarks if each not in comparison.rule])
    lines += _section("Surely not meant:", [each.detail for each in comparison.warnings])
    return lines


def _told_document(drift: Drift) -> list[str]:
    """Return the whole contract of a tool that is only in the code, or only in the lockfile."""
    if drift.level is Level.NEW and drift.document is not None:
        return ["", *_differing(MISSING, dict(drift.document))]
    if drift.level is Level.REMOVED and drift.entry is not None:
        return ["", *_differing(dict(drift.entry.document), MISSING)]
    return []


def _flows(comparison: ContractComparison) -> dict[Flow, tuple[str, str]]:
    """Return for each flow how its row is labelled, and how its counter-example is introduced."""
    before, after = str(comparison.old.version), str(comparison.new.version)
    if before == after:
        before, after = f"the accepted {before}", f"the code's {after}"
    return {
        Flow.OLD_CALLS: (
            f"calls for {before}, to {after}",
            f"A call that worked with {before} and fails with {after}:",
        ),
        Flow.NEW_RESULTS: (
            f"results of {after}, to readers of {before}",
            f"A result that {after} may return and readers of {before} refuse:",
        ),
        Flow.NEW_CALLS: (
            f"calls for {after}, to {before} (rollback)",
            f"After a rollback, a call for {after} that {before} refuses:",
        ),
        Flow.OLD_RESULTS: (
            f"results of {before}, to readers of {after} (rollback)",
            f"After a rollback, a result of {before} that readers of {after} refuse:",
        ),
    }


def _verdicts(comparison: ContractComparison, labels: dict[Flow, str]) -> list[str]:
    rows = [("", "declared values", "any values")]
    for flow, label in labels.items():
        passage = comparison.flows[flow]
        declared, strict = passage.declared.verdict, passage.strict
        rows.append((label, declared.value, passage.any.verdict.value))
        if strict is not None and strict.verdict is not declared:
            rows.append(("  who refuse what they do not know", strict.verdict.value, ""))
    return _table(rows, widest=(60, 16, 16))


def _told_change(change: ContractChange) -> Iterator[str]:
    broken = ", ".join(_BROKEN[flow] for flow in Flow if flow in change.breaks)
    breaks = f" (breaks {broken})" if broken else ""
    yield from _wrapped(f"{place(change.path)}: {_what(change)}{breaks}")
    yield from _wrapped(plain(change.why), first="  ")
    if not _are_short(change):
        is_text = change.is_prompt_facing
        differing = _differing(change.old, change.new, is_text=is_text)
        yield from (f"  {line}".rstrip() for line in differing)


_BROKEN: Final = {
    Flow.OLD_CALLS: "old calls",
    Flow.NEW_RESULTS: "old readers",
    Flow.NEW_CALLS: "new calls after a rollback",
    Flow.OLD_RESULTS: "new readers after a rollback",
}


# --- parts ----------------------------------------------------------------------------------------


def _told_witness(name: str, flow: Flow, witness: Witness, *, is_short: bool) -> list[str]:
    """Tell a counter-example as the call or the result that it is, and what is wrong with it."""
    value = _inline(witness.value)
    told = value if flow.is_result else f"{plain(name)} {value}"
    faults = [
        f"{plain(each.pointer) or _ROOT}: {plain(each.message)}" for each in witness.violations
    ]
    if is_short:
        told = told if len(told) <= _WITNESS_CHARS_MAX else f"{told[:_WITNESS_CHARS_MAX]} ..."
        faults = faults[:_FAULTS_MAX]
    return [*chain.from_iterable(_wrapped(each, first="  ") for each in (told, *faults))]


def _section(title: str, sentences: Sequence[str], *, limit: int | None = None) -> list[str]:
    """Return a titled list, and nothing without a title or, unless it is a line alone, items."""
    if not title or (title.endswith(":") and not sentences):
        return []
    lines = ["", title]
    for each in sentences[:limit]:
        lines += _wrapped(plain(each), first="  - ", then="    ")
    if limit is not None and len(sentences) > limit:
        lines.append(f"  ... and {len(sentences) - limit} more")
    return lines


def _table(
    rows: Sequence[tuple[str, str, str]], widest: tuple[int, int, int] = (34, 40, 18)
) -> list[str]:
    """Return rows as lines whose cells stand below each other, long ones on several lines."""
    folded = [
        [
            wrap(cell, limit, break_on_hyphens=False) or [""]
            for cell, limit in zip(row, widest, strict=True)
        ]
        for row in rows
    ]
    widths = [
        max((len(line) for row in folded for line in row[column]), default=0)
        for column in range(len(widest))
    ]
    return [
        "  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip()
        for row in folded
        for line in zip_longest(*row, fillvalue="")
    ]


def _wrapped(text: str, *, first: str = "", then: str | None = None) -> list[str]:
    return wrap(
        text,
        COLUMNS,
        initial_indent=first,
        subsequent_indent=first if then is None else then,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def _differing(old: Json | Missing, new: Json | Missing, *, is_text: bool = False) -> Iterator[str]:
    """Yield the lines of the old value that are gone, as `- ...`, and the new ones, as `+ ...`."""
    before, after = _lines(old, is_text=is_text), _lines(new, is_text=is_text)
    if [*map(str.rstrip, before)] == [*map(str.rstrip, after)]:
        # What differs is not to be seen, such as a space at the end: but it is in JSON.
        before, after = _lines(old), _lines(new)
    if len(before) * len(after) > _COMPARISONS_MAX:
        compared: Iterable[str] = chain(
            (f"-{each}" for each in before), (f"+{each}" for each in after)
        )
    else:
        # Behind the two lines that name files, of which there are none.
        compared = [*unified_diff(before, after, n=_CONTEXT, lineterm="")][2:]
    for index, line in enumerate(compared):
        if not line.startswith("@@"):
            yield from _wrapped(line[1:], first=f"{line[0]} ")
        elif index:
            yield "  ..."


_CONTEXT: Final = 2
_COMPARISONS_MAX: Final = 4_000_000


def _lines(value: Json | Missing, *, is_text: bool = False) -> list[str]:
    """Return a value as the lines in which it is compared: a text by its sentences."""
    if isinstance(value, Missing):
        return []
    if is_text and isinstance(value, str):
        pieces = [piece for line in value.split("\n") for piece in _SENTENCE_END.split(line)]
    else:
        pieces = json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True).split("\n")
    return [plain(each) for each in pieces]


_SENTENCE_END: Final = re.compile(r"(?<=[.!?]) +")

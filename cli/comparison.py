"""What a person sees of a comparison: the verdicts, a call that fails, the changes, what to judge.

Pure, as all views are: from the JSON of the answer to tables and lines.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from cli.connection import JsonObject
from tallystick.plain import plain

_STYLES: Final = {"compatible": "green", "incompatible": "bold red", "undecided": "yellow"}
_ROOT: Final = "/"


def view(answer: JsonObject) -> Sequence[RenderableType]:
    """One comparison, whether of contracts or of bare schemas."""
    return [*(_contracts(answer) if "old_calls" in answer else _schemas(answer))]


# --- contracts ------------------------------------------------------------------------------------


def _contracts(answer: JsonObject) -> Iterator[RenderableType]:
    old, new = answer["old"], answer["new"]
    tool, after = plain(old["name"]), plain(new["version"])
    if new["name"] != old["name"]:
        after = f"{plain(new['name'])}@{after}"
    yield Text.assemble((f"{tool}@{plain(old['version'])} → {after}", "bold"), *_headline(answer))
    if answer["is_equivalent"]:
        yield Text("They are proven to mean the same.")
    flows = _flows(old, new)
    yield _verdicts((label, answer[flow]) for flow, (label, _) in flows.items())
    for flow, (_, told) in flows.items():
        caller = "" if flow.endswith("results") else tool
        yield from _witness(told, answer[flow][_producer(answer)], caller)
    yield from _changes(answer["changes"])
    yield from _section(f"Version: {_bump(answer)}", answer["rule"])
    review = (each["detail"] for each in answer["review"])
    yield from _section(
        "For a person to judge", (detail for detail in review if detail not in answer["rule"])
    )
    yield from _section("Surely not meant", (each["detail"] for each in answer["warnings"]))


def _flows(old: JsonObject, new: JsonObject) -> dict[str, tuple[str, str]]:
    """Return for each flow how its row is labelled, and how its counter-example is introduced."""
    before, after = plain(old["version"]), plain(new["version"])
    return {
        "old_calls": (
            f"calls for {before}, to {after}",
            f"A call that worked with {before} and fails with {after}:",
        ),
        "new_results": (
            f"results of {after}, to readers of {before}",
            f"A result that {after} may return and readers of {before} refuse:",
        ),
        "new_calls": (
            f"calls for {after}, to {before} (rollback)",
            f"After a rollback, a call for {after} that {before} refuses:",
        ),
        "old_results": (
            f"results of {before}, to readers of {after} (rollback)",
            f"After a rollback, a result of {before} that readers of {after} refuse:",
        ),
    }


def _bump(answer: JsonObject) -> str:
    is_firm = any(each["code"] in _FIRM for each in answer["breaches"])
    return "a new major one" if is_firm else _BUMPS.get(answer["bump"], plain(answer["bump"]))


# What no review can keep in one major version.
_FIRM: Final = ("effect_class", "name")
_BUMPS: Final = {
    "none": "no new one is needed",
    "patch": "a new patch",
    "minor": "a new minor one",
    "major": "a new major one, or a review",
}


# --- schemas --------------------------------------------------------------------------------------


def _schemas(answer: JsonObject) -> Iterator[RenderableType]:
    yield Text.assemble(("old schema → new schema", "bold"), *_headline(answer))
    yield _verdicts((label, answer[each]) for each, (label, _) in _DIRECTIONS.items())
    for each, (label, told) in _DIRECTIONS.items():
        judgement = answer[each][_producer(answer)]
        yield from _witness(told, judgement)
        yield from _obstacle(label, judgement)
    yield from _changes(answer["changes"])


_DIRECTIONS: Final = {
    "old_to_new": (
        "old values, to the new schema",
        "A value of the old schema that the new one refuses:",
    ),
    "new_to_old": (
        "new values, to the old schema",
        "A value of the new schema that the old one refuses:",
    ),
}


def _obstacle(label: str, judgement: JsonObject) -> Iterator[Text]:
    obstacle = judgement.get("obstacle")
    if obstacle:
        keyword = f" ({plain(obstacle['keyword'])})" if obstacle["keyword"] else ""
        place = plain(obstacle["path"]) or _ROOT
        yield Text(f"\nNot decided: {label}", "bold")
        yield Text(f"  stopped at {place}{keyword}: {plain(obstacle['reason'])}")


# --- parts ----------------------------------------------------------------------------------------


def _producer(answer: JsonObject) -> str:
    return "any" if answer["producer"] == "any" else "declared"


def _headline(answer: JsonObject) -> tuple[str | Text, ...]:
    return "  ", _verdict(answer), f" for {_producer(answer)} values"


def _verdict(judgement: JsonObject) -> Text:
    return Text(plain(judgement["verdict"]), _STYLES.get(judgement["verdict"], ""))


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _verdicts(rows: Iterable[tuple[str, JsonObject]]) -> Table:
    table = _table("", "declared values", "any values")
    for label, passage in rows:
        table.add_row(Text(f"  {label}"), _verdict(passage["declared"]), _verdict(passage["any"]))
        strict = passage.get("strict")
        if strict and strict["verdict"] != passage["declared"]["verdict"]:
            table.add_row("    who refuse what they do not know", _verdict(strict), "")
    return table


def _witness(told: str, judgement: JsonObject, tool: str = "") -> Iterator[Text]:
    """Tell a counter-example, as the call, the result or the value that it is."""
    witness = judgement.get("witness")
    if not witness:
        return
    value = plain(json.dumps(witness["value"], ensure_ascii=False))
    yield Text(f"\n{told}", "bold")
    yield Text(f"  {tool} {value}" if tool else f"  {value}")
    if tool:
        yield Text(f"  Invalid arguments for {tool}:", "red")
    for each in witness["violations"]:
        yield Text(f"    {plain(each['pointer']) or _ROOT}: {plain(each['message'])}", "red")


def _changes(changes: Sequence[JsonObject]) -> Iterator[RenderableType]:
    if not changes:
        return
    yield Text("\nChanges", "bold")
    table = _table("Where", "What", "Breaks", "Why")
    for each in changes:
        breaks = ", ".join(_BROKEN.get(broken, plain(broken)) for broken in each["breaks"])
        what = plain(each["kind"]).replace("_", " ")
        cells = (_place(plain(each["path"])), what, breaks or "-", plain(each["why"]))
        table.add_row(*map(Text, cells))
    yield table


_BROKEN: Final = {
    "old_calls": "old calls",
    "new_calls": "new calls",
    "old_results": "old results",
    "new_results": "new results",
    "old_to_new": "old values",
    "new_to_old": "new values",
}


def _place(path: str) -> str:
    """Shorten a pointer for people: `input/lines/items/price`, without the way inside a schema."""
    tokens = iter(path.removeprefix("/").split("/"))
    first, *rest = (next(tokens, "") if token == "properties" else token for token in tokens)
    return "/".join([_FIELDS.get(first, f"/{first}"), *rest])


_FIELDS: Final = {"input_schema": "input", "output_schema": "output"}


def _section(title: str, sentences: Iterable[str]) -> Iterator[RenderableType]:
    lines = [*sentences]
    if not lines:
        return
    yield Text(f"\n{title}", "bold")
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    for line in lines:
        table.add_row("  -", Text(plain(line)))
    yield table

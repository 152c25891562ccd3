"""What a person sees of approvals: enough to judge one at a glance. Pure, as all views are."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from cli.connection import JsonObject
from cli.table import new_table
from cli.views import fields, listing, policy_revision
from tallystick.canonical import Json
from tallystick.plain import plain

_STYLES: Final[Mapping[str, str]] = {
    "pending": "yellow",
    "approved": "green",
    "consumed": "green",
    "rejected": "red",
    "expired": "red",
    "stale": "red",
}
_AGAIN: Final[Mapping[str, str]] = {
    "PURE": "it only reads",
    "IDEMPOTENT": "a second call does nothing more",
    "REPLAYABLE": "a second call does no harm",
    "NON_RETRYABLE": "a second call would do it again",
    "UNKNOWN": "nobody knows what a second call would do",
}
"""What an effect class means to whoever has to judge a call."""
_EVENT_COLUMNS: Final = {
    "at": "Time",
    "to_status": "Status",
    "actor": "By",
    "reason": "Why",
}
_ARGUMENTS_CHARS_MAX: Final = 200


def approvals(answer: JsonObject, *, now: datetime) -> Sequence[RenderableType]:
    """The table of `approvals list`: an id fits whole on 80 columns, with the call below it."""
    if not answer["approvals"]:
        return [Text("No approval matches.")]
    table = new_table("Approval", "Status")
    for each in answer["approvals"]:
        lines = (
            Text(plain(each["approval_id"])),
            Text.assemble(_call(each), (plain(f"  asked by {each['requested_by']}"), "dim")),
            Text(_cut(_written(each["arguments"]))),
            Text(plain(each["question"]), "dim"),
        )
        standing = Text.assemble(_status(each), (f"\n{_left(each, now)}", "dim"))
        table.add_row(Text("\n").join(lines), standing)
    more = [Text(f"There are more: --after {plain(answer['next'])}")] if answer["next"] else []
    return [table, *more, Text("Next: `registry approvals show APPROVAL_ID`.", "dim")]


def approval(answer: JsonObject, *, now: datetime) -> Sequence[RenderableType]:
    """One approval: the call, why a person is asked, who asked, what came of it, what to do."""
    parts: list[RenderableType] = [
        Text("  ").join(filter(None, (_call(answer), _status(answer), Text(_left(answer, now))))),
        Text("\nArguments", "bold"),
        arguments(answer["arguments"]),
        Text("\nWhy a person is asked", "bold"),
        *fields(
            {
                "question": answer["question"],
                "rule": answer["rule"] or "the contract itself asks",
                "policy": policy_revision(answer["policy"]),
                "effect class": _effect_class(answer["effect_class"]),
            }
        ),
        Text("\nThe call", "bold"),
        *fields(
            {
                "asked by": answer["requested_by"],
                "asked_at": answer["requested_at"],
                "run": answer["run"],
                "expires_at": answer["expires_at"],
                "decided by": answer["decided_by"],
                "decided_at": answer["decided_at"],
                "reason": answer["reason"],
                "approval": answer["approval_id"],
                "contract": answer["contract_digest"],
                "credential version": answer["credential_version"],
            }
        ),
    ]
    events = listing(answer.get("events"), _EVENT_COLUMNS)
    timeline = [Text("\nTimeline", "bold"), *events] if events else []
    return [*parts, *timeline, Text(f"\n{_next(answer)}")]


def decided(answer: JsonObject, *, now: datetime) -> Sequence[RenderableType]:
    """What a person's word came to, and what happens next."""
    line = Text.assemble(_status(answer), " ", _call(answer))
    left = _left(answer, now)
    return [Text("  ").join((line, Text(left))) if left else line, Text(_next(answer))]


def _next(answer: JsonObject) -> str:
    match answer["status"]:
        case "pending":
            name = plain(answer["approval_id"])
            return (
                f"Next: `registry approvals approve {name}` lets it run once, just so;\n"
                f"`registry approvals reject {name} --reason TEXT` refuses it.\n"
                f"Not by {plain(answer['requested_by'])}, who asked."
            )
        case "approved":
            return (
                "Next: it runs when the worker asks again, with the same run and effect, "
                "unless the contract, the credential or the policy changes before."
            )
        case "consumed":
            name = plain(answer["effect_id"])
            return f"It was used: `registry effects show {name}` says what came of it."
        case _:
            return "Nothing runs on it any more. Where it is still wanted, it is another effect."


def _call(answer: JsonObject) -> Text:
    return Text(plain(f"{answer['tool']}@{answer['version']}"), "bold")


def _status(answer: JsonObject) -> Text:
    return Text(plain(answer["status"]), _STYLES.get(answer["status"], ""))


def _effect_class(name: str) -> str:
    return f"{name}: {meaning(name)}"


def meaning(effect_class: str) -> str:
    """Say what an effect class means to whoever has to decide."""
    return _AGAIN.get(effect_class, "a class that this release does not know")


def _left(answer: JsonObject, now: datetime) -> str:
    """Say in words how long there is left to decide or to use it; nothing where it is over."""
    if answer["status"] not in ("pending", "approved"):
        return ""
    left = datetime.fromisoformat(answer["expires_at"]) - now
    return f"expires in {in_words(left)}" if left > timedelta() else "has run out"


def in_words(left: timedelta) -> str:
    """Write a time in one unit, of which there are two at least: `3 h`, `90 min`, `45 s`."""
    seconds = int(left.total_seconds())
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


# --- arguments ------------------------------------------------------------------------------------


def arguments(arguments: JsonObject) -> Text:
    """Lay out the arguments one a line, as JSON; what was redacted is told without quotes."""
    if not arguments:
        return Text("  none", "dim")
    width = max(len(plain(name)) for name in arguments)
    lines = (
        Text.assemble((f"  {plain(name):<{width}}  ", "dim"), _written(value))
        for name, value in arguments.items()
    )
    return Text("\n").join(lines)


def _written(value: Json) -> str:
    """Write JSON on one line; what was redacted is no JSON, so that no value passes for it."""
    match value:
        case {"x-redacted": True} if len(value) == 1:
            return "[redacted]"
        case dict():
            members = (f"{_written(name)}: {_written(each)}" for name, each in value.items())
            return f"{{{', '.join(members)}}}"
        case list():
            return f"[{', '.join(map(_written, value))}]"
        case _:
            return plain(json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= _ARGUMENTS_CHARS_MAX else f"{text[:_ARGUMENTS_CHARS_MAX]}…"

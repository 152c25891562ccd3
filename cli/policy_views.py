"""What a person sees of policies. Pure, as all views are."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from cli.connection import JsonObject
from cli.views import fields, listing
from tallystick.plain import plain

_COLUMNS: Final = {
    "policy": "Policy",
    "revision": "Revision",
    "assigned_to": "Decides for",
    "published_at": "Published",
    "published_by": "By",
}


def published(answer: JsonObject) -> Sequence[RenderableType]:
    """The revision that a policy came to, what can hardly be meant in it, and whose it is now."""
    line = Text.assemble(
        ("published " if answer["published"] else "already published ", "green"),
        _revision(answer),
        ("  " + plain(answer["digest"]), "dim"),
    )
    given = answer.get("assignment")
    return [line, *_warnings(answer), *(assignment(given) if given else ())]


def _warnings(answer: JsonObject) -> Iterator[Text]:
    for each in answer["warnings"]:
        place = plain(f"{each['line']}:{each['column']} ")
        yield Text.assemble(("  Warning: ", "yellow"), (place, "dim"), plain(each["message"]))


def policies(answer: JsonObject) -> Sequence[RenderableType]:
    """The table of `policy list`."""
    rows = [each | {"assigned_to": _whom(each["assigned_to"])} for each in answer["policies"]]
    return listing(rows, _COLUMNS) or [Text("There is no policy.")]


def policy(answer: JsonObject) -> Sequence[RenderableType]:
    """One revision, how the policy stands, and the text as it was written."""
    newer = answer["current_revision"]
    told = {
        "digest": answer["digest"],
        "published_at": answer["published_at"],
        "published_by": answer["published_by"],
        "decides_for": _whom(answer["assigned_to"]),
        "superseded_by": f"revision {newer}" if newer != answer["revision"] else None,
    }
    # Set in, so that no line of it passes for one of ours.
    lines = [f"  {plain(line)}" for line in answer["text"].rstrip("\n").split("\n")]
    return [Text(_revision(answer), "bold"), *fields(told), Text("\n" + "\n".join(lines))]


def assignment(answer: JsonObject) -> Sequence[RenderableType]:
    """Whose calls a policy decides of from now on."""
    since = "now " if answer["assigned"] else "already "
    whom = _whom([answer["principal"]])
    return [Text(f"{plain(answer['policy'])} {since}decides of the calls of {whom}.")]


def unassignment(answer: JsonObject) -> Sequence[RenderableType]:
    """Whose calls a policy decides of no longer."""
    whom = _whom([answer["principal"]])
    return [Text(f"{plain(answer['policy'])} decides no longer of the calls of {whom}.")]


def _revision(answer: JsonObject) -> str:
    return plain(f"{answer['policy']} revision {answer['revision']}")


def _whom(principals: Sequence[str]) -> str:
    return ", ".join("everybody" if each == "*" else plain(each) for each in principals)

"""What a person sees of the quarantine: enough to decide at three in the morning. Pure."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from cli import views
from cli.approval_views import arguments, in_words, meaning
from cli.connection import JsonObject
from cli.table import new_table
from cli.views import ATTEMPT_COLUMNS, EVENT_COLUMNS, EVIDENCE_COLUMNS, fields, listing
from tallystick.plain import plain

_COMMANDS: Final = {
    "SUCCEEDED": "quarantine resolve {} --to succeeded --reason TEXT --evidence TEXT",
    "FAILED": "quarantine resolve {} --to failed --reason TEXT --evidence TEXT",
    "RETRYABLE": "effects retry {} --reason TEXT",
    "migrate": "quarantine migrate {} --to VERSION --reason TEXT",
    "ABANDONED": "quarantine abandon {} --reason TEXT --evidence TEXT",
}
"""How each choice is made."""
_NO_ATTEMPTS: Final = {
    False: "none: it was never sent",
    True: "not known: it was sent, and the record of that was lost",
}


def effects(answer: JsonObject) -> Sequence[RenderableType]:
    """The table of `quarantine list`: an id fits whole on 80 columns, with the reason below it."""
    if not answer["effects"]:
        return [Text("Nothing is quarantined, or nothing that matches.")]
    table = new_table("Effect", "Why")
    for each in answer["effects"]:
        what = Text.assemble(
            f"{plain(each['effect_id'])}\n",
            (f"{views.tool(each)}  {plain(each['effect_class'])}\n", "dim"),
            (plain(each["reason"]), "dim"),
        )
        why = Text.assemble((plain(each["cause"]), "bold red"), (f"\n{_age(each)}", "dim"))
        if each.get("proposal"):
            why.append("\n1 of 2 agreed", "yellow")
        table.add_row(what, why)
    more = [Text(f"There are more: --after {plain(answer['next'])}")] if answer["next"] else []
    return [table, *more, Text("Next: `registry quarantine show EFFECT_ID`.", "dim")]


def effect(answer: JsonObject) -> Sequence[RenderableType]:
    """One effect: why it is here, what was sent, what is known, and what may be decided."""
    name, is_orphan = answer["effect_class"], answer["cause"] == "orphan"
    parts: list[RenderableType] = [
        Text.assemble((plain(answer["effect_id"]), "bold"), "  ", ("QUARANTINED", "bold red")),
        Text.assemble((plain(answer["cause"]), "bold"), f"  {plain(answer['advice'])}"),
        *fields(
            {
                "why": answer["reason"],
                "since": f"{_age(answer)}, {plain(answer['quarantined_at'])}",
                "tool": views.tool(answer),
                "effect class": f"{name}: {meaning(name)}",
                "run": answer["run"],
                "effect": answer["effect"],
                "planned by": answer["principal"],
                "idempotency key": answer.get("idempotency_key"),
                "attempts": len(answer["attempts"]) or _NO_ATTEMPTS[is_orphan],
            }
        ),
        Text("\nWhat the provider tells of it" if is_orphan else "\nWhat was to be sent", "bold"),
        arguments(answer["arguments"]),
    ]
    for title, rows, columns in (
        ("Attempts", answer["attempts"], ATTEMPT_COLUMNS),
        ("Evidence", answer["evidence"], EVIDENCE_COLUMNS),
        ("Timeline", answer["events"], EVENT_COLUMNS),
    ):
        if rows:
            parts += [Text(f"\n{title}", "bold"), *listing(rows, columns)]
    if answer.get("proposal"):
        parts += [Text("\nProposed", "bold"), *_proposed(answer)]
    return [*parts, Text("\nWhat may be decided", "bold"), *_choices(answer)]


def decided(answer: JsonObject) -> Sequence[RenderableType]:
    """What a person's word came to: the effect as it is now, or that a second one is awaited."""
    if not answer.get("proposal"):
        return views.effect(answer)
    return [Text("Proposed. Nothing has changed yet.", "yellow"), *_proposed(answer)]


def _proposed(answer: JsonObject) -> Sequence[RenderableType]:
    proposal = answer["proposal"]
    how = _command(proposal["to"], answer)
    return [
        *fields({name: proposal[name] for name in ("to", "by", "reason", "evidence", "at")}),
        Text(
            f"It takes a second person, by a token of another principal than"
            f" {plain(proposal['by'])}:\n`registry {how}` agrees,\n"
            f"`registry quarantine withdraw {plain(answer['effect_id'])} --reason TEXT` does not."
        ),
    ]


def _choices(answer: JsonObject) -> Sequence[RenderableType]:
    lines: list[RenderableType] = []
    for each in answer["choices"]:
        people = "  Two people have to agree." if each["people"] > 1 else ""
        head = (plain(each["choice"]), "bold" if each["allowed"] else "dim")
        lines.append(Text.assemble(head, f"  {plain(each['meaning'])}{people}"))
        if each["allowed"]:
            lines.append(Text(f"  registry {_command(each['choice'], answer)}"))
        else:
            lines.append(Text(f"  Not open: {plain(each['why_not'])}", "dim"))
    return lines


def _command(choice: str, answer: JsonObject) -> str:
    """Return how a choice is made; of one that this release does not know, how it is shown."""
    return _COMMANDS.get(choice, "quarantine show {}").format(plain(answer["effect_id"]))


def _age(answer: JsonObject) -> str:
    return f"for {in_words(timedelta(seconds=answer['age_seconds']))}"

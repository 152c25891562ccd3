"""What a person sees of runs: a line for each call. Pure, as all views are."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from cli.connection import JsonObject
from cli.table import new_table
from cli.views import STYLES, fields
from tallystick.plain import plain


def begun(answer: JsonObject) -> Sequence[RenderableType]:
    """On whose behalf a run acts from now on."""
    return [
        Text(plain(answer["run"]), "bold"),
        *fields(
            {
                "run_id": answer["run_id"],
                "acts for": answer["subject"],
                "set_by": answer["set_by"],
                "set_at": answer["set_at"],
            }
        ),
    ]


def trace(answer: JsonObject) -> Sequence[RenderableType]:
    """The trace of a run: a line for each call, under the day it was made."""
    subject = answer["subject"]
    parts: list[RenderableType] = [
        Text(plain(answer["run"]), "bold"),
        *fields({"run_id": answer["run_id"], **({"acts for": subject} if subject else {})}),
    ]
    entries = answer["entries"]
    if not entries:
        return [*parts, Text("Nothing was called.")]
    parts.append(_table(entries))
    if answer["next"]:
        parts.append(Text(f"There are more: --after {plain(answer['next'])}"))
    if not all(map(_is_refusal, entries)):
        name = plain(answer["run"])
        parts.append(Text(f"Effects: `registry effects list --all --run {name}`.", "dim"))
    return parts


def _table(entries: Sequence[JsonObject]) -> Table:
    table = new_table("Time (UTC)", "Call", "Decision", "Came to", "By")
    table.columns[0].no_wrap = True
    day = ""
    for each in entries:
        at = datetime.fromisoformat(each["at"]).astimezone(UTC)
        if day != (day := f"{at:%Y-%m-%d}"):
            table.add_row(Text(day, "dim"))
        tool = plain(f"{each['tool']}@{each['version']}")
        table.add_row(
            f"{at:%H:%M:%S}",
            Text(tool),
            _decision(each),
            _end(each),
            Text(plain(each["principal"])),
        )
    return table


def _decision(entry: JsonObject) -> Text:
    """Say what the gates decided, and what a person did where one was asked."""
    if _is_refusal(entry):
        return Text(f"refused by {plain(entry['gate'])}", "bold red")
    approval = entry["approval"]
    if approval is None:
        return Text(plain(entry["decision"]))
    return Text(plain(f"{entry['decision']}: {_standing(approval)}"), "yellow")


def _standing(approval: JsonObject) -> str:
    status, by = approval["status"], approval["decided_by"]
    if not by:
        return status
    # What became of an approval afterwards is not the word of whoever gave it.
    given = "" if status in ("approved", "rejected") else ", approved"
    return f"{status}{given} by {by}"


def _end(entry: JsonObject) -> Text:
    """Say where a call is, or why it was refused: in truth, and as it was told."""
    if not _is_refusal(entry):
        state, reason = entry["state"], entry["reason"]
        told = f" ({plain(reason)})" if reason else ""
        return Text.assemble((plain(state), STYLES.get(state, "")), (told, "dim"))
    text = Text(plain(entry["true_code"]), "red")
    if entry["code"] != entry["true_code"]:
        text.append(f", told {plain(entry['code'])}")
    if entry["rule"]:
        text.append(plain(f" by {entry['rule']}"), "dim")
    return text


def _is_refusal(entry: JsonObject) -> bool:
    return "gate" in entry

"""What a person sees of each answer: pure functions from the wire's JSON to tables and lines.

Every value comes from somebody else. It is shown as text, never read as markup, and its control
characters are made visible.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import RenderableType
from rich.highlighter import JSONHighlighter
from rich.table import Table
from rich.text import Text

from cli.connection import JsonObject
from cli.hints import HINTS
from cli.table import add_row, cell_text, new_table
from tallystick.plain import plain

STYLES: Final[Mapping[str, str]] = {
    "ACTIVE": "green",
    "SUCCEEDED": "green",
    "DEPRECATED": "yellow",
    "MIGRATING": "yellow",
    "RETIRING": "yellow",
    "UNKNOWN": "yellow",
    "RECONCILING": "yellow",
    "RETRYABLE": "yellow",
    "QUARANTINED": "bold red",
    "FAILED": "red",
    "REFUSED": "red",
    "RETIRED": "dim",
    "CANCELLED": "dim",
    "ABANDONED": "dim",
}


def problem(document: JsonObject) -> Sequence[RenderableType]:
    """The sentence, its code, where it points, what can be done, and what stands in the way."""
    line = Text.assemble(("Error: ", "bold red"), cell_text(document["detail"]))
    line.append(f" [{plain(document['code'])}]", "dim")
    lines = [line]
    if document.get("pointer"):
        lines.append(Text.assemble(("  at   ", "dim"), cell_text(document["pointer"])))
    if document["code"] in HINTS:
        lines.append(Text.assemble(("  hint ", "dim"), HINTS[document["code"]]))
    facts = document["facts"]
    for fault in facts.get("faults", ()):
        place = f"{fault['line']}:{fault['column']} " if fault["line"] else ""
        lines.append(Text.assemble((f"  {plain(place)}", "dim"), plain(fault["message"])))
    for flow, told in _COUNTER_EXAMPLES.items():
        if flow in facts and "witness" in facts[flow]:
            value = json.dumps(facts[flow]["witness"]["value"], ensure_ascii=False)
            lines.append(Text.assemble((f"  {told} ", "dim"), plain(value)))
    blockers = facts.get("blockers")
    return [*lines, _blockers(blockers)] if blockers else lines


# What a refused publication may have as its facts: the calls and results that would fail.
_COUNTER_EXAMPLES: Final = {"old_calls": "such a call:  ", "new_results": "such a result:"}


def references(facts: JsonObject) -> int:
    """How many references keep a version from being retired."""
    return sum(blocker["count"] for blocker in facts["blockers"])


def _blockers(blockers: Sequence[JsonObject]) -> Table:
    table = new_table("What", "Count", "What clears it", "Earliest")
    for blocker in blockers:
        what = " ".join(str(blocker[key]) for key in ("kind", "state") if blocker.get(key))
        add_row(
            table, what, blocker["count"], blocker.get("clears"), _time(blocker.get("earliest"))
        )
    return table


# --- the service ----------------------------------------------------------------------------------


def prepared(answer: JsonObject) -> Sequence[RenderableType]:
    """Where things are after `init`, and what to try next."""
    return [
        Text("Ready.", "green"),
        _fields(answer),
        Text("Next: `registry demo` shows a crash and its recovery; `registry serve` serves."),
    ]


def version(answer: JsonObject) -> Sequence[RenderableType]:
    """The release, in one line."""
    return [cell_text(f"tallystick {answer['version']}")]


def reconciling(answer: JsonObject) -> Sequence[RenderableType]:
    """That the reconciler begins, for it says nothing more."""
    return [cell_text(f"Reconciling until stopped, with the data in {answer['home']}.")]


def nothing(_answer: JsonObject) -> Sequence[RenderableType]:
    """What a person sees of a service that is about to start: it speaks for itself."""
    return []


def fields(answer: JsonObject) -> Sequence[RenderableType]:
    """Every field of a flat answer, one a line."""
    return [_fields({name: _cell(name, value) for name, value in answer.items()})]


# --- contracts ------------------------------------------------------------------------------------


def publications(answer: JsonObject) -> Sequence[RenderableType]:
    """One line for each contract of `publish`, and what the service has to say of it."""
    return [line for each in answer["contracts"] for line in _publication(each)]


def _publication(each: JsonObject) -> Iterator[Text]:
    yield Text.assemble(
        ("published " if each["published"] else "already published ", "green"),
        _name(each),
        ("  " + plain(each["schema_hash"]), "dim"),
    )
    if each.get("equivalent_to"):
        same = ", ".join(map(plain, each["equivalent_to"]))
        yield Text(f"  It is proven to mean the same as {same}.")
    for warning in each.get("warnings", ()):
        yield Text.assemble(("  Warning: ", "yellow"), plain(warning["detail"]))


def listing(rows: Sequence[JsonObject] | None, columns: Mapping[str, str]) -> list[Table]:
    """Lay out rows as a table, or as nothing where there are none."""
    return [_rows(rows, columns)] if rows else []


def contracts(answer: JsonObject) -> Sequence[RenderableType]:
    """The table of `list`."""
    if not answer["contracts"]:
        return [Text("No contract matches.")]
    table = new_table("Contract", "State", "Effect class", "Credential")
    for each in answer["contracts"]:
        short = each["schema_hash"].removeprefix("sha256:")[:16]
        signed = "  signed" if any(one["is_valid"] for one in each.get("signatures", ())) else ""
        shared = f"  shared by {each['owner']}" if each.get("owner") else ""
        name = Text.assemble(_name(each), "\n", (plain(short + signed + shared), "dim"))
        add_row(table, name, _state(_lifecycle(each)), each["effect_class"], _credential(each))
    return [table]


def contract(answer: JsonObject) -> Sequence[RenderableType]:
    """One version, with all that is bound to it, and its document."""
    return [
        Text.assemble((_name(answer), "bold"), "  ", _state(_lifecycle(answer))),
        _fields(
            {
                "effect class": answer["effect_class"],
                "capabilities": ", ".join(answer["capabilities"]),
                "credential": _credential(answer),
                "schema hash": answer["schema_hash"],
                "prompt hash": answer["prompt_hash"],
                "contract digest": answer["contract_digest"],
                "published": f"{_time(answer['published_at'])} by {_publisher(answer)}",
                "closed": _time(answer.get("closed_at")),
            }
        ),
        *listing(answer.get("signatures"), SIGNATURE_COLUMNS),
        _json(answer["document"]),
    ]


SIGNATURE_COLUMNS: Final = {
    "key_id": "Signed with",
    "name": "Name",
    "signed_at": "Signed",
    "revoked_at": "Revoked",
}


def resolution(answer: JsonObject) -> Sequence[RenderableType]:
    """That a tuple resolved, and which parts of it the caller did not give."""
    lines = [
        Text.assemble(("resolved ", "green"), _name(answer["contract"])),
        _fields(
            {
                "capabilities": ", ".join(answer["capabilities"]),
                "lease until": _time(answer["lease_expires_at"]),
            }
        ),
    ]
    if answer["assumed"]:
        taken = ", ".join(answer["assumed"])
        lines.append(Text(f"Not given, so taken from the registry's own reference: {taken}."))
    return lines


# --- effects --------------------------------------------------------------------------------------


def effects(answer: JsonObject) -> Sequence[RenderableType]:
    """The table of `effects list`: two lines an effect, so that an id fits whole on 80 columns."""
    if not answer["effects"]:
        return [Text("No effect matches.")]
    table = new_table("Effect", "State")
    for each in answer["effects"]:
        what = Text.assemble(cell_text(each["effect_id"]), "\n", (tool(each), "dim"))
        if each.get("reason"):
            what.append("\n").append(cell_text(each["reason"]))
        state = Text.assemble(_state(each["state"]), "\n", (_time(each["planned_at"]), "dim"))
        table.add_row(what, state)
    parts: list[RenderableType] = [table]
    if answer["next"]:
        parts.append(Text.assemble("There are more: --after ", cell_text(answer["next"])))
    if any(each["state"] == "QUARANTINED" for each in answer["effects"]):
        parts.append(Text("Next: `registry quarantine list` says what waits for a person.", "dim"))
    return parts


def effect(answer: JsonObject) -> Sequence[RenderableType]:
    """One effect, with everything that happened to it, in the order of time."""
    approval = answer.get("approval")
    parts: list[RenderableType] = [
        Text.assemble((plain(answer["effect_id"]), "bold"), "  ", _state(answer["state"])),
        _fields(
            {
                "tool": tool(answer),
                "effect class": answer["effect_class"],
                "run": answer["run"],
                "effect": answer["effect"],
                "attempt": answer["attempt"],
                "fence": answer["fence"],
                "planned": _time(answer["planned_at"]),
                "due": _time(answer.get("due_at")),
                "reason": answer.get("reason"),
                "policy": policy_revision(answer.get("policy")),
                "approval": approval["status"] if approval else None,
                "takes the place of": answer.get("supersedes"),
                "went on as": answer.get("superseded_by"),
                "arguments": answer["arguments"],
                "idempotency key": answer.get("idempotency_key"),
                **_outcome(answer.get("outcome") or {}),
            }
        ),
    ]
    for title, rows, columns in (
        ("Timeline", answer.get("events"), EVENT_COLUMNS),
        ("Attempts", answer.get("attempts"), ATTEMPT_COLUMNS),
        ("Evidence", answer.get("evidence"), EVIDENCE_COLUMNS),
    ):
        if rows:
            parts += [Text(f"\n{title}", "bold"), _rows(rows, columns)]
    return parts


EVENT_COLUMNS: Final = {
    "at": "Time",
    "transition": "Step",
    "to_state": "State",
    "fence": "Fence",
    "actor": "By",
    "reason": "Why",
}
ATTEMPT_COLUMNS: Final = {
    "attempt": "Attempt",
    "fence": "Fence",
    "dispatched_at": "Dispatched",
    "lease_until": "Lease until",
    "worker_id": "Worker",
}
EVIDENCE_COLUMNS: Final = {
    "observed_at": "Observed",
    "source": "Source",
    "answer": "Answer",
    "provider_reference": "Provider's reference",
    "detail": "Detail",
}


def _outcome(outcome: JsonObject) -> JsonObject:
    return {
        "result": outcome.get("result"),
        "invalid result": outcome.get("invalid_result"),
        "error": outcome.get("error"),
        "provider": outcome.get("provider_reference"),
        "finished": _time(outcome.get("finished_at")),
        "decided by": outcome.get("decided_by"),
    }


# --- credentials, grants, rollouts ----------------------------------------------------------------


def credentials(answer: JsonObject) -> Sequence[RenderableType]:
    """The table of `credentials list`."""
    if not answer["credentials"]:
        return [Text("There is no credential.")]
    columns = {"name": "Credential", "version": "Version", "rotated_at": "Rotated"}
    return [_rows(answer["credentials"], columns | {"revoked_at": "Revoked"})]


def grants(answer: JsonObject) -> Sequence[RenderableType]:
    """The table of `grants list`."""
    if not answer["grants"]:
        return [Text("No grant matches.")]
    columns = {
        "principal": "Principal",
        "capability": "Capability",
        "granted_at": "Granted",
        "granted_by": "By",
    }
    return [_rows(answer["grants"], columns)]


def tokens(answer: JsonObject) -> Sequence[RenderableType]:
    """The table of `tokens list`."""
    table = new_table("Token", "Principal", "Roles", "State", "Expires", "Last used")
    for each in answer["tokens"]:
        shown = plain(f"{each['name']}  {each['prefix']}")
        name = Text.assemble(shown, "\n", (plain(each["token_id"]), "dim"))
        times = (_time(each["expires_at"]), _time(each["last_used_at"]))
        add_row(table, name, each["principal"], ", ".join(each["roles"]), each["state"], *times)
    return [table]


def token(answer: JsonObject) -> Sequence[RenderableType]:
    """What is told of one token; where it was just made also itself, and that this was the once."""
    told = {name: value for name, value in answer.items() if name not in ("roles", "token")}
    lines = fields(told | {"roles": ", ".join(answer["roles"])})
    if "token" not in answer:
        return lines
    warning = Text("Keep it now: it is never shown again, and only its hash is kept.", "yellow")
    return [*lines, Text(plain(answer["token"]), "bold"), warning]


def tenants(answer: JsonObject) -> Sequence[RenderableType]:
    """The table of `tenants list`."""
    return [_rows(answer["tenants"], {"tenant": "Tenant", "created_at": "Made"})]


def lifecycle(answer: JsonObject) -> Sequence[RenderableType]:
    """The state that a version came to."""
    return [Text.assemble(_name(answer), " is ", _state(answer["state"]))]


# --- parts ----------------------------------------------------------------------------------------


def policy_revision(policy: JsonObject | None) -> str | None:
    """Name the revision of a policy that a call was held to, or nothing where none was."""
    return f"{policy['policy']} revision {policy['revision']}" if policy else None


def _rows(rows: Iterable[JsonObject], columns: Mapping[str, str]) -> Table:
    table = new_table()
    for name, title in columns.items():
        whole = _is_time(name) or name.endswith("state")
        table.add_column(title, overflow="fold", no_wrap=whole)
    for row in rows:
        add_row(table, *(_cell(name, row.get(name)) for name in columns))
    return table


def _cell(name: str, value: object) -> object:
    if name.endswith("state"):
        return _state(str(value))
    return _time(value) if _is_time(name) else value


def _is_time(name: str) -> bool:
    return name == "at" or name.endswith(("_at", "_until"))


def _fields(values: JsonObject) -> Text:
    """Lay out one field a line; what is absent is left out."""
    shown = {name: value for name, value in values.items() if value not in (None, "")}
    width = max(map(len, shown), default=0)
    lines = (
        Text.assemble((f"  {name.replace('_', ' '):<{width}}  ", "dim"), cell_text(value))
        for name, value in shown.items()
    )
    return Text("\n").join(lines)


def _json(value: object) -> Text:
    lines = json.dumps(value, indent=2, ensure_ascii=False).split("\n")
    return JSONHighlighter()("\n".join(map(plain, lines)))


def _state(state: str) -> Text:
    return Text(plain(state), STYLES.get(state.partition(" ")[0], ""))


def _time(value: object) -> str:
    """Shorten a time of the wire to whole seconds, in UTC."""
    if value is None:
        return ""
    return f"{datetime.fromisoformat(str(value)).astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"


def _name(answer: JsonObject) -> str:
    return plain(f"{answer['name']}@{answer['version']}")


def tool(effect: JsonObject) -> str:
    """Name the version that an effect is recorded with."""
    return plain(f"{effect['tool']}@{effect['version']}")


def _publisher(contract: JsonObject) -> str:
    """Name who published a version: a person, or the tenant that shares it."""
    owner = contract.get("owner")
    return contract["published_by"] if owner is None else f"{owner}, which shares it"


def _lifecycle(contract: JsonObject) -> str:
    return f"{contract['state']} (suspended)" if contract.get("suspended") else contract["state"]


def _credential(contract: JsonObject) -> str:
    """Name the slot and the bound version, and what is in force where that is another."""
    if contract.get("credential") is None:
        return ""
    bound = contract["credential_version"]
    current = contract.get("credential_current", bound)
    if bound == 0:
        return f"{contract['credential']} (attest)"
    changed = "" if current == bound else f" (rotated to {current}: attest)"
    return f"{contract['credential']} v{bound}{' (revoked)' if current is None else changed}"

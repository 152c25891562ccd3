"""Takes over what a project accepted with toolpact, another lockfile for the schemas of tools.

Its file, `toolpact.lock`, is JSON: `{"_toolpact": "1", "functions": {NAME: {"accepted_at", "hash",
"schema": {"name", "description", "parameters"}}}}`. Its parameters are a JSON Schema that says
nothing of undeclared properties, of defaults that are None, or of any type beyond the simplest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from tallystick.canonical import Json, MalformedJson, parse_json
from tallystick.errors import InvalidContract, LockfileInvalid, TooLarge
from tallystick.lockfile.drift import FIRST_VERSION
from tallystick.lockfile.entry import Entry

if TYPE_CHECKING:
    from tallystick.tool_contract import Contract

_FORMAT: Final = "1"


@dataclass(frozen=True, slots=True)
class ToolpactEntry:
    """One function that toolpact has accepted.

    Args:
        name: The function's bare name.
        schema: What it holds of it: `name`, `description`, and `parameters`, a JSON Schema.
        accepted_at: When, as `2026-11-30T10:00:00Z`.
    """

    name: str
    schema: Mapping[str, Json]
    accepted_at: str

    @property
    def parameters(self) -> dict[str, Json]:
        """The JSON Schema of the arguments."""
        return cast("dict[str, Json]", self.schema["parameters"])


def read_toolpact(text: str, *, name: str = "toolpact.lock") -> dict[str, ToolpactEntry]:
    """Read a lockfile of toolpact, by the functions' names. Changes that await acceptance are left.

    Args:
        text: The file's content.
        name: The file, as messages call it.

    Raises:
        LockfileInvalid: It is none.
    """
    try:
        value = parse_json(text)
    except MalformedJson as error:
        raise LockfileInvalid(f"{name} is not strict JSON: {error}") from None
    match value:
        case {"_toolpact": "1", "functions": dict(functions)}:
            return {each: _entry(each, found, name) for each, found in functions.items()}
        case {"_toolpact": other} if other != _FORMAT:
            raise LockfileInvalid(f"{name} has a format of toolpact that is not known here")
        case _:
            raise LockfileInvalid(f"{name} is no lockfile of toolpact")


def adopt(
    entry: ToolpactEntry, document: Mapping[str, Json], *, source: str | None = None
) -> Entry:
    """Return the accepted contract that a function's acceptance by toolpact amounts to.

    If the code still takes what toolpact accepted, it is the code's own contract. Otherwise it is
    the code's with the parameters as toolpact has them, so that the next check shows what differs.

    Args:
        entry: What toolpact accepted.
        document: The code's contract document, with or without a version.
        source: The code, as `module:qualname`.

    Raises:
        InvalidContract: The code's document breaks a rule of contracts.
        TooLarge: The code's document exceeds a limit of contracts.
        LockfileInvalid: Toolpact's parameters are no JSON Schema that a contract can hold.
    """
    from tallystick.tool_contract import Contract

    code = Contract.parse({"version": FIRST_VERSION, **document})
    try:
        accepted = Contract.parse(_with_parameters(code, entry))
    except (InvalidContract, TooLarge) as error:
        raise LockfileInvalid(f"toolpact's schema of {entry.name}: {error.detail}") from None
    kept = code if _takes_the_same(accepted, code) else accepted
    return Entry(kept.document, entry.accepted_at, source)


def _entry(name: str, value: Json, file: str) -> ToolpactEntry:
    match value:
        case {
            "accepted_at": str(accepted_at),
            "schema": {"parameters": {"properties": dict(properties)}} as schema,
        } if all(isinstance(each, dict) for each in properties.values()):
            return ToolpactEntry(name, cast("dict[str, Json]", schema), _utc(accepted_at, file))
        case _:
            raise LockfileInvalid(f"{file} is no lockfile of toolpact: see {name}")


def _utc(text: str, file: str) -> str:
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise LockfileInvalid(f"{file} holds a time that is none: {text}") from None
    known = read if read.tzinfo else read.replace(tzinfo=UTC)
    return known.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _with_parameters(code: "Contract", entry: ToolpactEntry) -> dict[str, Json]:
    """Return the code's document with toolpact's parameters, where those say something."""
    ours: dict[str, Any] = code.input_schema
    declared: dict[str, Any] = ours.get("properties", {})
    properties = {
        name: _with_silent_default(cast("dict[str, Json]", schema), declared.get(name))
        for name, schema in cast("dict[str, Json]", entry.parameters["properties"]).items()
    }
    unsaid = {key: ours[key] for key in ("additionalProperties",) if key in ours}
    schema: dict[str, Json] = {**unsaid, **entry.parameters, "properties": {**properties}}
    document: dict[str, Json] = {**code.document, "input_schema": schema}
    if not {*(code.identity_fields or ())} <= properties.keys():
        del document["identity_fields"]
    return document


def _with_silent_default(schema: dict[str, Json], ours: object) -> dict[str, Json]:
    """Put in the default None, which toolpact leaves out."""
    match ours:
        case {"default": None} if "default" not in schema:
            return {**schema, "default": None}
        case _:
            return schema


def _takes_the_same(accepted: "Contract", code: "Contract") -> bool:
    from tallystick.compatibility.contracts.comparison import compare_contracts
    from tallystick.compatibility.contracts.flow import Flow
    from tallystick.compatibility.contracts.version_rule import CHANGED_DEFAULTS
    from tallystick.compatibility.verdict import Answer

    found = compare_contracts(accepted, code)
    return not any(change.kind in CHANGED_DEFAULTS for change in found.changes) and all(
        found.flows[flow].declared.verdict is Answer.COMPATIBLE
        for flow in (Flow.OLD_CALLS, Flow.NEW_CALLS)
    )

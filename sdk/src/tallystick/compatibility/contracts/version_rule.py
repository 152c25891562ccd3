"""The version rule: which part of the version has to rise for what changed, and why.

A minor version promises that whoever stays with the old one goes on unharmed. It needs a proof;
"undecided" is never a yes.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from tallystick.canonical import Json, digest, pointer_join, pointer_split, resolve_pointer
from tallystick.compatibility.changes.change import ChangeKind
from tallystick.compatibility.contracts.contract_change import ContractChange, ContractChangeKind
from tallystick.compatibility.contracts.flow import Flow, Passage
from tallystick.compatibility.verdict import Answer
from tallystick.identifiers import Returned
from tallystick.tool_contract import Contract


class Bump(StrEnum):
    """The part of the version that has to rise."""

    NONE = "none"
    PATCH = "patch"
    MINOR = "minor"
    MAJOR = "major"


class FindingCode(StrEnum):
    """What a finding is about, for programs."""

    ACCEPTS_NOTHING = "accepts_nothing"
    APPROVAL_CHANGED = "approval_changed"
    CHECKS_CHANGED = "checks_changed"
    CREDENTIAL_CHANGED = "credential_changed"
    DEFAULT_ADDED = "default_added"
    DEFAULT_CHANGED = "default_changed"
    EFFECT_CLASS = "effect_class"
    ERROR_MEANINGS = "error_meanings"
    IDEMPOTENCY_CHANGED = "idempotency_changed"
    IDENTITY_CHANGED = "identity_changed"
    LESS_CHECKED = "less_checked"
    MEANING_CHANGED = "meaning_changed"
    NAME = "name"
    NEW_RESULTS = "new_results"
    OLD_CALLS = "old_calls"
    PARAMETER_RENAMED = "parameter_renamed"
    PROMPT_TEXT_CHANGED = "prompt_text_changed"
    REQUIRES_UNDECLARED = "requires_undeclared"
    RETURNS_NOTHING = "returns_nothing"
    STRICT_READERS = "strict_readers"
    UNDECIDED = "undecided"
    UNDECLARED_VALUES = "undeclared_values"
    WIDER_CAPABILITIES = "wider_capabilities"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a person should know.

    Args:
        code: What it is about.
        detail: One sentence.
        path: Where, a JSON Pointer into the contract; empty where it is the whole.
    """

    code: FindingCode
    detail: str
    path: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return the finding as a JSON object."""
        return {"code": self.code.value, "path": self.path, "detail": self.detail}


CHANGED_DEFAULTS: Final = frozenset(
    {ChangeKind.DEFAULT_ADDED, ChangeKind.DEFAULT_REMOVED, ChangeKind.DEFAULT_CHANGED}
)
CHANGED_ERRORS: Final = frozenset(
    {
        ContractChangeKind.ERROR_ADDED,
        ContractChangeKind.ERROR_REMOVED,
        ContractChangeKind.ERROR_CHANGED,
    }
)


def breaches(
    old: Contract,
    new: Contract,
    flows: Mapping[Flow, Passage],
    changes: tuple[ContractChange, ...],
    idle: Collection[Flow],
) -> Iterator[Finding]:
    """Yield each reason why a minor version is not enough, unless a review says that it is.

    Args:
        old: The lower version.
        new: The higher version.
        flows: What passes between them.
        changes: What changed.
        idle: What of the old calls and the new results requires what it does not declare.
    """
    if old.name != new.name:
        yield Finding(FindingCode.NAME, f"{new.name} is another tool than {old.name}.", "/name")
    if old.effect_class is not new.effect_class:
        yield Finding(
            FindingCode.EFFECT_CLASS,
            f"The effect class changes from {old.effect_class} to {new.effect_class},"
            " which no review can keep in one major version.",
            "/effect_class",
        )
    yield from _unproven(old, new, flows)
    for flow, version, field in (
        (Flow.OLD_CALLS, old.version, "/input_schema"),
        (Flow.NEW_RESULTS, new.version, "/output_schema"),
    ):
        if flow in idle:
            detail = f"{version} requires what it does not declare, so that the proof says nothing."
            yield Finding(FindingCode.REQUIRES_UNDECLARED, detail, field)
    yield from _of_changes(old, changes)
    for path in _unchecked(old, new):
        detail = f"{new.version} no longer checks the identifier as {old.version} does."
        yield Finding(FindingCode.LESS_CHECKED, detail, path)


def _unproven(old: Contract, new: Contract, flows: Mapping[Flow, Passage]) -> Iterator[Finding]:
    calls = flows[Flow.OLD_CALLS].declared.verdict
    if calls is Answer.INCOMPATIBLE:
        detail = f"{new.version} refuses a call that {old.version} allows."
    else:
        detail = (
            f"It is not decided whether {new.version} allows every call that {old.version} allows."
        )
    if calls is not Answer.COMPATIBLE:
        yield Finding(FindingCode.OLD_CALLS, detail, "/input_schema")
    results = flows[Flow.NEW_RESULTS].declared.verdict
    if results is Answer.INCOMPATIBLE:
        detail = f"{new.version} may return a result that readers of {old.version} do not expect."
    else:
        detail = (
            f"It is not decided whether readers of {old.version} expect every result of"
            f" {new.version}."
        )
    if results is not Answer.COMPATIBLE:
        yield Finding(FindingCode.NEW_RESULTS, detail, "/output_schema")


def _of_changes(old: Contract, changes: tuple[ContractChange, ...]) -> Iterator[Finding]:
    wider = [str(each.new) for each in changes if each.kind is ContractChangeKind.CAPABILITY_ADDED]
    if wider:
        detail = f"A call may touch more: {', '.join(wider)}."
        yield Finding(FindingCode.WIDER_CAPABILITIES, detail, "/capabilities")
    for each in changes:
        if each.kind in CHANGED_DEFAULTS and not _was_always_given(old, each):
            detail = f"The default of {each.path} changes, and with it what a call may do."
            yield Finding(FindingCode.DEFAULT_CHANGED, detail, each.path)
    meanings = [each.why for each in changes if each.kind in CHANGED_ERRORS]
    if meanings:
        detail = f"Errors change their meaning: {'; '.join(meanings)}."
        yield Finding(FindingCode.ERROR_MEANINGS, detail, "/errors")


def _unchecked(old: Contract, new: Contract) -> Iterator[str]:
    """Yield where the old contract checks an identifier, and the new one does it less or not."""
    owned = {replace(each, kind="") for each in new.ownership}
    for index, owner in enumerate(old.ownership):
        if replace(owner, kind="") not in owned:
            yield pointer_join("ownership", index)
    for index, source in enumerate(old.returned):
        if not any(_is_as_strict(each, source) for each in new.returned):
            yield pointer_join("returned", index)


def _is_as_strict(new: Returned, old: Returned) -> bool:
    counts = old.tools is None or (new.tools is not None and new.tools <= old.tools)
    return new.argument == old.argument and counts


def _was_always_given(old: Contract, change: ContractChange) -> bool:
    """Tell of a new default whether no old call could be without the property that it stands for.

    Then it changes what no call does. Only a property that stood at the same place is looked for.
    """
    *parent, keyword, name, _ = ["", "", *pointer_split(change.path)]
    if change.kind is not ChangeKind.DEFAULT_ADDED or keyword != "properties":
        return False
    schema = resolve_pointer(dict(old.document), pointer_join(*parent[2:]))
    required = schema.get("required") if isinstance(schema, dict) else None
    return isinstance(required, list) and name in required


def bump(old: Contract, new: Contract, found: tuple[Finding, ...]) -> tuple[Bump, tuple[str, ...]]:
    """Return the part of the version that has to rise from `old` to `new`, and why.

    Args:
        old: The lower version.
        new: The higher version.
        found: The `breaches`.
    """
    if _without_version(old) == _without_version(new):
        return Bump.NONE, ("Nothing but the version differs.",)
    if found:
        return Bump.MAJOR, tuple(each.detail for each in found)
    if _structure(old) == _structure(new):
        return Bump.PATCH, ("Only text for the model and operational fields differ.",)
    detail = "Old calls and new results are proven compatible; effect class, defaults and error"
    return Bump.MINOR, (f"{detail} meanings stay, and no capability is added.",)


def _without_version(contract: Contract) -> str:
    return digest({key: value for key, value in contract.document.items() if key != "version"})


def _structure(contract: Contract) -> tuple[object, ...]:
    """Return what a runtime pins or is held to, beyond effect class and errors."""
    reading = (contract.dialect, contract.assert_format)
    return contract.schema_hash, contract.capabilities, *reading

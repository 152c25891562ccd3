"""What lies between the contract that a lockfile accepts and the one that the code has.

Pure. A tool that is as it was accepted costs no more than a walk through both documents; the engine
that compares contracts is loaded for the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, cast

from tallystick.canonical import Json
from tallystick.lockfile.entry import Entry, Level

if TYPE_CHECKING:
    from tallystick.compatibility.contracts.comparison import ContractComparison
    from tallystick.compatibility.contracts.flow import Flow, Passage
    from tallystick.compatibility.contracts.version_rule import Bump
    from tallystick.tool_contract import Contract, Version

FIRST_VERSION: Final = "1.0.0"


class DriftCode(StrEnum):
    """What a finding is about, for programs."""

    VERSION_TOO_LOW = "version_too_low"
    """The version that the code states does not rise as the change asks for."""


@dataclass(frozen=True, slots=True)
class DriftFinding:
    """One thing that a person should know, beside what the comparison says.

    Args:
        code: What it is about.
        detail: One sentence.
        path: Where, a JSON Pointer into the contract.
    """

    code: DriftCode
    detail: str
    path: str

    def to_json(self) -> dict[str, Json]:
        """Return the finding as a JSON object."""
        return {"code": self.code.value, "path": self.path, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class Drift:
    """What lies between an entry and the code.

    Args:
        name: The tool's name.
        level: How grave it is.
        entry: What is accepted; None if nothing is.
        document: The code's contract, with the version that it gets on acceptance; None if the code
            has no such tool.
        comparison: From what is accepted to the code's; None if nothing differs, or one is missing.
        findings: What a person should know beside it.
    """

    name: str
    level: Level
    entry: Entry | None
    document: dict[str, Json] | None
    comparison: "ContractComparison | None" = None
    findings: tuple[DriftFinding, ...] = ()


def drift_of(name: str, entry: Entry | None, document: Mapping[str, Json] | None) -> Drift:
    """Tell what lies between an accepted contract and the code's.

    Args:
        name: The tool's name.
        entry: What is accepted, if anything is.
        document: The code's contract document, if the code has the tool. Without a version, it gets
            the one that the change asks for.

    Raises:
        InvalidContract: The code's document breaks a rule of contracts.
        TooLarge: The code's document exceeds a limit of contracts.
        LockfileInvalid: The entry holds no valid contract.
    """
    if document is None:
        return Drift(name, Level.REMOVED, entry, None)
    stated = _stated_version(document)
    if entry is None:
        return Drift(name, Level.NEW, None, {**document, "version": stated or FIRST_VERSION})
    if stated in (None, entry.version) and _is_same(
        {**document, "version": entry.version}, {**entry.document}
    ):
        return Drift(name, Level.UNCHANGED, entry, dict(entry.document))
    return _compared(name, entry, document, stated)


def _stated_version(document: Mapping[str, Json]) -> str | None:
    """Return the version that the code states, in three parts."""
    stated = cast("str | None", document.get("version"))
    return f"{stated}.0" if stated is not None and stated.count(".") == 1 else stated


def _is_same(one: Json, other: Json) -> bool:
    """Tell whether two values are the same JSON, where Python takes 0, 0.0 and False for equal."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            _is_same(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return type(one) is type(other) and one == other


def _compared(name: str, entry: Entry, document: Mapping[str, Json], stated: str | None) -> Drift:
    from tallystick.compatibility.contracts.version_rule import Bump
    from tallystick.lockfile.levels import level_of
    from tallystick.tool_contract import Contract, Version

    old = _accepted(entry)
    first_guess = stated or str(_raised(old.version, Bump.MAJOR))
    comparison = _comparison(old, Contract.parse({**document, "version": first_guess}))
    needed = _raised(old.version, comparison.bump)
    if stated is None and str(needed) != first_guess:
        # The sentences of a comparison name the versions, so that it has to know the right one.
        new = Contract.parse({**document, "version": str(needed)})
        comparison = _comparison(old, new, comparison.flows)
    findings = ()
    if stated is not None and Version.parse(stated) < needed:
        detail = f"The code states version {stated}; this change asks for {needed} or higher."
        findings = (DriftFinding(DriftCode.VERSION_TOO_LOW, detail, "/version"),)
    accepted = dict(comparison.new.document)
    return Drift(name, level_of(comparison), entry, accepted, comparison, findings)


def _comparison(
    old: "Contract", new: "Contract", flows: "Mapping[Flow, Passage] | None" = None
) -> "ContractComparison":
    """Compare two contracts as code keeps them: a UUID or a date is refused in any other form.

    A contract that says what `format` means to it is taken at its word. What passes between them
    takes longest to find out, and is given if it is known.
    """
    from tallystick.compatibility.contracts.comparison import compare_contracts
    from tallystick.tool_contract import Contract

    if any("assert_format" in each.document for each in (old, new)):
        return compare_contracts(old, new, flows=flows)
    kept = (Contract.parse({**each.document, "assert_format": True}) for each in (old, new))
    return replace(compare_contracts(*kept, flows=flows), old=old, new=new)


def _accepted(entry: Entry) -> "Contract":
    from tallystick.errors import InvalidContract, LockfileInvalid, TooLarge

    try:
        return entry.contract
    except (InvalidContract, TooLarge) as error:
        raise LockfileInvalid(
            f"the lockfile's contract of {entry.name} is not valid"
            f" ({error.detail.removesuffix('.')}): restore the file from version control",
            facts={"tool": entry.name},
        ) from None


def _raised(version: "Version", bump: "Bump") -> "Version":
    from tallystick.compatibility.contracts.version_rule import Bump
    from tallystick.tool_contract import Version

    match bump:
        case Bump.MAJOR:
            return Version(version.major + 1, 0, 0)
        case Bump.MINOR:
            return Version(version.major, version.minor + 1, 0)
        case Bump.PATCH:
            return Version(version.major, version.minor, version.patch + 1)
        case Bump.NONE:
            return version

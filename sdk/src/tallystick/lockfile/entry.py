"""What a lockfile holds, as values: one accepted contract for each tool.

Light on purpose: every import of a declared tool loads it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final, cast

from tallystick.canonical import Json

if TYPE_CHECKING:
    from tallystick.tool_contract import Contract


class Level(StrEnum):
    """What lies between an accepted contract and the code's, the gravest last but two."""

    UNCHANGED = "unchanged"
    TEXT = "text"
    """Only what people and models read, or only the number of the version."""
    COMPATIBLE = "compatible"
    """Old calls and readers go on as before."""
    REVIEW = "review"
    """No call and no reader fails, but a call may do something else."""
    BREAKING = "breaking"
    """An old call or a reader fails, or nobody can prove that none does."""
    NEW = "new"
    """The code has the tool, the lockfile does not."""
    REMOVED = "removed"
    """The lockfile has the tool, the code does not."""


@dataclass(frozen=True, slots=True)
class Hashes:
    """The digests of one contract, each `sha256:` and 64 hexadecimal digits."""

    contract_digest: str
    prompt_hash: str
    schema_hash: str

    @classmethod
    def of(cls, contract: "Contract") -> "Hashes":
        """Return the digests that a contract has."""
        return cls(contract.contract_digest, contract.prompt_hash, contract.schema_hash)


@dataclass(frozen=True, eq=False)
class Entry:
    """One tool's accepted contract.

    Args:
        document: The contract document, with its version.
        accepted_at: When, as `2026-11-30T10:00:00Z`.
        source: The code that it was made of, as `module:qualname`; None if it came from elsewhere.
        stated_hashes: What the file says of the document; None for what was accepted just now.
    """

    document: Mapping[str, Json]
    accepted_at: str
    source: str | None = None
    stated_hashes: Hashes | None = None

    @property
    def name(self) -> str:
        """The tool's name, as the contract has it."""
        return cast("str", self.document["name"])

    @property
    def version(self) -> str:
        """The accepted version, as the contract has it."""
        return cast("str", self.document["version"])

    @cached_property
    def contract(self) -> "Contract":
        """The contract itself, read at the first use.

        Raises:
            InvalidContract: The document breaks a rule of contracts.
            TooLarge: It exceeds a limit of contracts.
        """
        from tallystick.tool_contract import Contract

        return Contract.parse(dict(self.document))

    @cached_property
    def hashes(self) -> Hashes:
        """What the file says of the document, or else the digests that it has."""
        return self.stated_hashes or Hashes.of(self.contract)


@dataclass(frozen=True, eq=False)
class Lock:
    """All entries of a lockfile, by the tool's name."""

    entries: Mapping[str, Entry] = field(default_factory=dict[str, Entry])

    def with_entry(self, entry: Entry) -> "Lock":
        """Return the lock with one entry added, or put in the place of an older one."""
        return Lock({**self.entries, entry.name: entry})

    def without(self, name: str) -> "Lock":
        """Return the lock without a tool's entry, whether it had one or not."""
        return Lock({each: entry for each, entry in self.entries.items() if each != name})


EMPTY: Final = Lock()

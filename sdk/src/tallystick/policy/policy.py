"""A policy: what an agent's calls are held to, beside their contracts.

Read once, from YAML as `docs/policy.md` has it; then frozen, with everything in place that a
decision needs. Pure, but for `Policy.load`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path as File
from typing import TypeVar

from tallystick.canonical import Json, digest
from tallystick.policy.fault import Fault, invalid
from tallystick.policy.reading import POLICY_BYTES_MAX, Reading, read_document, read_text
from tallystick.policy.terms import Fact, Risk, Rule

_Part = TypeVar("_Part", Rule, Fact)


@dataclass(frozen=True, eq=False)
class Policy(Reading):
    """One policy. Built by `parse`, `load` or `of`, which refuse a wrong document.

    Equal documents make equal policies.
    """

    @classmethod
    def parse(cls, text: str) -> "Policy":
        """Read a policy from YAML, of which JSON is a part.

        Raises:
            InvalidPolicy: It breaks rules of the language; `facts["faults"]` has every one, with
                its line and column.
            TooLarge: It is longer than `POLICY_BYTES_MAX` bytes.
        """
        return cls(**vars(read_text(text)))

    @classmethod
    def of(cls, document: Json) -> "Policy":
        """Read a policy from a JSON value; faults then have no line.

        Raises:
            InvalidPolicy: As `parse`.
            TooLarge: As `parse`, of its canonical form.
        """
        return cls(**vars(read_document(document)))

    @classmethod
    def load(cls, path: str | File) -> "Policy":
        """Read a policy file, YAML or JSON.

        Raises:
            InvalidPolicy: As `parse`, and if it is not UTF-8.
            TooLarge: As `parse`.
            OSError: The file cannot be read.
        """
        with File(path).open("rb") as file:
            # One byte more than allowed is enough to know, however large the file is.
            content = file.read(POLICY_BYTES_MAX + 1)
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise invalid([Fault(f"byte {error.start} is not UTF-8")]) from None
        return cls.parse(text)

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Policy) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the document's canonical form."""
        return digest(dict(self.document))

    def risk_of(self, tool: str) -> Risk | None:
        """Return the risk of a tool's calls; None if the policy does not declare it."""
        return self.tools.get(tool)

    def counted_risk_of(self, tool: str) -> Risk:
        """Return the risk that budgets count a call at: of what nobody declared, the highest."""
        return self.tools.get(tool, Risk.HIGH_RISK)

    def rules_of(self, tool: str) -> tuple[Rule, ...]:
        """Return the rules about a tool's calls, in order."""
        return self._rules_by_tool.get(tool, ())

    def facts_of(self, tool: str) -> tuple[Fact, ...]:
        """Return the facts that a tool's results have."""
        return self._facts_by_tool.get(tool, ())

    @cached_property
    def _rules_by_tool(self) -> dict[str, tuple[Rule, ...]]:
        return _by_tool(self.rules)

    @cached_property
    def _facts_by_tool(self) -> dict[str, tuple[Fact, ...]]:
        return _by_tool(self.facts)


def _by_tool(parts: Iterable[_Part]) -> dict[str, tuple[_Part, ...]]:
    """Return the parts of a policy that are about each tool, in order."""
    found: dict[str, list[_Part]] = {}
    for part in parts:
        for tool in dict.fromkeys(part.tools):
            found.setdefault(tool, []).append(part)
    return {tool: tuple(each) for tool, each in found.items()}

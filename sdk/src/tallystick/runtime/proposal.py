"""What people are asked about: calls that wait for their word."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from tallystick.canonical import Json, canonical_bytes
from tallystick.tool_contract import Contract


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that runs if a person lets it.

    Args:
        tool: The tool.
        arguments: Its arguments, without what the contract marks as sensitive.
        fingerprint: What the word is bound to: this tool, contract and arguments, in this process.
        rule: The rule of the policy that asks, or None where the contract does.
        reason: The sentence that says why.
        policy: The policy's id; empty without one.
    """

    tool: str
    arguments: Json
    fingerprint: str
    rule: str | None
    reason: str
    policy: str


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's word.

    Args:
        approved: Whether the call may run.
        by: Who says so.
        reason: Why.
    """

    approved: bool
    by: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A write that passed the gates as a proposal, and has not run.

    Args:
        number: Its place among the run's proposals, from 1.
        tool: The tool.
        arguments: Its arguments, whole.
        fingerprint: As an `ApprovalRequest` has it.
        rule: The rule of the policy that asks for a person, if one does.
        reason: The sentence that says why; empty if no rule asks.
    """

    number: int
    tool: str
    arguments: Mapping[str, Json] = field(repr=False)
    fingerprint: str
    rule: str | None
    reason: str


def fingerprint(contract: Contract, arguments: Mapping[str, Json], key: bytes) -> str:
    """Return what tells a call from all others: HMAC-SHA-256 over its canonical form.

    Keyed, since arguments may hold what nobody should find by trying.
    """
    call: Json = {"contract": contract.contract_digest, "arguments": dict(arguments)}
    return f"hmac-sha256:{hmac.new(key, canonical_bytes(call), hashlib.sha256).hexdigest()}"

"""What a gate answers that says no: what the model is told, and what the trace is told."""

from dataclasses import dataclass
from enum import StrEnum

from tallystick.errors import Outage, Refusal, ToolFailed


class Gate(StrEnum):
    """The gates, in the order in which every call passes them."""

    CONTRACT = "contract"
    ARGUMENTS = "arguments"
    PERMISSION = "permission"
    POLICY = "policy"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Denial:
    """A call that a gate refused.

    Args:
        gate: Which one.
        refusal: What the caller is told, and the model.
        true_code: What it really was, for the trace alone: `not_owner` where `not_found` is told.
        rule: The rule of the policy that decided, if one did.
    """

    gate: Gate
    refusal: Refusal | Outage | ToolFailed
    true_code: str
    rule: str | None = None

    @classmethod
    def of(cls, gate: Gate, refusal: Refusal | Outage | ToolFailed) -> "Denial":
        """Return a denial of which the whole truth is told."""
        return cls(gate, refusal, refusal.code)

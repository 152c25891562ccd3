"""A call that a policy decides about."""

from collections.abc import Mapping
from dataclasses import dataclass

from tallystick.canonical import Json


@dataclass(frozen=True, slots=True)
class Call:
    """One proposed call.

    Args:
        tool: The tool's name.
        arguments: Its arguments, strict JSON.
    """

    tool: str
    arguments: Mapping[str, Json]

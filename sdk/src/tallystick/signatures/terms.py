"""What the author of a tool states beside its code."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from tallystick.canonical import Json


class Injected:
    """Marks a parameter that is filled in at run time: no caller gives it, no schema shows it.

    Written in the annotation, as in `Annotated[Session, Injected]`.
    """


@dataclass(frozen=True, slots=True)
class Terms:
    """What an author states of one tool; the rest comes from its code.

    Args:
        name: The tool's name; without it, the module and the qualified name of the code.
        version: Its version; without it the lockfile counts.
        effect_class: What a second call may do.
        capabilities: What a call may touch, as `resource:action:scope`.
        injected: Names of parameters that are filled in at run time.
        fields: Any other field of the contract document, see `ContractFields`.
    """

    name: str | None = None
    version: str | None = None
    effect_class: str = "UNKNOWN"
    capabilities: tuple[str, ...] = ()
    injected: tuple[str, ...] = ()
    fields: Mapping[str, Json] = field(default_factory=dict[str, Json])


class ContractFields(TypedDict, total=False):
    """The fields of the contract document that an author may state; they are explained there.

    A stated description or output schema takes the place of the one that the code gives.
    """

    title: str
    description: str
    examples: list[Any]
    output_schema: dict[str, Any]
    errors: list[dict[str, Any]]
    idempotency: dict[str, Any]
    identity_fields: list[str]
    approval: Literal["never", "policy", "always"]
    ownership: list[dict[str, Any]]
    returned: list[dict[str, Any]]
    credential: str
    lease_seconds: float
    settle_seconds: float
    attempts_max: int
    max_duplicates: int
    result_limit: int
    evidence: dict[str, Any]
    assert_format: bool

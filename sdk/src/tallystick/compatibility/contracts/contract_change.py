"""What changed between two contracts, as a reviewer reads it: their schemas, and all around them.

A change explains, and never decides. Fields are compared with their defaults put in, so that a
default which is spelled out is no change.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from tallystick.canonical import MISSING, Json, Missing, canonical_bytes, pointer_join
from tallystick.compatibility.changes.change import Change, ChangeKind, Direction
from tallystick.compatibility.contracts.flow import Flow
from tallystick.provider import ErrorMeaning
from tallystick.tool_contract import Contract


class ContractChangeKind(StrEnum):
    """What changed around the schemas. The order is the one in which such changes are told."""

    OUTPUT_SCHEMA_ADDED = "output_schema_added"
    OUTPUT_SCHEMA_REMOVED = "output_schema_removed"
    NAME_CHANGED = "name_changed"
    EFFECT_CLASS_CHANGED = "effect_class_changed"
    KIND_CHANGED = "kind_changed"
    CAPABILITY_ADDED = "capability_added"
    CAPABILITY_REMOVED = "capability_removed"
    ERROR_ADDED = "error_added"
    ERROR_REMOVED = "error_removed"
    ERROR_CHANGED = "error_changed"
    DIALECT_CHANGED = "dialect_changed"
    ASSERT_FORMAT_CHANGED = "assert_format_changed"
    IDENTITY_FIELDS_CHANGED = "identity_fields_changed"
    IDEMPOTENCY_CHANGED = "idempotency_changed"
    APPROVAL_CHANGED = "approval_changed"
    OWNERSHIP_CHANGED = "ownership_changed"
    RETURNED_CHANGED = "returned_changed"
    CREDENTIAL_CHANGED = "credential_changed"
    EVIDENCE_CHANGED = "evidence_changed"
    ATTEMPTS_MAX_CHANGED = "attempts_max_changed"
    MAX_DUPLICATES_CHANGED = "max_duplicates_changed"
    LEASE_SECONDS_CHANGED = "lease_seconds_changed"
    SETTLE_SECONDS_CHANGED = "settle_seconds_changed"
    RESULT_LIMIT_CHANGED = "result_limit_changed"
    TITLE_CHANGED = "title_changed"
    DESCRIPTION_CHANGED = "description_changed"
    EXAMPLES_CHANGED = "examples_changed"


@dataclass(frozen=True, slots=True)
class ContractChange:
    """One change between an old contract and a new one.

    Args:
        path: A JSON Pointer into the new document, or into the old one where the thing is gone.
        kind: What changed: a `ChangeKind` inside a schema, a `ContractChangeKind` elsewhere.
        old: The old value, or `MISSING`.
        new: The new value, or `MISSING`.
        breaks: Which flows it breaks by itself.
        why: One plain sentence for a reviewer.
        replacement: Where a renamed or moved property is now.
        is_prompt_facing: Whether it is about text that a model reads.
    """

    path: str
    kind: ChangeKind | ContractChangeKind
    old: Json | Missing
    new: Json | Missing
    why: str
    breaks: frozenset[Flow] = frozenset()
    replacement: str | None = None
    is_prompt_facing: bool = False

    def to_json(self) -> dict[str, Json]:
        """Return the change as a JSON object; `old`, `new` and `replacement` only where present."""
        values = {"old": self.old, "new": self.new, "replacement": self.replacement or MISSING}
        present: dict[str, Json] = {
            name: value for name, value in values.items() if not isinstance(value, Missing)
        }
        return {
            "path": self.path,
            "kind": self.kind.value,
            **present,
            "breaks": [each.value for each in Flow if each in self.breaks],
            "is_prompt_facing": self.is_prompt_facing,
            "why": self.why,
        }


FLOWS: Final = {
    "input_schema": {
        Direction.OLD_TO_NEW: Flow.OLD_CALLS,
        Direction.NEW_TO_OLD: Flow.NEW_CALLS,
    },
    "output_schema": {
        Direction.OLD_TO_NEW: Flow.OLD_RESULTS,
        Direction.NEW_TO_OLD: Flow.NEW_RESULTS,
    },
}
"""Which flow each direction between two schemas is, by the schema's field."""


def within(field: str, change: Change) -> ContractChange:
    """Return a change of a schema as one of the contract that holds the schema in `field`."""
    at = pointer_join(field)
    return ContractChange(
        path=at + change.path,
        kind=change.kind,
        old=change.old,
        new=change.new,
        why=change.why,
        breaks=frozenset(FLOWS[field][direction] for direction in change.breaks),
        replacement=None if change.replacement is None else at + change.replacement,
        is_prompt_facing=change.is_prompt_facing,
    )


# --- around the schemas ---------------------------------------------------------------------------


def contract_changes(old: Contract, new: Contract) -> Iterator[ContractChange]:
    """Yield what changed around the schemas, in the order of `ContractChangeKind`."""
    yield from _fields(old, new, _IDENTITY)
    yield from _capabilities(old, new)
    yield from _errors(old, new)
    yield from _fields(old, new, _OPERATION)
    yield from _texts(old, new)


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a contract: how it is compared and shown, and what a change of it means."""

    name: str
    means: str
    value: Callable[[Contract], object]


def _attribute(name: str, means: str) -> _Field:
    return _Field(name, means, lambda contract: getattr(contract, name))


_IDENTITY: Final = (
    _attribute("name", "another name is another tool"),
    _attribute("effect_class", "a crash, and a second call, end in another way"),
    _attribute("kind", "reads run at once, writes are recorded before they run"),
)
_OPERATION: Final = (
    _attribute("dialect", "the schemas are read by other rules"),
    _attribute("assert_format", "it decides whether a wrong `format` is refused"),
    _Field(
        "identity_fields",
        "other calls count as one and the same effect",
        lambda contract: contract.identity_fields and frozenset(contract.identity_fields),
    ),
    _attribute("idempotency", "the provider takes or keeps the key in another way"),
    _attribute("approval", "people are asked more often, or less"),
    _Field(
        "ownership",
        "whose objects a call may name is decided in another way",
        lambda contract: frozenset(contract.ownership),
    ),
    _Field(
        "returned",
        "other identifiers must come from a tool of the same run",
        lambda contract: frozenset(contract.returned),
    ),
    _attribute("credential", "calls run under another credential"),
    _attribute("evidence", "the provider is asked in another way what happened"),
    _attribute("attempts_max", "an effect is attempted more often, or less"),
    _attribute("max_duplicates", "an effect may be done more often, or less"),
    _attribute("lease_seconds", "a silent worker is given up earlier or later"),
    _attribute("settle_seconds", "an answer `absent` is trusted earlier or later"),
    _attribute("result_limit", "a model sees more of a result, or less"),
)


def _fields(old: Contract, new: Contract, fields: tuple[_Field, ...]) -> Iterator[ContractChange]:
    for field in fields:
        if field.value(old) != field.value(new):
            yield ContractChange(
                path=pointer_join(field.name),
                kind=ContractChangeKind(f"{field.name}_changed"),
                old=_shown(old, field.name),
                new=_shown(new, field.name),
                why=field.means,
            )


def _shown(contract: Contract, name: str) -> Json | Missing:
    """Return a field as its document has it, or else what holds without it."""
    value: Any = contract.document.get(name, getattr(contract, name))
    return MISSING if value in (None, ()) else value


def _capabilities(old: Contract, new: Contract) -> Iterator[ContractChange]:
    for holder, other, kind, why in (
        (new, old, ContractChangeKind.CAPABILITY_ADDED, "a call may touch more than before"),
        (old, new, ContractChangeKind.CAPABILITY_REMOVED, "a call may touch less than before"),
    ):
        declared: Any = holder.document["capabilities"]
        for index, capability in enumerate(declared):
            if capability not in other.capabilities:
                added = holder is new
                yield ContractChange(
                    path=pointer_join("capabilities", index),
                    kind=kind,
                    old=MISSING if added else capability,
                    new=capability if added else MISSING,
                    why=why,
                )


def _errors(old: Contract, new: Contract) -> Iterator[ContractChange]:
    before = {error.code: (index, error) for index, error in enumerate(old.errors)}
    after = {error.code: (index, error) for index, error in enumerate(new.errors)}
    for code in (*after, *(code for code in before if code not in after)):
        index, error = after.get(code) or before[code]
        was = before[code][1] if code in before else None
        now = error if code in after else None
        if was != now:
            yield ContractChange(
                path=pointer_join("errors", index),
                kind=_error_kind(was, now),
                old=_error_shown(was),
                new=_error_shown(now),
                why=_error_why(code, was, now),
            )


def _error_kind(was: ErrorMeaning | None, now: ErrorMeaning | None) -> ContractChangeKind:
    if was is None:
        return ContractChangeKind.ERROR_ADDED
    return ContractChangeKind.ERROR_REMOVED if now is None else ContractChangeKind.ERROR_CHANGED


def _error_shown(error: ErrorMeaning | None) -> Json | Missing:
    if error is None:
        return MISSING
    return {
        "code": error.code,
        "meaning": error.meaning,
        "retryable": error.retryable,
        "not_executed": error.not_executed,
    }


def _error_why(code: str, was: ErrorMeaning | None, now: ErrorMeaning | None) -> str:
    if was is None:
        return f"old readers do not know the error `{code}`"
    if now is None:
        return f"the error `{code}` has no declared meaning any more"
    if was.retryable != now.retryable:
        return f"`{code}` was {_retry(was)} and is {_retry(now)}"
    if was.not_executed != now.not_executed:
        return f"whether `{code}` proves that nothing was done has changed"
    return f"`{code}` is told in other words"


def _retry(error: ErrorMeaning) -> str:
    return "worth another attempt" if error.retryable else "final"


def _texts(old: Contract, new: Contract) -> Iterator[ContractChange]:
    for name in ("title", "description", "examples"):
        was, now = old.document.get(name, MISSING), new.document.get(name, MISSING)
        if _text(was) != _text(now):
            yield ContractChange(
                path=pointer_join(name),
                kind=ContractChangeKind(f"{name}_changed"),
                old=was,
                new=now,
                why="a model reads it, and may choose the tool or its arguments otherwise",
                is_prompt_facing=True,
            )


def _text(value: Json | Missing) -> bytes | None:
    # Python takes `true` and 1 for equal; JSON does not.
    return None if isinstance(value, Missing) else canonical_bytes(value)

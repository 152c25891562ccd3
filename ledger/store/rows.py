"""Between the ledger's rows and its values: one function each way for each table. Pure."""

from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from ledger.effect import Effect, Ending, OpenEffect, Outcome, Step
from ledger.identity import EffectId
from ledger.state import State
from tallystick.canonical import Json, canonical_bytes, parse_json
from tallystick.effect_class import EffectClass

Values = dict[str, Any]


def key_of(effect_id: EffectId) -> tuple[UUID, int]:
    """Return the two columns that every ledger table of an effect begins with."""
    return effect_id.run_id, effect_id.number


# What nobody knows of an orphan is NULL in its row, and empty in its value.
_UNKNOWN: Final[Values] = {
    "run": "",
    "identity": "",
    "capabilities": (),
    "credential_version": 0,
    "principal": "",
    "key_id": "",
    "request_fingerprint": b"",
    "operation_fingerprint": b"",
}


def effect_of(row: Values) -> Effect:
    """Read an effect."""
    row |= {name: empty for name, empty in _UNKNOWN.items() if row[name] is None}
    row["id"] = EffectId(row.pop("run_id"), row.pop("number"))
    if row["supersedes"] is not None:
        row["supersedes"] = EffectId(row["id"].run_id, row["supersedes"])
    row["effect_class"] = EffectClass(row["effect_class"])
    row["capabilities"] = frozenset(row["capabilities"])
    row["arguments"] = parse_json(row["arguments"])
    return Effect(**row)


def open_of(row: Values) -> OpenEffect:
    """Read where an open effect is."""
    row["state"] = State(row["state"])
    return OpenEffect(**row)


def outcome_of(row: Values) -> Outcome:
    """Read how an effect ended."""
    result: Json = parse_json(row["result"]) if row["result"] is not None else None
    ending = Ending(
        result=result,
        has_result=row["result"] is not None,
        invalid_result=tuple(row["invalid_result"] or ()),
        error_code=row["error_code"],
        error_message=row["error_message"],
        provider_reference=row["provider_reference"],
        evidence_id=row["evidence_id"],
    )
    return Outcome(
        row["revision"],
        State(row["status"]),
        row["fence"],
        ending,
        row["decided_by"],
        row["reason"],
        row["finished_at"],
    )


def effect_values(effect: Effect) -> Values:
    """Write an effect."""
    unknown = _UNKNOWN if effect.is_orphan else {}
    values = {
        "run_id": effect.id.run_id,
        "number": effect.id.number,
        "run": effect.run,
        "identity": effect.identity,
        "idem_key": effect.idem_key,
        "tool": effect.tool,
        "contract_id": effect.contract_id,
        "presented_contract_id": effect.presented_contract_id,
        "contract_digest": effect.contract_digest,
        "effect_class": effect.effect_class,
        "capabilities": sorted(effect.capabilities),
        "credential_version": effect.credential_version,
        "principal": effect.principal,
        "origin": effect.origin,
        "arguments": canonical_bytes(effect.arguments).decode(),
        "key_id": effect.key_id,
        "request_fingerprint": effect.request_fingerprint,
        "operation_fingerprint": effect.operation_fingerprint,
        "planned_at": effect.planned_at,
        "policy": effect.policy,
        "policy_revision": effect.policy_revision,
        "supersedes": effect.supersedes.number if effect.supersedes else None,
    }
    return values | {name: None for name in unknown if not values[name]}


def step_values(step: Step) -> Values:
    """Write the event of a step."""
    return {
        "fence": step.fence,
        "transition": step.transition,
        "from_state": step.from_state,
        "to_state": step.to_state,
        "attempt": step.attempt,
        "actor": step.actor,
        "reason": step.reason,
        "at": step.at,
    }


def open_values(after: OpenEffect) -> Values:
    """Write where an open effect is."""
    return {name: getattr(after, name) for name in OpenEffect.__slots__}


def outcome_values(step: Step, ending: Ending) -> Values:
    """Write how an effect ended."""
    return {
        "fence": step.fence,
        "status": step.to_state,
        "result": canonical_bytes(ending.result).decode() if ending.has_result else None,
        "invalid_result": Jsonb(list(ending.invalid_result)) if ending.invalid_result else None,
        "error_code": ending.error_code,
        "error_message": ending.error_message,
        "provider_reference": ending.provider_reference,
        "evidence_id": ending.evidence_id,
        "decided_by": step.actor,
        "reason": step.reason,
        "finished_at": step.at,
    }

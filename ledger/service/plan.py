"""Plans effects (T1), and dispatches at once where that is asked (T2)."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from ledger import admission
from ledger.admission import Worker
from ledger.effect import Effect, OpenEffect, Step, first_step
from ledger.identity import (
    EffectId,
    identity,
    number_of,
    operation_fingerprint,
    request_fingerprint,
)
from ledger.service.dispatch import dispatch, dispatch_answer
from ledger.service.view import Ledger, View, view_of
from ledger.state import State
from registry import lease as leases
from registry.entry import Entry
from registry.service import admit
from tallystick.canonical import Json, canonical_bytes
from tallystick.errors import (
    ContractRetired,
    EffectConflict,
    InvalidArguments,
    MixedVersions,
    ToolContractNotFound,
    ToolSchemaDrift,
)
from tallystick.resolution import check_drift
from tallystick.schema import Validator, has_sensitive, redact
from tallystick.tool_contract import Contract, ToolReference


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A call that a runtime wants recorded, and with ``worker`` dispatched at once."""

    run: str
    reference: ToolReference
    arguments: Mapping[str, Json]
    effect: str | None = None
    occurrence: int = 1
    key: str | None = None
    origin: str = "runtime"
    lease: str | None = None
    deadline_seconds: float | None = None
    worker: Worker | None = None


async def plan(ledger: Ledger, request: PlanRequest) -> View:
    """Record an effect before it begins; the same effect again answers what is recorded.

    Raises:
        EffectConflict: The effect, or the caller's key, stands for other arguments.
        InvalidArguments: The arguments do not match the contract.
        MixedVersions: The run uses another version of this tool.
        Refusal: One of :func:`tallystick.resolution.check`.
    """
    presented = await _presented(ledger, request.reference)
    run_id = await ledger.store.run_id(request.run)
    name = identity(
        presented.contract,
        request.arguments,
        effect=request.effect,
        occurrence=request.occurrence,
        tenant_id=ledger.caller.tenant_id,
        keys=ledger.keys,
    )
    effect_id = EffectId(run_id, number_of(name))
    if request.key is not None:
        effect_id = await ledger.store.effect_of_key(request.key, effect_id)
    recorded = await ledger.store.effect(effect_id)
    if recorded is None:
        planned = await _plan_new(ledger, request, presented, effect_id, name)
        if planned is not None:
            return planned
        # Another transaction wrote the same effect while this one was deciding.
        recorded = await ledger.store.effect(effect_id)
        assert recorded is not None
    return await _plan_existing(ledger, request, recorded, name)


async def _presented(ledger: Ledger, reference: ToolReference) -> Entry:
    entry = await ledger.registry.entry(reference.name, reference.version)
    # What is not shared any more is there for what was planned on it, and else for nobody.
    if entry is None or (
        not entry.is_offered and entry.contract.schema_hash != reference.schema_hash
    ):
        raise ToolContractNotFound(f"There is no contract {reference.name}@{reference.version}.")
    # Whatever is recorded already: a tuple that drifted from its own version is never served.
    check_drift(reference, entry.contract.schema_hash)
    return entry


async def _plan_existing(ledger: Ledger, request: PlanRequest, found: Effect, name: str) -> View:
    """Answer with the recorded effect.

    It stays on its recorded contract, whatever version is presented now.
    """
    entry = await ledger.registry.entry_by_id(found.contract_id)
    again = operation_fingerprint(
        entry.contract,
        request.arguments,
        tenant_id=ledger.caller.tenant_id,
        keys=ledger.keys,
        key_id=found.key_id,
    )
    same_name = request.key is not None or found.identity == name
    same_tool = found.tool == request.reference.name
    same_call = hmac.compare_digest(again.digest, found.operation_fingerprint)
    if not (same_name and same_tool and same_call):
        raise EffectConflict(
            f"Effect {found.id} is recorded for another call.",
            facts={"effect_id": str(found.id), "run": found.run},
        )
    view = await view_of(ledger, found)
    if request.worker is None:
        return view
    if view.open is not None and request.reference.version != found.version:
        raise ToolSchemaDrift(
            f"Effect {found.id} is recorded for {found.tool}@{found.version}, and only a worker of"
            " that version may run it.",
            facts={"effect_id": str(found.id), "recorded_version": found.version},
        )
    return await dispatch(ledger, found.id, request.worker)


async def _plan_new(
    ledger: Ledger, request: PlanRequest, presented: Entry, effect_id: EffectId, name: str
) -> View | None:
    """Write a new effect, or return None when another transaction did."""
    first, entry = await _admitted(ledger, request, presented)
    used = await ledger.store.tool_version(effect_id.run_id, entry.contract.name, entry.contract_id)
    if used != entry.contract_id:
        other = (await ledger.registry.entry_by_id(used)).contract.version
        raise MixedVersions(
            f"Run {request.run!r} uses {entry.contract.name}@{other} already.",
            facts={"run": request.run, "uses": str(other)},
        )
    _check_arguments(entry.contract, request.arguments)
    effect = _effect(ledger, request, entry, effect_id, name)
    steps = [first]
    refusal = None
    if request.worker is not None and first.to_state is State.PLANNED:
        assert isinstance(first.after, OpenEffect)
        decision = admission.decide(
            first.after, entry.contract, None, request.worker, entry.read_at
        )
        steps += [decision.step] if decision.step else []
        refusal = decision.refusal
    if not await ledger.store.begin(
        effect, steps, _seal(ledger, entry.contract, request, effect_id)
    ):
        return None
    after = steps[-1].after
    assert isinstance(after, OpenEffect)
    view = View(effect, entry.contract, after, None, created=True, refusal=refusal)
    if request.worker is None:
        return view
    owned = after.state is State.DISPATCHED
    return replace(
        view, dispatch=await dispatch_answer(ledger, view, owned=owned, now=entry.read_at)
    )


async def _admitted(ledger: Ledger, request: PlanRequest, presented: Entry) -> tuple[Step, Entry]:
    """Return the first step of a new effect: planned, or quarantined for a queue's late work."""
    caller = ledger.caller
    lease = leases.read(request.lease, ledger.keys, caller.tenant_id) if request.lease else None
    try:
        entry = await admit(
            ledger.registry, caller, request.reference, presented.contract_id, lease=lease
        )
    except ContractRetired:
        if request.origin != "queue":
            raise
        # Work that an outside queue still holds is neither run on another version nor lost.
        step = first_step(
            "T10",
            State.QUARANTINED,
            actor=caller.principal,
            reason="contract_retired",
            at=presented.read_at,
        )
        return step, presented
    deadline_at = None
    if request.deadline_seconds is not None:
        deadline_at = entry.read_at + timedelta(seconds=request.deadline_seconds)
    step = first_step(
        "T1",
        State.PLANNED,
        actor=caller.principal,
        reason="planned",
        at=entry.read_at,
        deadline_at=deadline_at,
    )
    return step, entry


def _check_arguments(contract: Contract, arguments: Mapping[str, Json]) -> None:
    validator = Validator.of(contract.input_schema, contract.dialect, contract.assert_format)
    violations = validator.violations(dict(arguments))
    if violations:
        first = violations[0]
        told = "; ".join(f"{one.pointer or '/'}: {one.message}" for one in violations)
        raise InvalidArguments(
            f"Invalid arguments for {contract.name}: {told}.", pointer=first.pointer
        )


def _effect(
    ledger: Ledger, request: PlanRequest, entry: Entry, effect_id: EffectId, name: str
) -> Effect:
    contract, tenant_id, keys = entry.contract, ledger.caller.tenant_id, ledger.keys
    sent = request_fingerprint(contract, request.arguments, tenant_id=tenant_id, keys=keys)
    operation = operation_fingerprint(contract, request.arguments, tenant_id=tenant_id, keys=keys)
    shown = redact(dict(request.arguments), contract.input_schema)
    assert isinstance(shown, dict)
    return Effect(
        id=effect_id,
        run=request.run,
        identity=name,
        idem_key=request.key,
        tool=contract.name,
        version=str(contract.version),
        contract_id=entry.contract_id,
        presented_contract_id=entry.contract_id,
        contract_digest=contract.contract_digest,
        effect_class=contract.effect_class,
        capabilities=request.reference.capabilities,
        credential_version=request.reference.credential_version,
        principal=ledger.caller.principal,
        origin=request.origin,
        arguments=shown,
        key_id=sent.key_id,
        request_fingerprint=sent.digest,
        operation_fingerprint=operation.digest,
        planned_at=entry.read_at,
    )


def _seal(
    ledger: Ledger, contract: Contract, request: PlanRequest, effect_id: EffectId
) -> tuple[str, bytes] | None:
    if not has_sensitive(contract.input_schema):
        return None
    plain = canonical_bytes(dict(request.arguments))
    return ledger.keys.seal(ledger.caller.tenant_id, plain, bound_to=str(effect_id))

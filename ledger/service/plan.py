"""Plans effects (T1), and dispatches at once where that is asked (T2)."""

import hmac
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from ledger import admission, approval
from ledger.admission import Worker
from ledger.approval import Question
from ledger.effect import LOOK_UP, Effect, OpenEffect, Step, first_step
from ledger.identity import (
    EffectId,
    identity,
    number_of,
    operation_fingerprint,
    request_fingerprint,
)
from ledger.refused import GateRefusal, Refused
from ledger.service import approvals, gates
from ledger.service.dispatch import dispatch, dispatch_answer
from ledger.service.gates import Ruling
from ledger.service.view import Ledger, View, contract_of, view_of
from ledger.service.view import found as found_effect
from ledger.state import State
from registry import lease as leases
from registry.entry import Entry
from registry.policy import PolicyInForce
from registry.service import admit
from tallystick.canonical import Json, canonical_bytes, canonical_object
from tallystick.effect_class import EffectClass
from tallystick.errors import (
    ContractRetired,
    EffectConflict,
    InvalidRequest,
    MixedVersions,
    Refusal,
    ToolContractNotFound,
    ToolSchemaDrift,
)
from tallystick.gates.arguments import accepted
from tallystick.gates.denial import Denial, Gate
from tallystick.policy import Call
from tallystick.resolution import check_drift
from tallystick.schema import has_sensitive, redact
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
        Refused: A gate refuses the call: the contract (one of :func:`tallystick.resolution.check`,
            or the run uses another version of this tool), the arguments, the permission, or the
            policy.
    """
    # As they are recorded, so that the first attempt sends the bytes of every later one.
    request = replace(request, arguments=canonical_object(request.arguments))
    with _gate(request, Gate.CONTRACT):
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
    if request.origin == LOOK_UP:
        # No policy is asked about it, so no equal call of a model's is the same effect.
        name = f"look_up:{name}"
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
    if not await _is_same_call(ledger, request, found, name):
        raise EffectConflict(
            f"Effect {found.id} is recorded for another call.",
            facts={"effect_id": str(found.id), "run": found.run},
        )
    view = await view_of(ledger, found)
    while view.superseded_by is not None:
        # A person moved it to another version: its names lead to what took its place.
        view = await view_of(ledger, await found_effect(ledger, view.superseded_by))
    found = view.effect
    if request.worker is None:
        return view
    if view.open is not None and request.reference.version != found.version:
        raise ToolSchemaDrift(
            f"Effect {found.id} is recorded for {found.tool}@{found.version}, and only a worker of"
            " that version may run it.",
            facts={"effect_id": str(found.id), "recorded_version": found.version},
        )
    return await dispatch(ledger, found.id, request.worker)


async def _is_same_call(ledger: Ledger, request: PlanRequest, found: Effect, name: str) -> bool:
    same_tool = found.tool == request.reference.name
    if found.is_orphan:
        # Its number is that of this name, and as what it was sent nobody knows. It waits for a
        # person, and is never sent again.
        return same_tool
    again = operation_fingerprint(
        await contract_of(ledger, found),
        request.arguments,
        tenant_id=ledger.caller.tenant_id,
        keys=ledger.keys,
        key_id=found.key_id,
    )
    same_name = request.key is not None or found.identity == name
    same_kind = (found.origin == LOOK_UP) == (request.origin == LOOK_UP)
    same_call = hmac.compare_digest(again.digest, found.operation_fingerprint)
    return same_name and same_kind and same_tool and same_call


async def _plan_new(
    ledger: Ledger, request: PlanRequest, presented: Entry, effect_id: EffectId, name: str
) -> View | None:
    """Write a new effect, or return None when another transaction did."""
    with _gate(request, Gate.CONTRACT):
        first, entry = await _admitted(ledger, request, presented)
        await _hold_to_version(ledger, request, entry, effect_id)
    with _gate(request, Gate.ARGUMENTS):
        accepted(entry.contract, request.arguments)
    policy = await policy_for(ledger, request, entry)
    effect = new_effect(ledger, request, entry, effect_id, name, policy)
    # Before the run is held, as in a dispatch: who waits here for another plan of the same effect
    # holds nothing that a worker of that effect waits for.
    if not await ledger.store.record(effect):
        return None
    admitted = await pass_gates(ledger, request, entry, first, effect_id, policy)
    steps = first_steps(request, entry, first, admitted, approval_seconds=ledger.approval_seconds)
    await ledger.store.begin(effect, steps, sealed(ledger, entry.contract, request, effect_id))
    after = steps[-1].after
    assert isinstance(after, OpenEffect)
    view = View(effect, entry.contract, after, None, created=True)
    owned = after.state is State.DISPATCHED
    if admitted.question is not None:
        asked = await approvals.ask(ledger, effect, admitted.question, entry.read_at)
        view = replace(view, approval=asked)
        if request.worker is not None:
            await gates.note(ledger, effect, approvals.denial_of(asked))
            view = replace(view, refusal=approval.waiting(asked))
    elif owned and admitted.ruling is not None:
        _refuse(
            request,
            await gates.spend(ledger, effect_id.run_id, admitted.ruling, entry.read_at),
            policy,
        )
    if request.worker is None:
        return view
    return replace(
        view, dispatch=await dispatch_answer(ledger, view, owned=owned, now=entry.read_at)
    )


@dataclass(frozen=True, slots=True)
class Admitted:
    """A call that no gate blocks: what the policy in force says, and what to ask a person."""

    ruling: Ruling | None = None
    question: Question | None = None


async def policy_for(ledger: Ledger, request: PlanRequest, entry: Entry) -> PolicyInForce | None:
    """Return the policy that a call is planned under. Raises InvalidRequest for its origin."""
    if request.origin != LOOK_UP:
        return await ledger.policies.policy_in_force(
            ledger.caller.principal, lock=request.worker is not None
        )
    if entry.contract.effect_class is not EffectClass.PURE:
        raise InvalidRequest("Only a read looks up who owns something.", pointer="/origin")
    return None


async def pass_gates(
    ledger: Ledger,
    request: PlanRequest,
    entry: Entry,
    first: Step,
    effect_id: EffectId,
    policy: PolicyInForce | None,
) -> Admitted:
    """Hold a new call to the permission and the policy gate. Raises Refused."""
    contract, run_id, now = entry.contract, effect_id.run_id, entry.read_at
    if first.to_state is not State.PLANNED:
        return Admitted()  # A queue's late work: the gates come if a person lets it run.
    _refuse(request, await gates.permit(ledger, run_id, contract, request.arguments), policy)
    if policy is None:
        return Admitted(question=approval.question(contract, None))
    call = Call(contract.name, request.arguments)
    dispatches = request.worker is not None
    ruling = await gates.rule(ledger, run_id, policy, call, now, hold=dispatches)
    _refuse(request, ruling.denial, policy)
    return Admitted(ruling, approval.question(contract, ruling.verdict))


def first_steps(
    request: PlanRequest,
    entry: Entry,
    first: Step,
    admitted: Admitted,
    *,
    approval_seconds: float,
) -> list[Step]:
    """Return the steps that a new effect begins with: one that waits for a person is not sent."""
    after = first.after
    assert isinstance(after, OpenEffect)
    if admitted.question is not None:
        expires_at = entry.read_at + timedelta(seconds=approval_seconds)
        due_at = min(after.due_at or expires_at, expires_at)
        return [replace(first, after=replace(after, due_at=due_at))]
    if request.worker is None or first.to_state is not State.PLANNED:
        return [first]
    decision = admission.decide(after, entry.contract, None, request.worker, entry.read_at)
    return [first, decision.step] if decision.step else [first]


@contextmanager
def _gate(request: PlanRequest, gate: Gate) -> Generator[None]:
    """Turn what one gate refuses into a line of the run's trace, and undo the plan."""
    try:
        yield
    except InvalidRequest:
        raise  # Not a call of a tool: the caller's own fault.
    except Refusal as refusal:
        raise _refused(request, Denial.of(gate, refusal)) from refusal


def _refuse(request: PlanRequest, denial: Denial | None, policy: PolicyInForce | None) -> None:
    if denial is not None:
        raise _refused(request, denial, policy)


def _refused(request: PlanRequest, denial: Denial, policy: PolicyInForce | None = None) -> Refused:
    line = GateRefusal(
        None,
        request.reference.name,
        request.reference.version,
        denial,
        policy.name if policy else None,
        policy.revision if policy else None,
    )
    return Refused(request.run, line)


async def _hold_to_version(
    ledger: Ledger, request: PlanRequest, entry: Entry, effect_id: EffectId
) -> None:
    used = await ledger.store.tool_version(effect_id.run_id, entry.contract.name, entry.contract_id)
    if used == entry.contract_id:
        return
    if not await ledger.quarantine.was_migrated(effect_id.run_id, entry.contract_id):
        other = (await ledger.registry.contract(used)).version
        raise MixedVersions(
            f"Run {request.run!r} uses {entry.contract.name}@{other} already.",
            facts={"run": request.run, "uses": str(other)},
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


def new_effect(
    ledger: Ledger,
    request: PlanRequest,
    entry: Entry,
    effect_id: EffectId,
    name: str,
    policy: PolicyInForce | None,
) -> Effect:
    """Return what an effect is, of a call that the gates let through."""
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
        policy=policy.name if policy else None,
        policy_revision=policy.revision if policy else None,
    )


def sealed(
    ledger: Ledger, contract: Contract, request: PlanRequest, effect_id: EffectId
) -> tuple[str, bytes] | None:
    """Return the encrypted arguments that an attempt needs, None where none is sensitive."""
    if not has_sensitive(contract.input_schema):
        return None
    plain = canonical_bytes(dict(request.arguments))
    return ledger.keys.seal(ledger.caller.tenant_id, plain, bound_to=str(effect_id))

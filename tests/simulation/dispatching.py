"""Planning and dispatch as transactions: what they read, whom they ask to decide, what they write.

They follow `ledger.service.plan` and `ledger.service.dispatch` step by step. Whatever is decided
here, the real decisions decide; a transaction that waits for a lock, or that holds one while others
go on, yields the seconds.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID, uuid5

from kernel.keys import KeyRing
from ledger import approval, identity
from ledger.admission import Worker
from ledger.approval import Status
from ledger.effect import Effect, Step, first_step
from ledger.identity import EffectId
from ledger.state import State
from registry.lease import Lease
from tallystick.canonical import Json
from tallystick.errors import (
    ContractRetired,
    EffectConflict,
    MixedVersions,
    Refusal,
    ToolSchemaDrift,
)
from tallystick.resolution import Purpose
from tests.simulation.engine import Engine
from tests.simulation.product import Product
from tests.simulation.registry import OPEN_SECONDS_MAX, Registry, Transaction
from tests.simulation.settling import close_approval
from tests.simulation.store import Record, Store, Version

TENANTS: Final = {name: uuid5(UUID(int=0), name) for name in ("acme", "globex")}
KEYS: Final = KeyRing("k1", {"k1": bytes(32)})
APPROVAL_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Call:
    """A call that a runtime wants recorded, and with a worker dispatched at once."""

    tenant: str
    run: str
    effect: str
    version: Version
    arguments: dict[str, Json]
    principal: str = "agent"
    origin: str = "runtime"
    lease: Lease | None = None
    deadline_seconds: float | None = None
    worker: Worker | None = None


@dataclass(frozen=True, slots=True)
class Dispatched:
    """The answer to a worker. Only ``owned`` allows a send."""

    record: Record
    owned: bool
    fence: int = 0
    lease_seconds: float = 0.0
    lease_until: datetime | None = None
    provider_key: str = ""
    version: Version | None = None
    refusal: Refusal | None = None


class Dispatching:
    """What is planned and who may send it, over one store."""

    def __init__(self, engine: Engine, product: Product, store: Store, registry: Registry) -> None:
        self._engine = engine
        self._product = product
        self._registry = registry
        self.store = store
        self.accepted: list[tuple[Record, dict[str, Json]]] = []
        """Every call that was answered with an effect, and the arguments that it had."""

    # --- T1, T2, T7 ---------------------------------------------------------------------------

    def plan(self, call: Call) -> Transaction[Dispatched]:
        """Record an effect before it begins; the same effect again answers what is recorded."""
        store, version = self.store, call.version
        run_id = store.run_id(call.tenant, call.run)
        name = self._identity(call)
        effect_id = EffectId(run_id, identity.number_of(name))
        found = store.look(call.tenant, effect_id)
        if found is None:
            yield from self._registry.share(version)
            try:
                step = self._first_step(call)
                yield self._engine.chance.between(0.0, OPEN_SECONDS_MAX)
                found = store.look(call.tenant, effect_id)
                if found is None:
                    used = store.versions_of_runs.setdefault(
                        (run_id, version.contract.name), version.contract_id
                    )
                    if used != version.contract_id and self._product.keeps_one_version_a_run:
                        raise MixedVersions("The run uses another version.")
                    return self._begin(call, effect_id, name, step)
            finally:
                self._registry.unshare(version)
        return (yield from self._plan_existing(call, found))

    def _identity(self, call: Call) -> str:
        return identity.identity(
            call.version.contract,
            call.arguments,
            effect=call.effect,
            occurrence=1,
            tenant_id=TENANTS[call.tenant],
            keys=KEYS,
        )

    def _first_step(self, call: Call) -> Step:
        version, now = call.version, self.store.now
        lease = call.lease
        under_lease = lease is not None and lease.admits(
            version.contract_id, closed_at=version.closed_at, now=now
        )
        purpose = Purpose.PLAN_UNDER_LEASE if under_lease else Purpose.PLAN
        try:
            self._registry.check(version, version.bound, purpose)
        except ContractRetired:
            if call.origin != "queue":
                raise
            return first_step(
                "T10", State.QUARANTINED, actor=call.principal, reason="contract_retired", at=now
            )
        deadline_at = None
        if call.deadline_seconds is not None:
            deadline_at = now + timedelta(seconds=call.deadline_seconds)
        return first_step(
            "T1",
            State.PLANNED,
            actor=call.principal,
            reason="planned",
            at=now,
            deadline_at=deadline_at,
        )

    def _begin(self, call: Call, effect_id: EffectId, name: str, step: Step) -> Dispatched:
        now, contract = self.store.now, self._product.reads(call.version.contract)
        record = Record(call.tenant, self._effect(call, effect_id, name), call.version)
        self.accepted.append((record, call.arguments))
        question = None
        if step.to_state is State.PLANNED:
            question = approval.question(contract, None)
        self.store.begin(record, [step])
        if question is not None:
            asked = approval.requested(
                record.effect, question, now, approval_seconds=APPROVAL_SECONDS
            )
            self.store.move(record, asked)
            self.store.wait_until(record, asked.after.expires_at)
            return Dispatched(record, owned=False, refusal=approval.waiting(asked.after))
        if call.worker is None or record.open is None or step.to_state is not State.PLANNED:
            return Dispatched(record, owned=False)
        decision = self._product.admit(record.open, contract, None, call.worker, now)
        if decision.step is not None:
            self.store.advance(record, decision.step)
        return self._answer(record, owned=decision.owned)

    def _effect(self, call: Call, effect_id: EffectId, name: str) -> Effect:
        version, tenant_id = call.version, TENANTS[call.tenant]
        contract = version.contract
        operation = identity.operation_fingerprint(
            contract, call.arguments, tenant_id=tenant_id, keys=KEYS
        )
        return Effect(
            id=effect_id,
            run=call.run,
            identity=name,
            idem_key=None,
            tool=contract.name,
            version=str(contract.version),
            contract_id=version.contract_id,
            presented_contract_id=version.contract_id,
            contract_digest=contract.contract_digest,
            effect_class=contract.effect_class,
            capabilities=contract.capabilities_for(call.tenant),
            credential_version=version.bound,
            principal=call.principal,
            origin=call.origin,
            arguments=call.arguments,
            key_id=operation.key_id,
            request_fingerprint=operation.digest,
            operation_fingerprint=operation.digest,
            planned_at=self.store.now,
        )

    def _plan_existing(self, call: Call, record: Record) -> Transaction[Dispatched]:
        again = identity.operation_fingerprint(
            record.version.contract, call.arguments, tenant_id=TENANTS[call.tenant], keys=KEYS
        )
        is_same_tool = record.effect.tool == call.version.contract.name
        is_same_call = again.digest == record.effect.operation_fingerprint
        if not is_same_tool or (self._product.compares_arguments and not is_same_call):
            raise EffectConflict(f"Effect {record.id} is recorded for another call.")
        self.accepted.append((record, call.arguments))
        if call.worker is None:
            return Dispatched(record, owned=False)
        if record.open is not None and call.version is not record.version:
            raise ToolSchemaDrift("Only a worker of the recorded version may run it.")
        return (yield from self.dispatch(call.tenant, record.effect.id, call.worker))

    def dispatch(self, tenant: str, effect_id: EffectId, worker: Worker) -> Transaction[Dispatched]:
        """Make a worker the owner of a planned or retryable effect."""
        record = self.store.found(tenant, effect_id)
        version = record.version
        if not self._product.runs_the_recorded_contract:
            version = record.version = self._registry.newest(version)
        yield from self._registry.share(version)
        try:
            refusal = self._standing_refusal(record)
            yield self._engine.chance.between(0.0, OPEN_SECONDS_MAX)
            return self._dispatched(record, worker, refusal)
        finally:
            self._registry.unshare(version)

    def _standing_refusal(self, record: Record) -> Refusal | None:
        try:
            self._registry.check(record.version, record.effect.credential_version, Purpose.DISPATCH)
        except Refusal as refusal:
            return refusal
        return None

    def _dispatched(self, record: Record, worker: Worker, refusal: Refusal | None) -> Dispatched:
        before, now = record.open, self.store.now
        if before is None:
            return Dispatched(record, owned=False)
        contract = self._product.reads(record.version.contract)
        if refusal is None and before.state is State.RETRYABLE:
            answers = [one.answer for one in record.evidence]
            refusal = self._product.contradicted(contract, answers)
        given = record.approval
        if before.state in (State.PLANNED, State.RETRYABLE) and given is not None:
            refusal = approval.outdated(given, refusal) if refusal else None
        decision = self._product.admit(before, contract, refusal, worker, now)
        if decision.owned and decision.step is not None and given is not None:
            refusal = self._product.why_not(given, now)
            decision = self._product.admit(before, contract, refusal, worker, now)
        if decision.step is not None:
            if decision.owned:
                self._consume(record, worker, now)
            else:
                close_approval(self.store, record, worker.actor, decision.step.reason, now)
            self.store.advance(record, decision.step)
        return self._answer(record, owned=decision.owned, refusal=decision.refusal)

    def _answer(self, record: Record, *, owned: bool, refusal: Refusal | None = None) -> Dispatched:
        if not owned:
            return Dispatched(record, owned=False, refusal=refusal)
        assert record.open is not None
        assert record.open.due_at is not None
        return Dispatched(
            record,
            owned=True,
            fence=record.open.fence,
            lease_seconds=(record.open.due_at - self.store.now).total_seconds(),
            lease_until=record.open.due_at,
            provider_key=self.key_of(record),
            version=record.version,
        )

    def key_of(self, record: Record) -> str:
        """Return the provider's key of an effect."""
        return self._product.provider_key(TENANTS[record.tenant], record.effect.id)

    def _consume(self, record: Record, worker: Worker, now: datetime) -> None:
        given = record.approval
        if given is not None and given.status is Status.APPROVED:
            self.store.move(
                record,
                approval.moved(
                    given, Status.CONSUMED, actor=worker.actor, reason="dispatched", now=now
                ),
            )

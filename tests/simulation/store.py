"""The database: rows in memory, and of its promises those that the ledger is built on.

Whatever happens between two steps of a process is one transaction: atomic, and committed. A row
that other transactions share or await has a lock. What is recorded is only ever added to.
"""

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from ledger.approval import Approval, ApprovalStep
from ledger.effect import Attempt, Effect, Ending, Event, Evidence, OpenEffect, Outcome, Step
from ledger.identity import EffectId
from ledger.quarantine import Word
from ledger.state import State
from tallystick.errors import FenceStale, NotFound
from tallystick.resolution import Lifecycle, Standing
from tallystick.tool_contract import Contract
from tests.simulation.engine import Engine
from tests.simulation.product import Product

EPOCH: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)
LOCK_POLL_SECONDS: Final = 0.05


@dataclass(slots=True)
class Lock:
    """A row lock: shared by dispatches, taken alone by whoever changes the row."""

    shares: int = 0
    is_taken: bool = False

    def share(self) -> Generator[float, None, None]:
        while self.is_taken:
            yield LOCK_POLL_SECONDS
        self.shares += 1

    def take(self, *, awaits: bool = True) -> Generator[float, None, None]:
        while self.is_taken or (awaits and self.shares):
            yield LOCK_POLL_SECONDS
        self.is_taken = True


@dataclass(slots=True)
class Slot:
    """A tenant's credential: its version, and the lock that dispatches share."""

    current: int = 1
    lock: Lock = field(default_factory=Lock)


@dataclass(slots=True, eq=False)
class Version:
    """A published version of one tenant, and all of its state."""

    contract_id: UUID
    contract: Contract
    tenant: str
    slot: Slot
    bound: int = 1
    lifecycle: Lifecycle = Lifecycle.ACTIVE
    suspended: bool = False
    closed_at: datetime | None = None
    retired_at: datetime | None = None
    lock: Lock = field(default_factory=Lock)

    def standing(self) -> Standing:
        """Return what a presented tuple is checked against."""
        lifecycle = self.lifecycle
        if lifecycle is Lifecycle.ACTIVE and self.closed_at is not None:
            lifecycle = Lifecycle.MIGRATING
        return Standing(
            schema_hash=self.contract.schema_hash,
            capabilities=self.contract.capabilities_for(self.tenant),
            effect_class=self.contract.effect_class,
            lifecycle=lifecycle,
            suspended=self.suspended,
            signature_missing=False,
            credential_bound=self.bound,
            credential_current=self.slot.current,
        )


@dataclass(frozen=True, slots=True)
class Sendable:
    """An attempt as it was committed, and how its contract stood at that moment."""

    row: Attempt
    contract_id: UUID
    standing: Standing
    approval: Approval | None


@dataclass(frozen=True, slots=True)
class Settlement:
    """A step that a finding led to, and what the effect was before."""

    before: OpenEffect
    finding: Evidence | None
    step: Step


@dataclass(slots=True, eq=False)
class Record:
    """All rows of one effect."""

    tenant: str
    effect: Effect
    version: Version
    open: OpenEffect | None = None
    events: list[Event] = field(default_factory=list[Event])
    attempts: list[Sendable] = field(default_factory=list[Sendable])
    evidence: list[Evidence] = field(default_factory=list[Evidence])
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    settlements: list[Settlement] = field(default_factory=list[Settlement])
    approval: Approval | None = None
    words: list[Word] = field(default_factory=list[Word])

    @property
    def id(self) -> str:
        return str(self.effect.id)

    @property
    def state(self) -> State:
        return self.open.state if self.open else self.outcomes[-1].status

    @property
    def is_over(self) -> bool:
        """Tell whether no machine will do anything more about it."""
        return self.open is None or self.open.state is State.QUARANTINED


class Store:
    """Every table, of all tenants."""

    def __init__(self, engine: Engine, product: Product) -> None:
        self._engine = engine
        self._product = product
        self.records: dict[EffectId, Record] = {}
        self.versions: list[Version] = []
        self.runs: dict[tuple[str, str], UUID] = {}
        self.versions_of_runs: dict[tuple[UUID, str], UUID] = {}
        self.journal: dict[EffectId, list[tuple[int, str]]] = {}
        """Every step that was ever committed, kept apart from the tables for comparison."""
        self.reads: set[tuple[str, str]] = set()
        """Which tenant ever saw a row of which."""
        self._rows = 0

    @property
    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self._engine.now)

    # --- reading ------------------------------------------------------------------------------

    def run_id(self, tenant: str, run: str) -> UUID:
        owner = tenant if self._product.hides_other_tenants else ""
        return self.runs.setdefault((owner, run), UUID(int=len(self.runs) + 1))

    def look(self, tenant: str, effect_id: EffectId) -> Record | None:
        """Return an effect's rows as far as a tenant sees them."""
        record = self.records.get(effect_id)
        if record is None or (self._product.hides_other_tenants and record.tenant != tenant):
            return None
        self.reads.add((tenant, record.tenant))
        return record

    def found(self, tenant: str, effect_id: EffectId) -> Record:
        record = self.look(tenant, effect_id)
        if record is None:
            raise NotFound("There is no such effect.")
        return record

    def due(self) -> Record | None:
        """Return the effect whose time has come, the longest due first."""
        now = self.now
        due = [
            (record.open.due_at, record.effect.id)
            for record in self.records.values()
            if record.open and record.open.due_at is not None and record.open.due_at <= now
        ]
        return self.records[min(due)[1]] if due else None

    def next_due_seconds(self) -> float | None:
        """Return how long it is until something is due, or None where nothing ever will be."""
        due = [one.open.due_at for one in self.records.values() if one.open and one.open.due_at]
        return (min(due) - self.now).total_seconds() if due else None

    # --- writing ------------------------------------------------------------------------------

    def begin(self, record: Record, steps: list[Step]) -> None:
        """Write a new effect with its first steps."""
        assert record.effect.id not in self.records, "a name is looked up before it is given"
        self.records[record.effect.id] = record
        for step in steps:
            self._write(record, step)

    def advance(self, record: Record, step: Step) -> None:
        """Write one step by compare-and-set. Raises FenceStale."""
        before = record.open
        is_current = before is not None and (before.fence, before.state) == (
            step.fence - 1,
            step.from_state,
        )
        if not is_current and self._product.compares_and_sets:
            raise FenceStale(f"Effect {record.id} has moved on.")
        self._write(record, step)

    def reopen(self, record: Record, step: Step) -> None:
        """Write the step that opens a closed effect again; its outcome stays as it is."""
        self._write(record, step)

    def _write(self, record: Record, step: Step) -> None:
        event = Event(
            step.fence,
            step.transition,
            step.from_state,
            step.to_state,
            step.attempt,
            step.actor,
            step.reason,
            step.at,
        )
        self.journal.setdefault(record.effect.id, []).append((step.fence, step.to_state))
        self._engine.note(
            step.actor,
            f"{step.transition} {step.from_state} -> {step.to_state}, fence {step.fence}:"
            f" {step.reason}",
            record.id,
        )
        if self._product.keeps_every_event or step.transition != "T5":
            record.events.append(event)
        if isinstance(step.after, Ending):
            record.outcomes.append(
                Outcome(
                    len(record.outcomes) + 1,
                    step.to_state,
                    step.fence,
                    step.after,
                    step.actor,
                    step.reason,
                    step.at,
                )
            )
            if self._product.closes_what_ended:
                record.open = None
            return
        record.open = step.after
        if step.to_state is State.DISPATCHED:
            self._write_attempt(record, step, step.after)

    def _write_attempt(self, record: Record, step: Step, after: OpenEffect) -> None:
        assert after.worker_id is not None
        assert after.due_at is not None
        version = record.version
        row = Attempt(
            after.attempt,
            after.fence,
            after.worker_id,
            record.effect.credential_version,
            step.at,
            after.due_at,
        )
        record.attempts.append(
            Sendable(row, version.contract_id, version.standing(), record.approval)
        )

    def keep(
        self,
        record: Record,
        *,
        fence: int,
        source: str,
        answer: str,
        observed_at: datetime,
        detail: str = "",
        reference: str | None = None,
    ) -> Evidence:
        """Keep one answer about an effect."""
        self._rows += 1
        one = Evidence(
            UUID(int=self._rows), fence, source, answer, reference, observed_at, self.now, detail
        )
        record.evidence.append(one)
        self._engine.note(source, f"says {answer} of fence {fence} {detail}", record.id)
        return one

    def move(self, record: Record, step: ApprovalStep | None) -> None:
        """Write one step of an approval."""
        if step is None:
            return
        self._engine.note(step.event.actor, f"approval {step.after.status}", record.id)
        record.approval = step.after

    def wake(self, record: Record) -> None:
        """Let the reconciler look at an effect at once."""
        assert record.open is not None
        record.open = replace(record.open, due_at=self.now)

    def wait_until(self, record: Record, due_at: datetime) -> None:
        """Let something be done about a planned effect by a time."""
        assert record.open is not None
        sooner = min(record.open.due_at or due_at, due_at)
        record.open = replace(record.open, due_at=sooner)

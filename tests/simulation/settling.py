"""Reports, evidence, time and people as transactions: all that settles what was dispatched.

They follow `ledger.service` and `reconciler.sweep` step by step; the real decisions decide.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from ledger import approval
from ledger.admission import stopped
from ledger.approval import Status
from ledger.completion import Report, is_repeated
from ledger.effect import OpenEffect, reopening
from ledger.evidence import LATE_WORKER, WORKER, Act, Answer, bearing, person
from ledger.quarantine import Known, Resolution
from ledger.settlement import doubted
from ledger.state import State
from tallystick.errors import EffectConflict, FenceStale
from tests.simulation.engine import Engine
from tests.simulation.product import Product
from tests.simulation.store import Record, Settlement, Store

_SAID: Final = {
    State.SUCCEEDED: Answer.APPLIED,
    State.FAILED: Answer.REJECTED,
    State.RETRYABLE: Answer.ABSENT,
}
"""What a person's word on a quarantined effect says of the provider."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a look-up came to."""

    answer: Answer
    detail: str
    reference: str | None


def close_approval(store: Store, record: Record, actor: str, reason: str, now: datetime) -> None:
    """Close what is left open of an effect's approval: the effect will not run any more."""
    given = record.approval
    if given is not None:
        store.move(record, approval.closed(given, actor=actor, reason=reason, now=now))


class Settling:
    """How effects end, over one store."""

    def __init__(self, engine: Engine, product: Product, store: Store) -> None:
        self._engine = engine
        self._product = product
        self.store = store
        self.late_reports: list[tuple[Record, Report]] = []
        self._messages: set[UUID] = set()

    # --- T3, T4 and late evidence -------------------------------------------------------------

    def report(self, record: Record, told: Report) -> None:
        """Take a worker's report. Raises FenceStale once it is kept as evidence."""
        now, before = self.store.now, record.open
        contract = self._product.reads(record.version.contract)
        if not self._product.is_owner(told, before):
            self._late(record, told, now)
            return
        heard = bearing(record.evidence, told.fence)
        step = self._product.report(before, contract, told, heard, (), now)
        if step.to_state.is_open and told.answer is not None:
            self.store.keep(
                record,
                fence=told.fence,
                source=WORKER,
                answer=told.answer,
                observed_at=now,
                reference=told.provider_reference,
            )
        self.store.advance(record, step)

    def _late(self, record: Record, told: Report, now: datetime) -> None:
        following = next((one for one in record.events if one.fence == told.fence + 1), None)
        if is_repeated(told, following):
            return
        if told.answer is not None and self._product.keeps_late_reports:
            self.take(
                record,
                LATE_WORKER,
                told.answer,
                fence=told.fence,
                reference=told.provider_reference,
            )
        self.late_reports.append((record, told))
        raise FenceStale(f"Fence {told.fence} is no longer the current one.")

    def take(
        self,
        record: Record,
        source: str,
        answer: Answer,
        *,
        fence: int | None = None,
        reference: str | None = None,
        observed_at: datetime | None = None,
        message: UUID | None = None,
    ) -> None:
        """Take evidence that comes unasked, in whatever state the effect is (T12, T13).

        A ``message`` counts once, however often it comes, and so does a late worker's report.
        """
        store, now, before = self.store, self.store.now, record.open
        said = {(one.source, one.fence, one.answer) for one in record.evidence}
        if source == LATE_WORKER and (source, fence, answer) in said:
            return
        if message is not None:
            if message in self._messages:
                return
            self._messages.add(message)
        attempts = [one.row for one in record.attempts]
        act = self._product.act(
            record.state, record.effect.effect_class, len(attempts), source=source, answer=answer
        )
        current = before.fence if before else record.outcomes[-1].fence
        store.keep(
            record,
            fence=current if fence is None else fence,
            source=source,
            answer=answer,
            observed_at=observed_at or now,
            reference=reference,
        )
        reason = f"{source} says {answer}"
        if act is Act.STOP:
            assert before is not None
            store.advance(record, stopped(before, actor=source, reason=reason, now=now))
            close_approval(store, record, source, reason, now)
            act = Act.REOPEN
        match act:
            case Act.KEEP:
                pass
            case Act.WAKE:
                store.wake(record)
            case Act.DOUBT:
                assert before is not None
                store.advance(record, doubted(before, actor=source, reason=reason, now=now))
            case Act.REOPEN:
                if before is not None:
                    store.advance(record, stopped(before, actor=source, reason=reason, now=now))
                    close_approval(store, record, source, reason, now)
                store.reopen(
                    record,
                    reopening(record.outcomes[-1], attempts, actor=source, reason=reason, at=now),
                )

    # --- T5, T6 and what time does ------------------------------------------------------------

    def overdue(self, record: Record, before: OpenEffect, actor: str) -> None:
        """Take the step that time alone decides. Raises FenceStale where another one came first."""
        contract = self._product.reads(record.version.contract)
        now = self.store.now
        step = self._product.overdue(before, contract, actor=actor, now=now)
        self.store.advance(record, step)
        if before.state in (State.PLANNED, State.RETRYABLE):
            close_approval(self.store, record, actor, step.reason, now)

    def claim(self, record: Record, before: OpenEffect, actor: str) -> int:
        """Claim an UNKNOWN effect; returns the fence. Raises FenceStale."""
        contract = self._product.reads(record.version.contract)
        step = self._product.claim(before, contract, actor=actor, now=self.store.now)
        self.store.advance(record, step)
        return step.fence

    def settle(
        self,
        record: Record,
        actor: str,
        *,
        fence: int,
        asked_at: datetime,
        told: Judged | None,
    ) -> None:
        """Record an answer, and let it decide if the claim still stands."""
        before, now = record.open, self.store.now
        is_claimed = before is not None and before.state is State.RECONCILING
        is_mine = is_claimed and before is not None and before.fence == fence
        if not (is_mine or (is_claimed and not self._product.checks_fence_before_settling)):
            # Another one has it now; the answer is kept all the same, and may contradict that one.
            if told is not None:
                self.take(
                    record,
                    "http",
                    told.answer,
                    fence=fence,
                    reference=told.reference,
                    observed_at=asked_at,
                )
            return
        assert before is not None
        heard = list(record.evidence)
        finding = None
        if told is not None:
            finding = self.store.keep(
                record,
                fence=fence,
                source="http",
                answer=told.answer,
                observed_at=asked_at,
                detail=told.detail,
                reference=told.reference,
            )
        contract = self._product.reads(record.version.contract)
        step = self._product.settle(
            before,
            contract,
            finding,
            bearing(heard, record.attempts[-1].row.fence),
            actor=actor,
            now=now,
            jitter=self._engine.chance.draw(),
        )
        record.settlements.append(Settlement(before, finding, step))
        self.store.advance(record, step)

    # --- T8, T11 ------------------------------------------------------------------------------

    def cancel(self, record: Record, by: str) -> None:
        """Give an effect up. Raises IllegalTransition, EffectConflict."""
        before, now = record.open, self.store.now
        if before is None:
            raise EffectConflict(f"Effect {record.id} is closed.")
        contract = self._product.reads(record.version.contract)
        step = self._product.cancel(before, contract, actor=by, reason="not wanted", now=now)
        self.store.advance(record, step)
        close_approval(self.store, record, by, "not wanted", now)

    def resolve(self, record: Record, to_state: State, by: str) -> None:
        """Take a person's word on a quarantined effect. Raises EffectNotRetryable."""
        before, now = record.open, self.store.now
        if before is None:
            raise EffectConflict(f"Effect {record.id} is closed.")
        contract = self._product.reads(record.version.contract)
        last = record.words[-1] if record.words else None
        resolution = Resolution(to_state, "looked at", "the provider's books", by)
        known = Known(
            record.version.lifecycle,
            tuple(record.evidence),
            was_closed=bool(record.outcomes),
        )
        decision = self._product.resolve(before, contract, resolution, last, known, now)
        if decision.word is not None:
            record.words.append(decision.word)
        if decision.step is not None:
            self.store.keep(
                record,
                fence=decision.step.fence,
                source=person(by),
                answer=_SAID.get(to_state, Answer.UNAVAILABLE),
                observed_at=now,
            )
            self.store.advance(record, decision.step)

    def decide_approval(self, record: Record, to_status: Status, by: str) -> None:
        """Take a person's word on a call that waits. Raises Forbidden, IllegalTransition."""
        now, given = self.store.now, record.approval
        assert given is not None
        self.store.move(
            record,
            approval.decided(record.effect, given, to_status, by=by, reason="looked at", now=now),
        )
        before = record.open
        is_waiting = before is not None and before.state in (State.PLANNED, State.RETRYABLE)
        if to_status is Status.REJECTED and is_waiting:
            assert before is not None
            self.store.advance(
                record,
                stopped(before, actor=f"person:{by}", reason="approval_rejected", now=now),
            )

"""The workers: they plan, dispatch, send and report, late, twice, or never to the end."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from ledger.admission import Worker
from ledger.completion import Report, Verdict
from ledger.identity import EffectId, number_of
from ledger.state import State
from registry.lease import Lease
from tallystick._effect import Lease as SendingTime
from tallystick.canonical import canonical_bytes
from tallystick.errors import RegistryUnavailable, TallystickError
from tests.simulation.dispatching import Call, Dispatched
from tests.simulation.engine import Box, Script
from tests.simulation.provider import DECLINED, OK, Request
from tests.simulation.site import ANSWER_SECONDS_MAX, Asking, Item, Site
from tests.simulation.store import EPOCH, Record, Version

DRIFT_MAX: Final = 0.02
TRIES: Final = 3
IDLE_SECONDS_MAX: Final = 60.0
_SENDABLE: Final = frozenset({State.PLANNED, State.RETRYABLE})


@dataclass(slots=True)
class Runtime:
    """One process from its start to its kill, known by an id made at its start."""

    site: Site
    tenant: str
    identity: UUID
    clock: Callable[[], float]

    def work(self) -> Script:
        """Take whatever there is to do, until the end of time."""
        done: set[Item] = set()
        idle_seconds = 1.0
        while True:
            yield self.site.engine.chance.between(0.1, idle_seconds)
            todo = self._todo(done)
            if not todo:
                idle_seconds = min(idle_seconds * 2, IDLE_SECONDS_MAX)
                continue
            chosen = self.site.engine.chance.pick(todo)
            has_sent = False
            try:
                if isinstance(chosen, Record):
                    has_sent = yield from self._dispatch(chosen.effect.id)
                else:
                    has_sent = yield from self._plan(chosen, done)
            except RegistryUnavailable:
                pass
            except TallystickError:
                if isinstance(chosen, Item):
                    done.add(chosen)
            idle_seconds = 1.0 if has_sent else min(idle_seconds * 1.5, IDLE_SECONDS_MAX)

    def _todo(self, done: set[Item]) -> list[Item | Record]:
        now = self.site.engine.now
        items = [
            one
            for one in self.site.items
            if one.tenant == self.tenant and one.arrives_at <= now and one not in done
        ]
        records = [
            record
            for record in self.site.store.records.values()
            if record.tenant == self.tenant and record.open and record.open.state in _SENDABLE
        ]
        if self.site.engine.fault("foreign_id"):
            return [one for one in self.site.store.records.values() if one.tenant != self.tenant]
        return [*items, *records]

    # --- asking -------------------------------------------------------------------------------

    def _plan(self, item: Item, done: set[Item]) -> Asking[bool]:
        version, lease = item.version, None
        if item.origin == "runtime":
            lease = self.site.registry.resolve_tool(version)
            yield self.site.engine.chance.between(0.1, 4.0)
        arguments, worker = item.arguments, self._worker()
        if self.site.engine.fault("conflicting_call"):
            arguments, worker = arguments | {"amount_cents": 666}, None
        if item.plans_first:
            worker = None
        call = Call(
            tenant=item.tenant,
            run=item.run,
            effect=item.effect,
            version=version,
            arguments=arguments,
            origin=item.origin,
            lease=lease,
            deadline_seconds=item.deadline_seconds,
            worker=worker,
        )
        sent_at = self.clock()
        got = yield from self._asked(call, lease)
        if got is None:
            return False
        if arguments == item.arguments and not got.owned:
            done.add(item)  # What is left of it stands in the ledger.
        return (yield from self._send(got, sent_at))

    def _asked(self, call: Call, lease: Lease | None) -> Asking[Dispatched | None]:
        """Ask until it is answered; the same nonce finds what an earlier question came to."""
        for _ in range(TRIES):
            try:
                return (yield from self.site.ask(lambda: self.site.dispatching.plan(call)))
            except RegistryUnavailable:
                if self.site.product.sends_unacknowledged and call.worker is not None:
                    yield from self._send_anyway(call)
        return None

    def _dispatch(self, effect_id: EffectId) -> Asking[bool]:
        worker, dispatching = self._worker(), self.site.dispatching
        for _ in range(TRIES):
            sent_at = self.clock()
            try:
                got = yield from self.site.ask(
                    lambda: dispatching.dispatch(self.tenant, effect_id, worker)
                )
            except RegistryUnavailable:
                continue
            return (yield from self._send(got, sent_at))
        return False

    def _worker(self) -> Worker:
        return Worker(self.identity, self.site.new_id(), "agent")

    # --- sending ------------------------------------------------------------------------------

    def _send(self, got: Dispatched, sent_at: float) -> Asking[bool]:
        if not got.owned:
            return False
        engine = self.site.engine
        record, lease = got.record, SendingTime.measured(sent_at, got.lease_seconds)
        yield engine.chance.between(0.01, 1.0)
        if engine.fault("dawdling"):
            yield engine.chance.between(3.0, 30.0)
        left = lease.send_until - self.clock()
        if left <= 0:
            yield from self._report(record, self._told(got, Verdict.FAILED, not_sent=True))
            return True
        yield 0.001  # Between the look at the clock and the first byte.
        assert got.version is not None
        assert got.lease_until is not None
        request = self._request(
            record.id,
            got.version,
            fence=got.fence,
            key=got.provider_key,
            body=canonical_bytes(record.effect.arguments).decode(),
            lease_until=(got.lease_until - EPOCH) / timedelta(seconds=1),
        )
        box = Box(timeout=min(left, ANSWER_SECONDS_MAX))
        self.site.send(request, box)
        yield box
        told = self._read(got, box)
        if engine.fault("silence"):
            return True
        if engine.fault("late_report"):
            yield engine.chance.between(3.0, 60.0)
        yield from self._report(record, told)
        return True

    def _request(
        self,
        effect_id: str,
        version: Version,
        *,
        fence: int,
        key: str,
        body: str,
        lease_until: float,
        is_acknowledged: bool = True,
    ) -> Request:
        return Request(
            tenant=self.tenant,
            effect_id=effect_id,
            effect_class=version.contract.effect_class,
            fence=fence,
            worker=f"worker:{self.identity} of agent",
            key=key,
            body=body,
            version=str(version.contract.version),
            sent_at=self.site.engine.now,
            lease_until=lease_until,
            is_acknowledged=is_acknowledged,
        )

    def _send_anyway(self, call: Call) -> Asking[None]:
        """Send without an answer that allows it: only a mutant does that."""
        store = self.site.store
        run_id = store.run_id(call.tenant, call.run)
        effect_id = EffectId(run_id, number_of(f"effect:{call.effect}"))
        request = self._request(
            str(effect_id),
            call.version,
            fence=1,
            key="",
            body=canonical_bytes(call.arguments).decode(),
            lease_until=self.site.engine.now,
            is_acknowledged=False,
        )
        self.site.send(request, Box(timeout=0.0))
        yield 0.0

    # --- reporting ----------------------------------------------------------------------------

    def _read(self, got: Dispatched, box: Box) -> Report:
        status, reference = box.answer or (0, "")
        if status == OK:
            return self._told(got, Verdict.SUCCEEDED, reference=reference)
        if status == DECLINED:
            return self._told(got, Verdict.FAILED)
        return self._told(got, Verdict.UNKNOWN)

    def _told(
        self, got: Dispatched, verdict: Verdict, *, reference: str = "", not_sent: bool = False
    ) -> Report:
        return Report(
            self.identity,
            "agent",
            got.fence,
            verdict,
            error_code="declined" if verdict is Verdict.FAILED else None,
            provider_reference=reference or None,
            not_sent=not_sent,
        )

    def _report(self, record: Record, told: Report) -> Asking[None]:
        def work():
            self.site.settling.report(record, told)
            yield 0.0

        for _ in range(TRIES):
            try:
                yield from self.site.ask(work)
            except RegistryUnavailable:
                continue
            except TallystickError:
                return  # It came too late, and is kept as evidence.
            return


def worker(site: Site, tenant: str) -> Script:
    """Start a worker: a new id, and a clock of its own that runs a little fast or slow."""
    engine = site.engine
    rate = 1.0 + engine.chance.between(-DRIFT_MAX, DRIFT_MAX)
    offset = engine.chance.between(0.0, 1e6)
    yield 0.0
    yield from Runtime(site, tenant, site.new_id(), lambda: offset + rate * engine.now).work()

"""What time decides, and what a provider is asked about: claim it, ask, settle.

A claim is one transaction for each contract, settling one for each effect; none is open while a
provider is asked. Who does not answer holds its own lane only (`reconciler.lanes`).

Any number of reconcilers may sweep at once. Rows are claimed under a lease, and every step is
written by compare-and-set, so that a reconciler that comes late changes nothing.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kernel.keys import KeyRing
from kernel.scope import Caller, Connection, Transact
from ledger import settlement
from ledger.effect import Effect, Evidence, Step
from ledger.evidence import Answer, bearing
from ledger.identity import provider_key
from ledger.judgement import Judgement
from ledger.service import Ledger, approvals, evidence, gates, sent_arguments
from ledger.service.evidence import Told
from ledger.state import State
from ledger.store import Held
from reconciler.lanes import Lane, Lanes
from reconciler.sources import Asker, Source, place_of
from reconciler.store import (
    Due,
    contracts_due,
    current_timeline,
    tenants_due,
    tenants_left_behind,
)
from tallystick.errors import TallystickError
from tallystick.evidence_source import EvidenceQuestion
from tallystick.tool_contract import Contract

_log = logging.getLogger("tallystick.reconciler")

BATCH_SIZE: Final = 10
"""For how many effects of a tenant time decides in one transaction."""
LEFT_BEHIND_SIZE: Final = 100
"""How many effects of another timeline are taken in one transaction."""
# How many transactions a process has open: together seven of the ten connections of a pool.
_PASSING_MAX: Final = 2
_CLAIMING_MAX: Final = 2
_SETTLING_MAX: Final = 3

Tenants = Sequence[tuple[UUID, str]]
Questions = set[asyncio.Task[None]]
"""Those that are open."""


@dataclass(frozen=True, slots=True)
class Claim:
    """An effect that this reconciler holds for one lease, and what it is about to ask."""

    effect: Effect
    contract: Contract
    held: Held
    question: EvidenceQuestion | None
    """None where what was sent cannot be read any more."""
    asker: Asker


@dataclass(slots=True)
class Turn:
    """What is kept of a contract from round to round while it is due."""

    place: str | None = None
    last: int = 0
    """The last round that had room for it, or 0."""


class Sweeper:
    """Takes the steps that time alone decides, and asks about what is in doubt.

    Neither waits for the other, nor a tenant for another one, nor a provider for another one.
    """

    def __init__(
        self,
        transact: Transact,
        keys: KeyRing,
        source: Source,
        actor: str,
        draw: Callable[[], float],
    ) -> None:
        """Take what it works with.

        ``actor`` names this process in the records; ``draw`` gives jitter, 0 to 1.
        """
        self.transact = transact
        self.source = source
        self.keys = keys
        self.actor = actor
        self.draw = draw
        # That of the database when nothing under way was left of another one. None ever comes back.
        self.timeline: int | None = None
        self._lanes = Lanes()
        self._turns: dict[Due, Turn] = {}
        self._round = 0
        self._news = asyncio.Event()
        self._passing = asyncio.Semaphore(_PASSING_MAX)
        self._claiming = asyncio.Semaphore(_CLAIMING_MAX)
        self._settling = asyncio.Semaphore(_SETTLING_MAX)

    async def sweep(self) -> int:
        """Do one round of both, and wait for the answers; returns how many effects took a step."""
        questions = Questions()
        try:
            return await self._begin(questions) + await self.pass_time()
        finally:
            await asyncio.gather(*questions)

    # --- time -----------------------------------------------------------------------------------

    async def pass_time(self) -> int:
        """Take the steps that time alone decides, some for each tenant; returns how many."""
        behind, due = await self.transact(None, self._whose_time)
        moved = await _all(self._pass_time(*tenant, self._leave) for tenant in behind)
        moved += await _all(self._pass_time(*tenant, self._step) for tenant in due)
        if moved:
            self._news.set()
        return moved

    async def _pass_time(
        self, tenant_id: UUID, tenant: str, take: Callable[[Ledger], Awaitable[int]]
    ) -> int:
        caller = self._caller(tenant_id, tenant)
        with _going_on(tenant):
            async with self._passing:
                return await self.transact(
                    tenant_id, lambda connection: take(self._ledger(caller, connection))
                )
        return 0

    async def _whose_time(self, connection: Connection) -> tuple[Tenants, Tenants]:
        return await self._left_behind(connection), await tenants_due(connection)

    async def _left_behind(self, connection: Connection) -> Tenants:
        """Return the tenants with effects of another timeline, which is none but after a change."""
        timeline = await current_timeline(connection)
        if timeline == self.timeline:
            return ()
        tenants = await tenants_left_behind(connection)
        if tenants:
            _log.warning("the database's timeline changed: what was under way is in doubt")
        else:
            self.timeline = timeline
        return tenants

    async def _leave(self, ledger: Ledger) -> int:
        """Take what was dispatched in another timeline for UNKNOWN."""
        behind = await ledger.store.left_behind(LEFT_BEHIND_SIZE)
        for effect, held in behind:
            assert held.open is not None
            contract = await ledger.registry.contract(effect.contract_id)
            step = settlement.left_behind(held.open, contract, actor=self.actor, now=held.read_at)
            await ledger.store.advance(effect, step)
        return len(behind)

    async def _step(self, ledger: Ledger) -> int:
        overdue = await ledger.store.overdue(BATCH_SIZE)
        for effect, held in overdue:
            assert held.open is not None
            contract = await ledger.registry.contract(effect.contract_id)
            step = settlement.overdue(held.open, contract, actor=self.actor, now=held.read_at)
            await ledger.store.advance(effect, step)
            if held.open.state in (State.PLANNED, State.RETRYABLE):
                await approvals.close(
                    ledger, effect, actor=self.actor, reason=step.reason, now=held.read_at
                )
        return len(overdue)

    # --- questions ------------------------------------------------------------------------------

    async def ask(self, *, pause_seconds: float) -> None:
        """Ask about what is in doubt, until it is cancelled; no question outlives it.

        A round begins at once after one that found work, after an answer, and after each pause.
        """
        questions = Questions()
        try:
            while True:
                self._news.clear()
                try:
                    if await self._begin(questions):
                        continue
                except TallystickError as outage:
                    _log.warning("the questions stopped: %s", outage)
                except Exception:  # noqa: BLE001 - whatever is wrong here, it is tried again
                    _log.exception("the questions stopped")
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause_seconds):
                        await self._news.wait()
        finally:
            for question in questions:
                question.cancel()
            await asyncio.gather(*questions, return_exceptions=True)

    async def _begin(self, questions: Questions) -> int:
        """Claim what the lanes have room for, and begin to ask; returns how many are claimed.

        Contracts have their turn in the order in which they had their last one.
        """
        due = await self.transact(None, contracts_due)
        turns = {one: self._turns.get(one) or Turn() for one in due}
        self._turns, self._round = turns, self._round + 1
        new = [(one, turn) for one, turn in turns.items() if turn.place is None]
        await asyncio.gather(*(self._locate(*one) for one in new))
        due.sort(key=lambda one: turns[one].last)
        begun = list[Coroutine[None, None, int]]()
        for one in due:
            turn = turns[one]
            if turn.place is None:
                continue
            lane = Lane(one.tenant_id, one.contract_id, turn.place)
            # Before any of them waits for a connection: room goes by turns, not by who is quick.
            if room := self._lanes.enter(lane):
                turn.last = self._round
                begun.append(self._take(one, lane, room, questions))
        return await _all(begun)

    async def _locate(self, due: Due, turn: Turn) -> None:
        caller = self._caller(due.tenant_id, due.tenant)
        with _going_on(due.tenant):
            async with self._claiming:
                contract = await self.transact(
                    due.tenant_id,
                    lambda connection: self._ledger(caller, connection).registry.contract(
                        due.contract_id
                    ),
                )
            turn.place = place_of(contract)

    async def _take(self, due: Due, lane: Lane, room: int, questions: Questions) -> int:
        caller = self._caller(due.tenant_id, due.tenant)
        claims = list[Claim]()
        try:
            with _going_on(due.tenant):
                async with self._claiming:
                    claims = await self.transact(
                        due.tenant_id,
                        lambda connection: self._claim(
                            self._ledger(caller, connection), due.contract_id, room
                        ),
                    )
        finally:
            self._lanes.leave(lane, room - len(claims))
        for claim in claims:
            question = asyncio.create_task(self._handle(caller, lane, claim))
            questions.add(question)
            question.add_done_callback(questions.discard)
        return len(claims)

    async def _claim(self, ledger: Ledger, contract_id: UUID, limit: int) -> list[Claim]:
        claims = list[Claim]()
        entry = await ledger.registry.entry_by_id(contract_id)
        asker = Asker(ledger.caller.tenant, is_publisher=entry.owner is None)
        for effect, held in await ledger.store.in_doubt(contract_id, limit):
            assert held.open is not None
            step = settlement.claim(held.open, entry.contract, actor=self.actor, now=held.read_at)
            await ledger.store.advance(effect, step)
            question = await _question(ledger, effect)
            claimed = await ledger.store.look(effect.id)
            claims.append(Claim(effect, entry.contract, claimed, question, asker))
        return claims

    async def _handle(self, caller: Caller, lane: Lane, claim: Claim) -> None:
        try:
            await self._reconcile(caller, claim)
        except TallystickError as fault:
            # Its lease runs out, and the next round takes it up again.
            _log.warning("effect %s was not settled: %s", claim.effect.id, fault)
        except Exception:  # noqa: BLE001 - as above, and the other effects go on
            _log.exception("effect %s was not settled", claim.effect.id)
        finally:
            self._lanes.leave(lane)
            self._news.set()

    async def _reconcile(self, caller: Caller, claim: Claim) -> None:
        judgement = await self._judgement(claim)
        async with self._settling:
            step = await self.transact(
                caller.tenant_id,
                lambda connection: self._settle(self._ledger(caller, connection), claim, judgement),
            )
        if step is not None:
            _tell(claim.effect, step)

    async def _judgement(self, claim: Claim) -> Judgement | None:
        if claim.contract.evidence is None:
            return None
        if claim.question is None:
            return Judgement(Answer.UNAVAILABLE, "what was sent cannot be read any more")
        return await self.source.ask(claim.contract, claim.question, claim.asker)

    async def _settle(
        self, ledger: Ledger, claim: Claim, judgement: Judgement | None
    ) -> Step | None:
        assert claim.held.open is not None
        effect, fence = claim.effect, claim.held.open.fence
        held = await ledger.store.hold(effect.id)
        if held.open is None or (held.open.state, held.open.fence) != (State.RECONCILING, fence):
            # Another one has it now; the answer is kept all the same, and may contradict that one.
            if judgement is not None:
                await evidence.take(ledger, effect, _told(claim, judgement))
            return None
        # In a new statement after the lock, so that what came while this waited for it is seen.
        attempts = await ledger.store.attempts(effect.id)
        last = attempts[-1]
        again_at = last.dispatched_at if last.attempt > 1 else None
        heard = bearing(await ledger.store.evidence(effect.id), last.fence, again_at)
        step = settlement.settle(
            held.open,
            claim.contract,
            await self._keep(ledger, claim, judgement, held) if judgement else None,
            heard,
            actor=self.actor,
            now=held.read_at,
            jitter=self.draw(),
        )
        await ledger.store.advance(effect, step)
        if step.to_state is State.SUCCEEDED:
            await gates.succeeded(ledger, effect, (), held.read_at)
        return step

    async def _keep(
        self, ledger: Ledger, claim: Claim, judgement: Judgement, held: Held
    ) -> Evidence:
        assert claim.held.open is not None
        return await evidence.keep(
            ledger,
            claim.effect,
            _told(claim, judgement),
            fence=claim.held.open.fence,
            now=held.read_at,
        )

    def _caller(self, tenant_id: UUID, tenant: str) -> Caller:
        return Caller(tenant_id, tenant, self.actor, frozenset())

    def _ledger(self, caller: Caller, connection: Connection) -> Ledger:
        return Ledger.over(connection, caller, self.keys)


async def _all(turns: Iterable[Coroutine[None, None, int]]) -> int:
    return sum(await asyncio.gather(*turns))


@contextmanager
def _going_on(tenant: str) -> Generator[None]:
    """Let the other turns go on, whatever is wrong with one."""
    try:
        yield
    except Exception:  # noqa: BLE001 - a defect included
        _log.exception("the sweep of tenant %s stopped", tenant)


async def _question(ledger: Ledger, effect: Effect) -> EvidenceQuestion | None:
    try:
        arguments = await sent_arguments(ledger, effect)
    except Exception:  # noqa: BLE001 - whatever it is, it must not keep the other effects from their turn
        _log.exception("what was sent for effect %s cannot be read", effect.id)
        return None
    return EvidenceQuestion(
        effect_id=str(effect.id),
        idempotency_key=provider_key(ledger.caller.tenant_id, effect.id),
        arguments=arguments,
        tenant=ledger.caller.tenant,
        tool=effect.tool,
        version=effect.version,
    )


def _told(claim: Claim, judgement: Judgement) -> Told:
    assert claim.held.open is not None
    assert claim.contract.evidence is not None
    return Told(
        source=claim.contract.evidence.source,
        answer=judgement.answer,
        observed_at=claim.held.read_at,
        detail=judgement.detail,
        provider_reference=judgement.provider_reference,
        fence=claim.held.open.fence,
    )


def _tell(effect: Effect, step: Step) -> None:
    """Say in the log, once it is committed, that an effect waits for a person."""
    if step.to_state is State.QUARANTINED:
        _log.warning("effect %s of %s is quarantined: %s", effect.id, effect.tool, step.reason)

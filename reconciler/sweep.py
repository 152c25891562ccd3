"""One sweep: claim what is due, ask the providers, settle.

Claiming is one transaction, settling one for each effect; none is open while a provider is asked.

Any number of reconcilers may sweep at once. Rows are claimed under a lease, and every step is
written by compare-and-set, so that a reconciler that comes late changes nothing.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag

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
from reconciler.sources import Asker, Source
from reconciler.store import tenants_due
from tallystick.errors import TallystickError
from tallystick.evidence_source import EvidenceQuestion
from tallystick.tool_contract import Contract

_log = logging.getLogger("tallystick.reconciler")

BATCH_SIZE: Final = 10
"""All that is claimed is asked at once: a claim that waits for its turn could outlive its lease."""


@dataclass(frozen=True, slots=True)
class Claim:
    """An effect that this reconciler holds for one lease, and what it is about to ask.

    There is no ``question`` where the arguments cannot be read: nobody can be asked about those.
    """

    effect: Effect
    contract: Contract
    held: Held
    question: EvidenceQuestion | None
    asker: Asker


@dataclass(frozen=True, slots=True)
class Sweeper:
    """What a sweep works with.

    ``actor`` names this process in the records; ``draw`` gives jitter, 0 to 1.
    """

    transact: Transact
    keys: KeyRing
    source: Source
    actor: str
    draw: Callable[[], float]

    async def sweep(self) -> int:
        """Work through everything that is due now; returns how many effects took a step."""
        moved = 0
        for tenant_id, tenant in await self.transact(None, tenants_due):
            caller = Caller(tenant_id, tenant, self.actor, frozenset())
            try:
                moved += await self._sweep_tenant(caller)
            except Exception:  # noqa: BLE001 - whatever is wrong here, the other tenants go on
                _log.exception("the sweep of tenant %s stopped", tenant)
        return moved

    async def _sweep_tenant(self, caller: Caller) -> int:
        stepped, claims = await self.transact(
            caller.tenant_id, lambda connection: self._claim(self._ledger(caller, connection))
        )

        async def handle(claim: Claim) -> None:
            try:
                await self._reconcile(caller, claim)
            except TallystickError as fault:
                # Its lease runs out, and the next sweep takes it up again.
                _log.warning("effect %s was not settled: %s", claim.effect.id, fault)
            except Exception:  # noqa: BLE001 - as above, and the other effects go on
                _log.exception("effect %s was not settled", claim.effect.id)

        await asyncio.gather(*(handle(claim) for claim in claims))
        return stepped + len(claims)

    def _ledger(self, caller: Caller, connection: Connection) -> Ledger:
        return Ledger.over(connection, caller, self.keys)

    async def _claim(self, ledger: Ledger) -> tuple[int, list[Claim]]:
        """Take the steps that time alone decides, and claim the rest."""
        stepped, claims = 0, list[Claim]()
        for effect, held in await ledger.store.due(BATCH_SIZE):
            assert held.open is not None
            entry = await ledger.registry.entry_by_id(effect.contract_id)
            contract = entry.contract
            if held.open.state is not State.UNKNOWN:
                step = settlement.overdue(held.open, contract, actor=self.actor, now=held.read_at)
                await ledger.store.advance(effect, step)
                if held.open.state in (State.PLANNED, State.RETRYABLE):
                    await approvals.close(
                        ledger, effect, actor=self.actor, reason=step.reason, now=held.read_at
                    )
                stepped += 1
                continue
            step = settlement.claim(held.open, contract, actor=self.actor, now=held.read_at)
            await ledger.store.advance(effect, step)
            question = await _question(ledger, effect)
            asker = Asker(ledger.caller.tenant, is_publisher=entry.owner is None)
            claimed = await ledger.store.look(effect.id)
            claims.append(Claim(effect, contract, claimed, question, asker))
        return stepped, claims

    async def _reconcile(self, caller: Caller, claim: Claim) -> None:
        judgement, question = None, claim.question
        if claim.contract.evidence is not None and question is None:
            judgement = Judgement(Answer.UNAVAILABLE, "what was sent cannot be read here")
        elif claim.contract.evidence is not None and question is not None:
            judgement = await self.source.ask(claim.contract, question, claim.asker)
        step = await self.transact(
            caller.tenant_id,
            lambda connection: self._settle(self._ledger(caller, connection), claim, judgement),
        )
        if step is not None:
            _tell(claim.effect, step)

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


async def _question(ledger: Ledger, effect: Effect) -> EvidenceQuestion | None:
    """Return what is asked about an effect: one that cannot be asked about holds up no other."""
    try:
        arguments = await sent_arguments(ledger, effect)
    except (InvalidTag, KeyError):  # changed by somebody, or sealed under a key that is gone
        _log.exception("the arguments of effect %s cannot be read", effect.id)
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

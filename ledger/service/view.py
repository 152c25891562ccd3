"""An effect as it stands, and what every use case works with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kernel.keys import KeyRing
from kernel.scope import Caller, Connection
from ledger.approval import Approval
from ledger.effect import Effect, OpenEffect, Outcome
from ledger.identity import EffectId
from ledger.quarantine import Word, standing
from ledger.state import State
from ledger.store import (
    ApprovalStore,
    BudgetStore,
    GateStore,
    LedgerStore,
    QuarantineStore,
    TraceStore,
)
from registry.store import RegistryStore
from registry.store_policies import PolicyStore
from tallystick.canonical import Json, parse_json
from tallystick.errors import NotFound, Refusal
from tallystick.tool_contract import Contract

APPROVAL_SECONDS: Final = 86400.0
"""How long an approval waits to be given and used, unless a setting says otherwise."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What a use case works with: the stores of one transaction, the caller, and the keys."""

    store: LedgerStore
    gates: GateStore
    budgets: BudgetStore
    approvals: ApprovalStore
    quarantine: QuarantineStore
    traces: TraceStore
    registry: RegistryStore
    policies: PolicyStore
    caller: Caller
    keys: KeyRing
    approval_seconds: float = APPROVAL_SECONDS

    @classmethod
    def over(
        cls,
        connection: Connection,
        caller: Caller,
        keys: KeyRing,
        *,
        approval_seconds: float = APPROVAL_SECONDS,
    ) -> "Ledger":
        """Return the ledger within one transaction."""
        return cls(
            store=LedgerStore(connection),
            gates=GateStore(connection),
            budgets=BudgetStore(connection),
            approvals=ApprovalStore(connection),
            quarantine=QuarantineStore(connection),
            traces=TraceStore(connection),
            registry=RegistryStore(connection),
            policies=PolicyStore(connection),
            caller=caller,
            keys=keys,
            approval_seconds=approval_seconds,
        )


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The answer to a worker.

    Only ``owned`` allows a send, with the provider's key, within the lease.
    """

    owned: bool
    fence: int
    attempt: int
    lease_seconds: float
    provider_key: str
    arguments: Mapping[str, Json] | None


@dataclass(frozen=True, slots=True)
class View:
    """An effect as it stands: what it is, where it is, how it ended, and a person's word on it.

    ``proposal`` is one person's word on a quarantined effect that waits for a second one's, and
    ``superseded_by`` what took a cancelled effect's place. ``refusal`` is told after the commit.
    """

    effect: Effect
    contract: Contract
    open: OpenEffect | None
    outcome: Outcome | None
    approval: Approval | None = None
    proposal: Word | None = None
    superseded_by: EffectId | None = None
    created: bool = False
    dispatch: Dispatch | None = None
    refusal: Refusal | None = None


async def found(ledger: Ledger, effect_id: EffectId) -> Effect:
    """Return what an effect is. Raises NotFound."""
    effect = await ledger.store.effect(effect_id)
    if effect is None:
        raise NotFound("There is no such effect.")
    return effect


async def contract_of(ledger: Ledger, effect: Effect) -> Contract:
    """Return the contract that is recorded with an effect."""
    return await ledger.registry.contract(effect.contract_id)


async def view_of(ledger: Ledger, effect: Effect) -> View:
    """Return an effect that was read already as it stands now."""
    contract = await contract_of(ledger, effect)
    held = await ledger.store.look(effect.id)
    outcomes = [] if held.open is not None else await ledger.store.outcomes(effect.id)
    approval = await ledger.approvals.look(effect.id) if may_wait(effect, contract) else None
    proposal = superseded_by = None
    if held.open is not None and held.open.state is State.QUARANTINED:
        last = await ledger.quarantine.last_word(effect.id)
        evidence = await ledger.store.evidence(effect.id) if last else ()
        proposal = standing(last, held.open, evidence)
        superseded_by = await ledger.quarantine.successor(effect.id)
    if outcomes and outcomes[-1].status is State.CANCELLED:
        superseded_by = await ledger.quarantine.successor(effect.id)
    return View(
        effect,
        contract,
        held.open,
        outcomes[-1] if outcomes else None,
        approval.at(held.read_at) if approval else None,
        proposal,
        superseded_by,
    )


def may_wait(effect: Effect, contract: Contract) -> bool:
    """Tell whether a person may have been asked about an effect: who need not look saves that."""
    return effect.policy is not None or contract.approval != "never"


async def sent_arguments(ledger: Ledger, effect: Effect) -> Mapping[str, Json]:
    """Return the arguments as they were sent, so that every attempt sends the same."""
    sealed = await ledger.store.sealed(effect.id)
    if sealed is None:
        return effect.arguments
    plain = ledger.keys.unseal(ledger.caller.tenant_id, *sealed, bound_to=str(effect.id))
    arguments = parse_json(plain)
    assert isinstance(arguments, dict)
    return arguments

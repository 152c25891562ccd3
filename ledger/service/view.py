"""An effect as it stands, and what every use case works with."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernel.keys import KeyRing
from kernel.scope import Caller
from ledger.effect import Effect, OpenEffect, Outcome
from ledger.identity import EffectId
from ledger.store import LedgerStore
from registry.store import RegistryStore
from tallystick.canonical import Json, parse_json
from tallystick.errors import NotFound, Refusal
from tallystick.tool_contract import Contract


@dataclass(frozen=True, slots=True)
class Ledger:
    """What a use case works with: the two stores of one transaction, the caller, and the keys."""

    store: LedgerStore
    registry: RegistryStore
    caller: Caller
    keys: KeyRing


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
    """An effect as it stands: what it is, where it is, how it ended.

    ``refusal`` is told after the commit.
    """

    effect: Effect
    contract: Contract
    open: OpenEffect | None
    outcome: Outcome | None
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
    return (await ledger.registry.entry_by_id(effect.contract_id)).contract


async def view_of(ledger: Ledger, effect: Effect) -> View:
    """Return an effect that was read already as it stands now."""
    contract = await contract_of(ledger, effect)
    held = await ledger.store.look(effect.id)
    outcomes = [] if held.open is not None else await ledger.store.outcomes(effect.id)
    return View(effect, contract, held.open, outcomes[-1] if outcomes else None)


async def sent_arguments(ledger: Ledger, effect: Effect) -> Mapping[str, Json]:
    """Return the arguments as they were sent, so that every attempt sends the same."""
    sealed = await ledger.store.sealed(effect.id)
    if sealed is None:
        return effect.arguments
    plain = ledger.keys.unseal(ledger.caller.tenant_id, *sealed, bound_to=str(effect.id))
    arguments = parse_json(plain)
    assert isinstance(arguments, dict)
    return arguments

"""Moves work that was never sent to another version of its tool, by a person's word (T8, T1)."""

from dataclasses import replace

from ledger import quarantine
from ledger.effect import Effect, OpenEffect, first_step
from ledger.identity import EffectId, number_of
from ledger.service import approvals
from ledger.service.people import known_of
from ledger.service.plan import (
    PlanRequest,
    first_steps,
    new_effect,
    pass_gates,
    policy_for,
    sealed,
)
from ledger.service.view import Ledger, View, contract_of, found, sent_arguments, view_of
from ledger.state import State
from ledger.store import Held
from registry.entry import Entry
from registry.service import admit, find
from tallystick.errors import EffectClassMismatch, EffectConflict, IllegalTransition
from tallystick.gates.arguments import accepted
from tallystick.tool_contract import Contract


async def migrate(ledger: Ledger, effect_id: EffectId, version: str, reason: str) -> View:
    """Plan an effect anew on another version, in place of one that was never sent and is cancelled.

    The new one has the principal, the arguments and the caller's names of the old one, and passes
    the gates of a new plan. The same again answers what took the old one's place.

    Raises:
        NotFound: There is no such effect.
        EffectConflict: It is closed.
        IllegalTransition: It was attempted or took effect, or is on that version already.
        EffectClassMismatch: The other version is of another class.
        InvalidArguments: Its arguments are not those of the other version.
        Refused: Policy or permission refuse the new call.
        Refusal: The other version takes no new plans, or asks for what the principal has not.
    """
    effect = await found(ledger, effect_id)
    recorded = await contract_of(ledger, effect)
    wanted = await find(ledger.registry, effect.tool, version)
    done = await _done(ledger, effect, wanted)
    if done is not None:
        return done
    entry, request = await _admitted(ledger, effect, recorded, wanted)
    held = await ledger.store.hold(effect_id)
    if held.open is None:
        done = await _done(ledger, effect, wanted)
        if done is None:
            raise EffectConflict(
                f"Effect {effect_id} is closed.", facts={"effect_id": str(effect_id)}
            )
        return done
    why_not = quarantine.why_no_migration(held.open, await known_of(ledger, effect))
    if why_not is None and entry.contract_id == effect.contract_id:
        why_not = f"It is recorded with {effect.tool}@{effect.version} already."
    if why_not is not None:
        raise IllegalTransition(why_not)
    arguments = accepted(entry.contract, dict(await sent_arguments(ledger, effect)))
    return await _moved(ledger, effect, held, entry, replace(request, arguments=arguments), reason)


async def _done(ledger: Ledger, effect: Effect, wanted: Entry) -> View | None:
    following = await ledger.quarantine.successor(effect.id)
    if following is None:
        return None
    successor = await found(ledger, following)
    if successor.contract_id != wanted.contract_id:
        raise EffectConflict(
            f"Effect {effect.id} went to {successor.tool}@{successor.version}.",
            facts={"effect_id": str(effect.id), "superseded_by": str(following)},
        )
    return await view_of(ledger, successor)


async def _admitted(
    ledger: Ledger, effect: Effect, recorded: Contract, wanted: Entry
) -> tuple[Entry, PlanRequest]:
    """Hold the other version, as a new plan of the one who planned the effect does."""
    contract = wanted.contract
    if contract.effect_class is not recorded.effect_class:
        raise EffectClassMismatch(
            f"{contract.name}@{contract.version} is {contract.effect_class}, and the effect is"
            f" {recorded.effect_class}.",
            facts={"recorded": recorded.effect_class, "published": contract.effect_class},
        )
    reference = contract.reference(
        credential_version=wanted.credential_bound, capabilities=effect.capabilities
    )
    entry = await admit(
        ledger.registry, _planner(ledger, effect).caller, reference, wanted.contract_id
    )
    request = PlanRequest(
        effect.run, reference, effect.arguments, key=effect.idem_key, origin=effect.origin
    )
    return entry, request


async def _moved(
    ledger: Ledger, effect: Effect, held: Held, entry: Entry, request: PlanRequest, reason: str
) -> View:
    """Cancel an effect, and write the one that takes its place."""
    assert held.open is not None
    planner, actor = _planner(ledger, effect), f"person:{ledger.caller.principal}"
    name = f"migrated:{entry.contract.version}:{effect.identity}"
    new_id = EffectId(effect.id.run_id, number_of(name))
    first = first_step(
        "T1",
        State.PLANNED,
        actor=actor,
        reason=f"in place of {effect.id}: {reason}",
        at=held.read_at,
        deadline_at=held.open.deadline_at,
    )
    policy = await policy_for(planner, request, entry)
    given_up = quarantine.superseded(
        held.open, by=actor, reason=f"superseded by {new_id}: {reason}", now=held.read_at
    )
    await ledger.store.advance(effect, given_up)
    await approvals.close(ledger, effect, actor=actor, reason=given_up.reason, now=held.read_at)
    moved = replace(new_effect(planner, request, entry, new_id, name, policy), supersedes=effect.id)
    if not await ledger.store.record(moved):
        raise EffectConflict(f"Effect {new_id} is there already.")
    admitted = await pass_gates(planner, request, entry, first, new_id, policy)
    steps = first_steps(request, entry, first, admitted, approval_seconds=ledger.approval_seconds)
    await ledger.store.begin(moved, steps, sealed(planner, entry.contract, request, new_id))
    after = steps[-1].after
    assert isinstance(after, OpenEffect)
    view = View(moved, entry.contract, after, None, created=True)
    if admitted.question is None:
        return view
    asked = await approvals.ask(planner, moved, admitted.question, entry.read_at)
    return replace(view, approval=asked)


def _planner(ledger: Ledger, effect: Effect) -> Ledger:
    """Return the ledger as whoever planned an effect has it."""
    return replace(ledger, caller=replace(ledger.caller, principal=effect.principal))

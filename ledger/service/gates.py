"""Holds calls to the gates: whose the objects are, what the policy says, what is left to spend.

A run's decisions follow one another at the row of the run. What they rest on is read after that row
is held, and what they spend is written before it is let go.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from ledger import completion
from ledger.completion import Report
from ledger.effect import Effect
from ledger.refused import GateRefusal, Refused
from ledger.service.view import Ledger, sent_arguments
from registry.policy import PolicyInForce
from tallystick.canonical import Json
from tallystick.errors import BudgetExhausted, Refusal
from tallystick.gates.denial import Denial, Gate
from tallystick.gates.permission import (
    check_identifiers,
    check_owner,
    check_result,
    check_returned,
    questions,
)
from tallystick.identifiers import identifier_of, named_at
from tallystick.policy import (
    Call,
    CapturedFact,
    Charge,
    Decision,
    History,
    Tally,
    Verdict,
    captured,
    charges,
    decide,
)
from tallystick.tool_contract import Contract


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the policy in force says of one call, and what it will be charged with."""

    policy: PolicyInForce
    call: Call
    verdict: Verdict

    @property
    def denial(self) -> Denial | None:
        """What the policy gate answers where it blocks."""
        if self.verdict.decision is not Decision.BLOCK:
            return None
        refusal = self.verdict.refusal()
        assert refusal is not None, "a verdict that blocks has its refusal"
        return Denial(Gate.POLICY, refusal, refusal.code, self.verdict.rule)


# --- permission -----------------------------------------------------------------------------------


async def permit(
    ledger: Ledger, run_id: UUID, contract: Contract, arguments: Mapping[str, Json]
) -> Denial | None:
    """Deny a call that names what its run was not given, or what belongs to somebody else.

    An owner is known from the recorded results of the run. Where the contract names no tool that
    tells it, only the application can say, and does so in its own process.
    """
    if contract.returned:
        asked = [
            (source, identifier)
            for source in contract.returned
            for _, value in named_at(dict(arguments), source.argument)
            if (identifier := identifier_of(value)) is not None
        ]
        known = await ledger.gates.returned(run_id, asked)
        denial = check_returned(contract, arguments, lambda source, one: (source, one) in known)
        if denial is not None:
            return denial
    if not contract.ownership:
        return None
    denial = check_identifiers(contract, arguments)
    if denial is not None:
        return denial
    told = [one for one in questions(contract, arguments) if one.ownership.tool is not None]
    if not told:
        return None
    said = await ledger.gates.subject(run_id)
    subject: Mapping[str, Json] = said.subject if said else {}
    owners = await ledger.gates.owners(run_id, told)
    for question, owner in zip(told, owners, strict=True):
        denial = check_owner(contract, arguments, question, owner, subject)
        if denial is not None:
            return denial
    return None


async def permit_result(
    ledger: Ledger, effect: Effect, contract: Contract, told: Report
) -> Denial | None:
    """Deny what a call that may say itself whose the object is has read of somebody else's.

    It is not kept: no identifier was returned, no fact is known, and it is no prior call.
    """
    if told.verdict is not completion.Verdict.SUCCEEDED or not contract.ownership:
        return None
    said = await ledger.gates.subject(effect.id.run_id)
    arguments = await sent_arguments(ledger, effect)
    return check_result(contract, arguments, told.result, said.subject if said else {})


# --- policy ---------------------------------------------------------------------------------------


async def rule(
    ledger: Ledger,
    run_id: UUID,
    policy: PolicyInForce,
    call: Call,
    now: datetime,
    *,
    hold: bool,
    again: bool = False,
) -> Ruling:
    """Ask the policy about a call, on what the run has done so far.

    With ``hold`` nothing else is decided in the run until the transaction ends. ``again`` is for a
    further attempt of an effect, which spends nothing any more: its first one is among the
    dispatches, and is none that came before it.
    """
    if hold:
        await ledger.gates.hold_run(run_id)
    tallies, facts = await ledger.gates.done(run_id, policy.name, policy.revision)
    if again:
        own = tallies.get(call.tool, Tally())
        tallies[call.tool] = replace(own, dispatched=max(own.dispatched - 1, 0))
        history = History(tallies, facts)
    else:
        spent = await ledger.budgets.spent(run_id, policy, _charges(policy, call), now)
        history = History(tallies, facts, spent)
    return Ruling(policy, call, decide(policy.policy, call, history))


def _charges(policy: PolicyInForce, call: Call) -> tuple[Charge, ...]:
    try:
        return charges(policy.policy, call)
    except Refusal:
        return ()  # An amount that cannot be counted: the decision itself says so.


async def spend(ledger: Ledger, run_id: UUID, ruling: Ruling, now: datetime) -> Denial | None:
    """Charge a call that is dispatched, or deny it where another run was faster.

    The run is held since the ruling.
    """
    name = ruling.policy.name
    exhausted = await ledger.budgets.take(
        run_id, ruling.policy, charges(ruling.policy.policy, ruling.call), now
    )
    if exhausted is not None:
        place = f"budgets.limits.{exhausted.name}"
        refusal = BudgetExhausted(
            f'The budget "{exhausted.name}" has too little left for {ruling.call.tool}.',
            facts={"rule": place, "policy": name},
        )
        return Denial(Gate.POLICY, refusal, refusal.code, place)
    await ledger.gates.count_dispatched(run_id, ruling.call.tool)
    return None


# --- what comes of a success ----------------------------------------------------------------------


async def facts_of(
    ledger: Ledger, effect: Effect, result: Json, redacted: Json
) -> tuple[CapturedFact, ...]:
    """Return the facts that a result gives to the policy that its effect was planned under.

    A result of null, which stands for one that is none to go by, takes away what an older one said.

    What is sensitive is kept nowhere in the clear: a fact of it has no value, and vouches for
    nothing.
    """
    if effect.policy is None or effect.policy_revision is None:
        return ()
    policy = await ledger.policies.recorded(effect.policy, effect.policy_revision)
    sent = await sent_arguments(ledger, effect)
    shown = {
        (fact.name, fact.key): fact.value
        for fact in captured(policy, Call(effect.tool, effect.arguments), redacted)
    }
    return tuple(
        fact if shown[fact.name, fact.key] == fact.value else replace(fact, value=None)
        for fact in captured(policy, Call(effect.tool, sent), result)
        if (fact.name, fact.key) in shown
    )


async def succeeded(
    ledger: Ledger, effect: Effect, facts: tuple[CapturedFact, ...], now: datetime
) -> None:
    """Count a success of an effect that was planned under a policy, and keep its facts."""
    if effect.policy is None or effect.policy_revision is None:
        return
    await ledger.gates.hold_run(effect.id.run_id)
    await ledger.gates.count_succeeded(effect.id.run_id, effect.tool)
    await ledger.gates.keep_facts(effect.id, effect.policy, effect.policy_revision, facts, now)


# --- the trace ------------------------------------------------------------------------------------


async def note(ledger: Ledger, effect: Effect, denial: Denial) -> None:
    """Write what was refused of a recorded effect into the trace of its run."""
    line = GateRefusal(
        effect.id.number,
        effect.tool,
        effect.version,
        denial,
        effect.policy,
        effect.policy_revision,
    )
    await ledger.gates.refuse(effect.id.run_id, line, principal=ledger.caller.principal)


async def note_refused(ledger: Ledger, refused: Refused) -> None:
    """Write a call that was undone into the trace of its run, which may begin with it."""
    run_id = await ledger.store.run_id(refused.run)
    await ledger.gates.refuse(run_id, refused.line, principal=ledger.caller.principal)

"""Replay: the calls of a recorded run, judged again under another policy.

A call that the policy lets through has the result that was recorded; one that it does not let
through has never been. Facts are captured anew. Where the record does not have what a decision
hangs on, because a value is redacted or a call never ran, nothing is guessed: each call is judged
in the two histories between which the truth lies, and what hangs on the difference is not known.
Pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tallystick.canonical import Json
from tallystick.errors import PolicyBlocked
from tallystick.policy.call import Call
from tallystick.policy.decision import decide
from tallystick.policy.facts import captured
from tallystick.policy.finding import Comparison, Finding
from tallystick.policy.history import History, Tally
from tallystick.policy.limits import limits_of
from tallystick.policy.policy import Policy
from tallystick.policy.terms import Decision, Limit, Operand, PerSource, Source
from tallystick.policy.trace import RecordedCall, has_redaction
from tallystick.policy.wording import sentence_for

_CAUSES_MAX: Final = 3
_DECISIONS: Final = tuple(Decision)


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """One call of the run, before and after.

    Args:
        number: Its place in the run, from 1.
        recorded: As it was recorded.
        decision: What the policy says now; None if the record does not tell, or if the policy is
            not asked: where an earlier gate refuses the call, and for a resolution.
        rule: The part of the policy that decides now.
        code: The code of the refusal now.
        message: What the model is told now; without a decision, why there is none.
    """

    number: int
    recorded: RecordedCall
    decision: Decision | None
    rule: str | None = None
    code: str | None = None
    message: str = ""

    @property
    def is_known(self) -> bool:
        """Whether it is known what becomes of the call."""
        return self.decision is not None or not self.recorded.reached_policy

    @property
    def is_changed(self) -> bool:
        """Whether the policy says something else now, or nobody knows what it says."""
        return self.recorded.reached_policy and self.decision is not self.recorded.decision


def replay(policy: Policy, calls: Iterable[RecordedCall]) -> tuple[ReplayedCall, ...]:
    """Judge the calls of a run again, in their order; a limit of a tenant counts this run alone.

    Args:
        policy: The policy to judge them by.
        calls: The run's calls, as `tallystick.policy.trace.read_calls` reads them.
    """
    told: list[ReplayedCall] = []
    runs: dict[str, _Knowledge] = {}
    for number, recorded in enumerate(calls, start=1):
        if recorded.reached_policy:
            known = runs.get(recorded.run, _Knowledge())
            told.append(_judged(policy, number, recorded, known))
            runs[recorded.run] = _after(policy, told[-1], known)
        else:
            told.append(ReplayedCall(number, recorded, None, message=_unasked(recorded)))
    return tuple(told)


def _unasked(recorded: RecordedCall) -> str:
    if recorded.ends_run:
        return "It ends the run: the policy is asked about the calls that it proposes."
    return f"The gate of the {recorded.gate} refuses it, whatever the policy says."


@dataclass(frozen=True, slots=True)
class _Knowledge:
    """What is known of what had happened.

    Args:
        least: The history without the calls that perhaps ran, or perhaps succeeded.
        most: The history with them.
        unknown: What else is not known: names of facts, and limits as findings name them.
        causes: Why, for people.
    """

    least: History = field(default_factory=History)
    most: History = field(default_factory=History)
    unknown: frozenset[str] = frozenset()
    causes: tuple[str, ...] = ()


# --- a decision, as far as it can be told ---------------------------------------------------------


def _judged(policy: Policy, number: int, recorded: RecordedCall, known: _Knowledge) -> ReplayedCall:
    call = recorded.call
    # Which findings there are hangs on the policy and the tool alone.
    pairs = zip(
        decide(policy, call, known.least).findings,
        decide(policy, call, known.most).findings,
        strict=True,
    )
    sure: list[Finding] = []
    doubtful: list[Finding] = []
    for least, most in pairs:
        if least.fired is not most.fired or _reads_unknown(least, call, known.unknown):
            doubtful.append(least)
        elif least.fired:
            sure.append(least)
    decisive = max(sure, key=_gravity, default=None)
    decision = decisive.effect if decisive else Decision.ALLOW
    open_ = [each for each in doubtful if _gravity(each) > _DECISIONS.index(decision)]
    if open_:
        return ReplayedCall(number, recorded, None, message=_doubt(open_, call, known))
    if decisive is None:
        return ReplayedCall(number, recorded, Decision.ALLOW)
    sentence = sentence_for(decisive, call.tool)
    return ReplayedCall(number, recorded, decision, decisive.rule, decisive.code, sentence)


def _gravity(finding: Finding) -> int:
    return _DECISIONS.index(finding.effect)


def _doubt(open_: Sequence[Finding], call: Call, known: _Knowledge) -> str:
    rules = ", ".join(f'"{finding.rule}"' for finding in open_)
    redacted = ("its arguments are redacted",) if has_redaction(dict(call.arguments)) else ()
    causes = (*redacted, *known.causes)
    more = f" and {len(causes) - _CAUSES_MAX} more" if len(causes) > _CAUSES_MAX else ""
    return f"The record does not tell for {rules}: {'; '.join(causes[:_CAUSES_MAX])}{more}."


def _reads_unknown(finding: Finding, call: Call, unknown: frozenset[str]) -> bool:
    """Return whether a finding hangs on a value that the record does not have."""
    if finding.rule in unknown or _amount_is_hidden(finding, call):
        return True
    comparisons = (*finding.when, *([finding.comparison] if finding.comparison else ()))
    return any(
        _operand_is_unknown(operand, call, unknown)
        for comparison in comparisons
        for operand in _operands(comparison)
    )


def _amount_is_hidden(finding: Finding, call: Call) -> bool:
    amount = finding.about.amount if isinstance(finding.about, Limit) else None
    return amount is not None and _is_hidden(amount.find(dict(call.arguments)), call)


def _operands(comparison: Comparison) -> tuple[Operand, ...]:
    sides = (comparison.condition.left, comparison.condition.right)
    return (*sides, *(side.selector for side in sides if side.selector is not None))


def _operand_is_unknown(operand: Operand, call: Call, unknown: frozenset[str]) -> bool:
    match operand.source:
        case Source.FACT:
            return operand.key in unknown
        case Source.ARG:
            assert operand.path is not None, "an argument is found by its path"
            return _is_hidden(operand.path.find(dict(call.arguments)), call)
        case Source.CONST:
            return False


def _is_hidden(found: Json, call: Call) -> bool:
    """Return whether an argument is redacted, or may be inside of one that is."""
    return has_redaction(dict(call.arguments) if found is None else found)


# --- what had happened after it -------------------------------------------------------------------


def _after(policy: Policy, replayed: ReplayedCall, known: _Knowledge) -> _Knowledge:
    recorded = replayed.recorded
    match replayed.decision:
        case Decision.BLOCK:
            return known
        case Decision.NEEDS_HUMAN if _a_person_was_asked(recorded):
            # A person was asked then, too, and what that person said is in the record.
            return _with_run(policy, recorded, known) if recorded.ran else known
        case Decision.ALLOW if recorded.ran:
            return _with_run(policy, recorded, known)
        case Decision.ALLOW:
            why = f"call {replayed.number} ({recorded.call.tool}) has no result, for it never ran"
            return _with_perhaps(policy, recorded.call, known, why, is_sure_to_run=True)
        case _:
            why = f"call {replayed.number} ({recorded.call.tool}) would perhaps not have run"
            return _with_perhaps(policy, recorded.call, known, why, is_sure_to_run=False)


def _a_person_was_asked(recorded: RecordedCall) -> bool:
    # About a proposed call a person is asked whatever the policy says.
    return recorded.decision is Decision.NEEDS_HUMAN or recorded.approved_by is not None


def _with_run(policy: Policy, recorded: RecordedCall, known: _Knowledge) -> _Knowledge:
    """Return what is known after a call that ran as it is recorded."""
    call = recorded.call
    known = _spent(policy, call, known, is_sure=True)
    if not recorded.succeeded:
        return known
    if not recorded.vouches:
        return replace(
            known,
            least=known.least.succeeded(call.tool, ()),
            most=known.most.succeeded(call.tool, ()),
        )
    facts = captured(policy, call, recorded.result)
    hidden = _hidden_facts(policy, recorded)
    # Of a fact that has but one value, the last one counts.
    told = {fact.name for fact in policy.facts_of(call.tool) if fact.per is None}
    return _Knowledge(
        least=known.least.succeeded(call.tool, facts),
        most=known.most.succeeded(call.tool, facts),
        unknown=(known.unknown - told) | hidden,
        causes=_with_cause(known, f"the record of {call.tool} is redacted")
        if hidden
        else known.causes,
    )


def _with_perhaps(
    policy: Policy, call: Call, known: _Knowledge, why: str, *, is_sure_to_run: bool
) -> _Knowledge:
    """Return what is known after a call of which the record has no result."""
    known = _spent(policy, call, known, is_sure=is_sure_to_run)
    return replace(
        known,
        most=known.most.succeeded(call.tool, ()),
        unknown=known.unknown | {fact.name for fact in policy.facts_of(call.tool)},
        causes=_with_cause(known, why),
    )


def _spent(policy: Policy, call: Call, known: _Knowledge, *, is_sure: bool) -> _Knowledge:
    """Return what is known after a call has spent its budgets, or perhaps has."""
    try:
        most = known.most.dispatched(call, policy)
        least = known.least.dispatched(call, policy) if is_sure else known.least
    except PolicyBlocked:
        # How much it spent is redacted: from here on, nobody knows what is left.
        uncounted = {f"budgets.limits.{limit.name}" for limit in limits_of(policy, call.tool)}
        return replace(
            known,
            least=_tallied(known.least, call) if is_sure else known.least,
            most=_tallied(known.most, call),
            unknown=known.unknown | uncounted,
            causes=_with_cause(known, f"an amount of {call.tool} is redacted"),
        )
    return replace(known, least=least, most=most)


def _tallied(history: History, call: Call) -> History:
    tally = history.tallies.get(call.tool, Tally())
    counted = replace(tally, dispatched=tally.dispatched + 1)
    return replace(history, tallies={**history.tallies, call.tool: counted})


def _hidden_facts(policy: Policy, recorded: RecordedCall) -> frozenset[str]:
    """Return the facts of a call's tool of which the record does not have the value, or the key."""
    arguments, result = dict(recorded.call.arguments), recorded.result
    hidden: set[str] = set()
    for fact in policy.facts_of(recorded.call.tool):
        read = [(fact.path, result)]
        if fact.per is not None:
            is_argument = fact.per_source is PerSource.ARG
            read.append((fact.per, arguments if is_argument else result))
        found = [(path.find(place), place) for path, place in read]
        # What is not there may be inside of what is redacted.
        is_hidden = any(has_redaction(place if value is None else value) for value, place in found)
        if is_hidden or not recorded.has_result:
            hidden.add(fact.name)
    return frozenset(hidden)


def _with_cause(known: _Knowledge, why: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*known.causes, why)))

"""The way of a call through the gates, to its function and back.

Each gate decides by `tallystick.gates`; here is what stands between them: who is asked, in which
order, and what is kept. What this asks of `Memory` and of a tool's function is all that would go to
the service instead, in a runtime that is connected to one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tallystick.canonical import MISSING, Json, MalformedJson, Missing
from tallystick.errors import (
    ApprovalStale,
    EffectNotRetryable,
    InvalidResult,
    NeedsHuman,
    Outage,
    PolicyBlocked,
)
from tallystick.gates.denial import Denial, Gate
from tallystick.gates.service import HARMLESS, NOBODY_KNOWS, failure, unreachable
from tallystick.policy import Call, Decision, Verdict
from tallystick.runtime.first_gates import FirstGates, Passed
from tallystick.runtime.proposal import Approval, ApprovalRequest, fingerprint
from tallystick.runtime.script import Script
from tallystick.runtime.tool import Tool, as_json
from tallystick.tool_contract import Contract


@dataclass(frozen=True, eq=False)
class Gates(FirstGates):
    """The gates of one run."""

    # --- the whole way ----------------------------------------------------------------------------

    def call(self, passed: Passed, arguments: object) -> Script[None]:
        """Take a call through all the gates, and run it."""
        tool = self.known(passed)
        if tool is None or not self.accept(passed, tool, arguments):
            return
        given, bound = self.bound(passed, tool)
        passed.denial = passed.denial or (yield from self.permission(tool.contract, given))
        passed.denial = passed.denial or self._unsettled(tool.contract, given)
        if passed.denial is not None:
            return
        call = Call(tool.contract.name, given)
        verdict = self.memory.decide(tool.contract, call, self.setting.clock())
        passed.verdict = verdict
        if verdict.decision is Decision.NEEDS_HUMAN:
            passed.denial = yield from self._asked(passed, tool, call, verdict)
        elif (refusal := verdict.refusal()) is not None:
            passed.denial = Denial(Gate.POLICY, refusal, refusal.code, verdict.rule)
        if passed.denial is None:
            yield from self.service(passed, tool, call, bound)

    # --- policy -----------------------------------------------------------------------------------

    def _unsettled(self, contract: Contract, arguments: dict[str, Json]) -> Denial | None:
        """Refuse what was done before and nobody knows how it ended, before it costs a budget."""
        if not self.memory.has_failures:
            return None
        if not self.memory.is_unsettled(fingerprint(contract, arguments, self.key)):
            return None
        refusal = EffectNotRetryable(f"{contract.name} was called so before. {NOBODY_KNOWS}")
        return Denial.of(Gate.SERVICE, refusal)

    def _asked(
        self, passed: Passed, tool: Tool, call: Call, verdict: Verdict
    ) -> Script[Denial | None]:
        """Ask a person, and pass the gates before once more: it may have taken days."""
        request = self.request(tool, call, verdict)
        if self.setting.approve is None:
            refusal = verdict.refusal()
            assert refusal is not None, "a person has to be asked"
            return Denial(Gate.POLICY, refusal, refusal.code, verdict.rule)
        try:
            word = yield partial(self.setting.approve, request)
        except Exception as error:  # noqa: BLE001 - whoever should ask failed: nothing is let pass
            passed.cause = error
            refusal = NeedsHuman(verdict.message, facts={"rule": verdict.rule})
            return Denial(Gate.POLICY, refusal, type(error).__name__, verdict.rule)
        return (yield from self.approved(passed, tool, call, verdict.rule, _approval(word)))

    def request(self, tool: Tool, call: Call, verdict: Verdict) -> ApprovalRequest:
        """Return what a person is asked."""
        return ApprovalRequest(
            tool=call.tool,
            arguments=tool.shown_arguments(dict(call.arguments)),
            fingerprint=fingerprint(tool.contract, call.arguments, self.key),
            rule=verdict.rule,
            reason=verdict.message,
            policy=verdict.policy,
        )

    def approved(
        self, passed: Passed, tool: Tool, call: Call, rule: str | None, word: Approval
    ) -> Script[Denial | None]:
        """Take a person's word, and pass the third and the fourth gate with it."""
        facts: dict[str, Json] = {"rule": rule}
        passed.approved_by = word.by
        if not word.approved:
            refusal = PolicyBlocked(f"A person did not approve {call.tool}.", facts=facts)
            return Denial(Gate.POLICY, refusal, "approval_rejected", rule)
        if word.by is not None and word.by == self.setting.principal:
            refusal = NeedsHuman(f"Another person must approve {call.tool}.", facts=facts)
            return Denial(Gate.POLICY, refusal, "same_person", rule)
        denial = yield from self.permission(tool.contract, dict(call.arguments))
        if denial is not None:
            passed.verdict = None  # The call does not come so far again.
            return denial
        now = self.setting.clock()
        verdict = self.memory.decide(tool.contract, call, now, frozenset({rule}))
        passed.verdict = verdict
        if verdict.decision is Decision.BLOCK:
            refusal = verdict.refusal()
            assert refusal is not None, "what is blocked has a refusal"
            return Denial(Gate.POLICY, refusal, refusal.code, verdict.rule)
        if verdict.decision is Decision.NEEDS_HUMAN and verdict.rule != rule:
            stale = ApprovalStale("The approval was given for another reason than there is now.")
            return Denial(Gate.POLICY, stale, stale.code, verdict.rule)
        return None

    # --- service ----------------------------------------------------------------------------------

    def service(
        self, passed: Passed, tool: Tool, call: Call, bound: Mapping[str, Any]
    ) -> Script[None]:
        """Pass the last gate: the tool itself answers."""
        try:
            passed.value = yield partial(tool.function, **bound)
        except Exception as error:  # noqa: BLE001 - whatever it is, the model gets an answer
            passed.cause = error
            passed.denial = self._failed(tool, call, error)
            return
        except BaseException as error:
            # Broken off: what it did is as unknown as after a failure without a word.
            told = self._failed(tool, call, ConnectionError())
            passed.denial = Denial(told.gate, told.refusal, type(error).__name__)
            raise
        self._succeeded(passed, tool, call)

    def _failed(self, tool: Tool, call: Call, error: Exception) -> Denial:
        known = fingerprint(tool.contract, call.arguments, self.key)
        denial = failure(error, tool.contract, failed_before=self.memory.has_failed(known))
        is_silent = isinstance(denial.refusal, Outage)
        is_harmless = tool.contract.effect_class in HARMLESS
        self.memory.failed(known, is_unsettled=is_silent and not is_harmless)
        return self.masked(tool.contract, call, denial, error)

    def masked(self, contract: Contract, call: Call, denial: Denial, error: Exception) -> Denial:
        """Return what is told of a failure that may hang on an object which is nobody's yet."""
        withheld = self.withheld(contract, call.arguments, MISSING)
        if withheld is None or unreachable(error, contract, failed_before=False) is not None:
            return denial
        is_exception = isinstance(denial.refusal, Outage)
        return replace(withheld, true_code=denial.true_code) if is_exception else withheld

    def _succeeded(self, passed: Passed, tool: Tool, call: Call) -> None:
        flaw: str | None = None
        try:
            passed.result = as_json(passed.value)
        except MalformedJson as error:
            flaw = error.detail
        self.keep(passed, tool, call, flaw, returns=self.tools.must_return(call.tool))

    def keep(
        self, passed: Passed, tool: Tool, call: Call, flaw: str | None, *, returns: bool
    ) -> None:
        """Remember what a successful call told, if its result may be told at all.

        Args:
            passed: The call, with its result.
            tool: Its tool.
            call: The call as it was made.
            flaw: Why what the tool returned has no JSON form.
            returns: Whether a contract asks which identifiers it has returned.
        """
        if flaw is not None:
            passed.result, passed.flaw = MISSING, InvalidResult.code
            detail = f"{call.tool} was done, and its result cannot be told: {flaw}."
            passed.denial = Denial.of(Gate.SERVICE, InvalidResult(detail))
        elif tool.results is not None and not isinstance(passed.result, Missing):
            passed.flaw = None if tool.results.is_valid(passed.result) else InvalidResult.code
        # A result that breaks its contract is returned, and is nothing to go by.
        told = MISSING if passed.flaw else passed.result
        ownerships = self.tools.ownerships(call.tool)
        withheld = self.withheld(tool.contract, call.arguments, passed.result)
        if withheld is None:
            self.memory.succeeded(call, told, ownerships, keep=returns)
        else:
            self.memory.told_owners(call, told, ownerships)
            passed.denial, passed.value, passed.result = withheld, None, MISSING
        if self.memory.has_failures:
            self.memory.recovered(fingerprint(tool.contract, call.arguments, self.key))


def _approval(word: object) -> Approval:
    return word if isinstance(word, Approval) else Approval(word is True)

"""How a run ends: its resolution, the writes that it proposes, and the person who lets them run."""

import threading
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tallystick.canonical import MISSING, Json
from tallystick.errors import (
    EffectNotRetryable,
    Forbidden,
    IllegalTransition,
    InvalidArguments,
    NotFound,
    Refusal,
    ServiceUnavailable,
)
from tallystick.gates.arguments import check_arguments, parsed
from tallystick.gates.denial import Denial, Gate
from tallystick.policy import Call, Decision
from tallystick.runtime.first_gates import Passed
from tallystick.runtime.passage import Gates
from tallystick.runtime.proposal import Approval, Proposal, fingerprint
from tallystick.runtime.script import Script
from tallystick.runtime.tool import Tool
from tallystick.tool_contract import Contract


@dataclass(slots=True)
class Ending:
    """What a run ended with.

    Args:
        resolution: The resolution that was accepted; None while the run goes on.
        proposals: The writes that it proposed, in order.
    """

    resolution: dict[str, Json] | None = None
    proposals: list[Proposal] = field(default_factory=list[Proposal])
    executed: set[int] = field(default_factory=set[int])
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, eq=False)
class Resolving:
    """The end of one run.

    Args:
        gates: Its gates, for whatever may be proposed.
        contract: The contract of its resolution.
        ending: What it ended with.
    """

    gates: Gates
    contract: Contract | None
    ending: Ending

    def finish(self, passed: Passed, arguments: object) -> Script[None]:
        """Take a resolution through the gates, and each write that it proposes."""
        assert self.contract is not None, "only what is declared ends a run"
        if self.ending.resolution is not None:
            passed.denial = Denial.of(Gate.CONTRACT, IllegalTransition("The run has ended."))
            return
        try:
            given = passed.arguments = parsed(self.contract, arguments)
            check_arguments(self.contract, given)
        except InvalidArguments as error:
            passed.denial = Denial.of(Gate.ARGUMENTS, error)
            return
        passed.denial = yield from self.gates.permission(self.contract, given)
        # It has no result but itself, and so nothing that could say whose an object is.
        passed.denial = passed.denial or self.gates.withheld(self.contract, given, MISSING)
        if passed.denial is not None:
            return
        proposals = yield from self._proposals(passed, given)
        if passed.denial is not None:
            return
        with self.ending.lock:
            if self.ending.resolution is None:
                self.ending.resolution = given
                self.ending.proposals.extend(proposals)
        passed.value = passed.result = given

    def _proposals(self, passed: Passed, resolution: dict[str, Json]) -> Script[list[Proposal]]:
        propose = self.gates.setting.proposals
        if propose is None:
            return []
        try:
            asked: list[tuple[str, Any]] = [*(yield partial(propose, dict(resolution)))]
        except Refusal as error:
            # The application reads the resolution too, and may find what no schema can say.
            passed.denial = Denial.of(Gate.ARGUMENTS, error)
            return []
        except Exception as error:  # noqa: BLE001 - a model's loop goes on, whatever is broken here
            passed.cause = error
            refusal = ServiceUnavailable("The resolution could not be read.")
            passed.denial = Denial(Gate.SERVICE, refusal, type(error).__name__)
            return []
        calls: list[tuple[Tool, Call]] = []
        for number, (name, arguments) in enumerate(asked, start=1):
            one = Passed(name)
            tool = self.gates.known(one)
            if tool is not None and self.gates.accept(one, tool, arguments):
                given, _ = self.gates.bound(one, tool)
                one.denial = one.denial or (yield from self.gates.permission(tool.contract, given))
                calls.append((tool, Call(tool.contract.name, given)))
            if one.denial is not None:
                passed.denial = _of_proposal(number, name, one.denial)
                return []
        return self._held_to_policy(passed, calls)

    def _held_to_policy(self, passed: Passed, calls: list[tuple[Tool, Call]]) -> list[Proposal]:
        """Pass the fourth gate with all of them together: each counts for the next."""
        verdicts = self.gates.memory.foresee(
            [(tool.contract, call) for tool, call in calls], self.gates.setting.clock()
        )
        proposals: list[Proposal] = []
        for number, ((tool, call), verdict) in enumerate(
            zip(calls, verdicts, strict=True), start=1
        ):
            refusal = verdict.refusal()
            if verdict.decision is Decision.BLOCK and refusal is not None:
                denial = Denial(Gate.POLICY, refusal, refusal.code, verdict.rule)
                passed.denial = _of_proposal(number, call.tool, denial)
                return []
            known = fingerprint(tool.contract, call.arguments, self.gates.key)
            proposals.append(
                Proposal(number, call.tool, call.arguments, known, verdict.rule, verdict.message)
            )
        return proposals

    def execute(self, passed: Passed, proposal: Proposal, approved_by: str) -> Script[None]:
        """Run a proposed write, once, with a person's word; the gates are asked again."""
        tool = self._claimed(passed, proposal, approved_by)
        if tool is None:
            return
        may_run_later = True
        try:
            passed.tool, passed.arguments = tool, dict(proposal.arguments)
            given, bound = self.gates.bound(passed, tool)
            call = Call(proposal.tool, given)
            passed.denial = passed.denial or (
                yield from self.gates.approved(
                    passed, tool, call, proposal.rule, Approval(approved=True, by=approved_by)
                )
            )
            if passed.denial is None:
                may_run_later = False
                yield from self.gates.service(passed, tool, call, bound)
        finally:
            if may_run_later:
                with self.ending.lock:
                    self.ending.executed.discard(proposal.number)

    def _claimed(self, passed: Passed, proposal: Proposal, approved_by: str) -> Tool | None:
        tool = self.gates.tools.named(proposal.tool)
        refusal: Refusal | None = None
        with self.ending.lock:
            if tool is None or not any(each is proposal for each in self.ending.proposals):
                refusal = NotFound("There is no such proposal in this run.")
            elif not approved_by or approved_by == self.gates.setting.principal:
                refusal = Forbidden("Another person than the proposer must approve a proposal.")
            elif proposal.number in self.ending.executed:
                refusal = EffectNotRetryable("The proposal has run already, and runs once.")
            else:
                self.ending.executed.add(proposal.number)
                return tool
        passed.denial = Denial.of(Gate.CONTRACT, refusal)
        return None


def _of_proposal(number: int, name: str, denial: Denial) -> Denial:
    """Return a denial that says which of the proposals it is about."""
    refusal = denial.refusal
    told = type(refusal)(f"Action {number}, {name}: {refusal.detail}", facts=refusal.facts)
    return replace(denial, refusal=told)

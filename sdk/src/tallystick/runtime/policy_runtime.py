"""`PolicyRuntime`: tools in one process, behind the five gates, without a server.

No model takes part in any decision, and nothing is repaired: a call that does not fit is refused,
with a sentence that a model can act on.
"""

import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar, Unpack, cast

from tallystick.answer import LIMIT, Answer, refused, told_code, told_message
from tallystick.canonical import Json, Missing
from tallystick.catalog import Catalog
from tallystick.errors import InvalidRequest, ServiceUnavailable, ToolContractNotFound
from tallystick.gates.denial import Denial, Gate
from tallystick.policy import Decision, Policy
from tallystick.runtime.first_gates import Passed
from tallystick.runtime.memory import Memory, Spending
from tallystick.runtime.passage import Gates
from tallystick.runtime.proposal import Proposal
from tallystick.runtime.resolving import Ending, Resolving
from tallystick.runtime.script import Script, is_asynchronous, run, run_async
from tallystick.runtime.setting import Options, Setting
from tallystick.runtime.tool import Toolbox
from tallystick.runtime.trace import Entry, Trace
from tallystick.schema import redact
from tallystick.tool_contract import Contract

POLICY_VARIABLE: Final = "TALLYSTICK_POLICY"
TRACE_VARIABLE: Final = "TALLYSTICK_TRACE"

F = TypeVar("F", bound=Callable[..., Any])


class PolicyRuntime:
    """One run of an agent: its tools, the policy that they are held to, and what has happened.

    Safe to use from many threads and tasks at once. `for_run` makes the next run's.

    Args:
        policy: The policy in force; None for none.
        **options: Any of these:

            contracts: Where a tool's contract is looked up by its name.
            subject: On whose behalf the run acts, such as `{"customer_id": "C-88930"}`; never from
                a model. `set_subject` says it later.
            principal: Who acts. Nobody of this name can approve what the run asks for.
            tenant: The slug that stands for `{tenant}` in capabilities.
            granted: The capabilities that the principal holds; all that are declared, if None.
            owner_of: Says who owns an object, by its kind and identifier; None for nobody.
            approve: Asks a person about an `ApprovalRequest`, and returns True, False or an
                `Approval`. Without it, what needs a person is refused.
            resolution: The contract of the call that ends a run.
            proposals: Says which writes a resolution proposes, as pairs of tool and arguments.
            writes: Whether writes `run` when they pass the gates, or a model is not offered them at
                all and can only `propose` them in its resolution.
            injected: What parameters of tools are filled with that no caller gives, by name.
            trace: A file that each call is added to as one line of JSON.
            clock: Says what time it is.
            client: Connects the run to the service, which then decides: its policy, budgets,
                approvals and records. A tool's contract is published there as it is here; its
                results are JSON; and where the contract has an idempotency key, the function takes
                the injected parameter `effect`, a `tallystick.Effect`.
            run: With `client`, the run's name there. A run that is taken up again under its name
                is answered from the ledger for what it did before.
    """

    def __init__(self, policy: Policy | None = None, **options: Unpack[Options]) -> None:
        setting = Setting(**options)
        if policy is not None and setting.client is not None:
            raise InvalidRequest("with a client the policy in force there decides: publish it")
        given = setting.contracts
        catalog = (
            given
            if isinstance(given, Catalog) or given is None
            else Catalog(given, tenant=setting.tenant)
        )
        tools = Toolbox(catalog, policy, setting.resolution)
        self._start(policy, setting, tools, Spending())

    def _start(
        self, policy: Policy | None, setting: Setting, tools: Toolbox, spending: Spending
    ) -> None:
        self._policy = policy
        self._setting = setting
        self._tools = tools
        self._spending = spending
        self._asks_later = any(
            map(is_asynchronous, (setting.owner_of, setting.approve, setting.proposals))
        )
        self._name = setting.run or secrets.token_hex(4)
        self._trace = Trace(setting.trace)
        self._ending = Ending()
        gates = Gates(
            setting=setting,
            tools=tools,
            memory=Memory(policy, setting.tenant, setting.subject, spending),
            granted=None if setting.granted is None else frozenset(setting.granted),
            key=secrets.token_bytes(32),
            traced=self._traced,
        )
        if setting.client is not None:
            from tallystick.runtime.connected import connected

            gates = connected(gates)
        self._gates = gates if setting.writes == "run" else replace(gates, offers=_is_read)
        self._resolving = Resolving(gates, setting.resolution, self._ending)

    @classmethod
    def from_file(cls, path: str | Path, **options: Unpack[Options]) -> "PolicyRuntime":
        """Make a runtime of a policy file.

        The trace goes to the file that `TALLYSTICK_TRACE` names, unless `trace` says otherwise.

        Raises:
            InvalidPolicy: The file is no policy, with the line of each fault.
            OSError: The file cannot be read.
        """
        stated = os.environ.get(TRACE_VARIABLE)
        if stated:
            options.setdefault("trace", stated)
        return cls(Policy.load(path), **options)

    @classmethod
    def from_environment(cls, **options: Unpack[Options]) -> "PolicyRuntime":
        """Make a runtime of the policy file that `TALLYSTICK_POLICY` names.

        `registry policy run` sets it, so that a script under it needs no flags.

        Raises:
            InvalidRequest: The variable is not set.
            InvalidPolicy: As `from_file`.
            OSError: As `from_file`.
        """
        path = os.environ.get(POLICY_VARIABLE)
        if not path:
            raise InvalidRequest(f"{POLICY_VARIABLE} names no policy file")
        return cls.from_file(path, **options)

    def for_run(self, **changes: Unpack[Options]) -> "PolicyRuntime":
        """Return a runtime for another run: the same tools and policy, and nothing has happened.

        Limits of a tenant are shared with this one.

        Args:
            **changes: What is otherwise in the other run. Its contracts and its resolution are the
                same.
        """
        if changes.keys() & {"contracts", "resolution"}:
            raise InvalidRequest("contracts and resolution belong to the tools, which are shared")
        if self._setting.client is not None and changes.get("run") is None:
            raise InvalidRequest("another run has another name: give run")
        other = object.__new__(type(self))
        other._start(self._policy, replace(self._setting, **changes), self._tools, self._spending)
        return other

    def set_subject(self, subject: Mapping[str, Json]) -> None:
        """Say on whose behalf the run acts where that becomes known while it goes on.

        It is said once and for all; the same again changes nothing. Until then, no object of
        anybody's is there. With a client, the service is told before the next call.

        Args:
            subject: As the option; from what has authenticated the customer, never from a model.

        Raises:
            EffectConflict: The run acts for somebody else.
        """
        self._gates.memory.set_subject(subject)

    # --- tools ------------------------------------------------------------------------------------

    def tool(
        self,
        name: str | None = None,
        /,
        *,
        contract: Contract | None = None,
        injected: Iterable[str] = (),
    ) -> Callable[[F], F]:
        """Add a function, sync or async, as a tool; the function itself stays as it is.

        Its contract is the one that is given, or the newest of its name in `contracts`, or that of
        `@contract`, or one that is made of its signature: a read if the policy says so.

        Args:
            name: The tool's name; without it, the contract's or the function's.
            contract: Its contract.
            injected: Parameters that are filled in at run time, and that no caller gives.

        Raises:
            InvalidRequest: The contract has another name.
            NameTaken: There is a tool of this name.
            Refusal: What `contracts` refuses to resolve.
            SignatureUnsupported: No contract can be made of the function.
        """

        def add(function: F) -> F:
            self._tools.add(name, function, contract, tuple(injected))
            return function

        return add

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools for a model in Chat Completions form, always in the same order.

        Writes are not among them where they are only proposed. Dots in names are underscores there,
        and calls are understood by either name.
        """
        kinds = ("read", "write") if self._setting.writes == "run" else ("read",)
        return cast("list[dict[str, Any]]", self._tools.shown(kinds))

    # --- calls ------------------------------------------------------------------------------------

    def call(self, name: str, /, **arguments: Any) -> Any:  # noqa: ANN401 - what the tool returns
        """Run a tool if all gates let the call pass, and return what it returns.

        Raises:
            Refusal: A gate said no, by its code; the function has not run, unless the code is
                `invalid_result`.
            Outage: The tool failed.
            ToolFailed: It failed by one of its contract's errors.
        """
        return _value(self._run(self._called(name, arguments), name))

    async def acall(self, name: str, /, **arguments: Any) -> Any:  # noqa: ANN401 - as `call`
        """Do as `call`, and await a tool that is asynchronous; others run in a thread."""
        return _value(await run_async(self._called(name, arguments)))

    def answer(self, name: str, arguments: Mapping[str, Any] | str) -> Answer:
        """Return what a model is answered for a call, whatever it sent. Its `text()` is bounded.

        Args:
            name: The tool, as the model names it.
            arguments: The arguments, as an object or as JSON text.
        """
        return self._answer(self._run(self._called(name, arguments), name))

    async def aanswer(self, name: str, arguments: Mapping[str, Any] | str) -> Answer:
        """Do as `answer`, and await a tool that is asynchronous; others run in a thread."""
        return self._answer(await run_async(self._called(name, arguments)))

    # --- the end of a run -------------------------------------------------------------------------

    def finish(self, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
        """End the run with a resolution, and keep the writes that it proposes.

        Raises:
            Refusal: The resolution, or one of the writes, does not pass the gates; nothing is kept.
        """
        return _value(self._run(self._finished(arguments)))

    async def afinish(self, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
        """Do as `finish`, and await what is asynchronous."""
        return _value(await run_async(self._finished(arguments)))

    def execute(self, proposal: Proposal, *, approved_by: str) -> Any:  # noqa: ANN401 - as `call`
        """Run a proposed write, once; permission and policy are asked again.

        Args:
            proposal: One of `proposals`.
            approved_by: The person who says so, who is not the principal.

        Raises:
            Refusal: As `call`, and if it has run, or nobody else approves it.
            Outage: As `call`.
            ToolFailed: As `call`.
        """
        return _value(self._run(self._executed(proposal, approved_by), proposal.tool))

    async def aexecute(self, proposal: Proposal, *, approved_by: str) -> Any:  # noqa: ANN401
        """Do as `execute`, and await a tool that is asynchronous."""
        return _value(await run_async(self._executed(proposal, approved_by)))

    @property
    def resolution(self) -> dict[str, Json] | None:
        """The resolution that ended the run; None while it goes on."""
        return self._ending.resolution

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """The writes that wait for a person, or have run with a person's word."""
        return tuple(self._ending.proposals)

    @property
    def trace(self) -> tuple[Entry, ...]:
        """Every call so far, with the true reason of each refusal."""
        return self._trace.entries

    # --- inside -----------------------------------------------------------------------------------

    def _called(self, name: str, arguments: object) -> Script[Passed]:
        if self._tools.ends_a_run(name):
            return (yield from self._finished(arguments))
        passed = Passed(name)
        return (yield from self._traced(passed, self._gates.call(passed, arguments)))

    def _finished(self, arguments: object) -> Script[Passed]:
        contract = self._setting.resolution
        passed = Passed("finish" if contract is None else contract.name)
        if contract is None:
            refusal = ToolContractNotFound("The runtime has no contract of a resolution.")
            passed.denial = Denial.of(Gate.CONTRACT, refusal)
            return passed
        return (yield from self._traced(passed, self._resolving.finish(passed, arguments)))

    def _executed(self, proposal: Proposal, approved_by: str) -> Script[Passed]:
        passed = Passed(proposal.tool)
        steps = self._resolving.execute(passed, proposal, approved_by)
        return (yield from self._traced(passed, steps))

    def _traced(self, passed: Passed, steps: Script[None]) -> Script[Passed]:
        at = self._setting.clock()
        try:
            yield from steps
        except BaseException as error:
            refusal = ServiceUnavailable("The call was broken off.")
            broken = Denial(Gate.SERVICE, refusal, type(error).__name__)
            passed.denial = passed.denial or broken
            raise
        finally:
            self._trace.add(self._entry(passed, at))
        return passed

    def _run(self, script: Script[Passed], tool: str | None = None) -> Passed:
        found = None if tool is None else self._tools.named(tool)
        if self._asks_later or (found is not None and self._tools.is_awaited(found)):
            raise TypeError("this can only be awaited: use acall, aanswer, afinish or aexecute")
        return run(script)

    def _answer(self, passed: Passed) -> Answer:
        contract = self._contract(passed)
        limit = LIMIT if contract is None else contract.result_limit
        if passed.denial is not None:
            return refused(passed.denial.refusal, limit)
        assert not isinstance(passed.result, Missing), "a call that was let pass has a result"
        return Answer(passed.result, None, limit)

    def _contract(self, passed: Passed) -> Contract | None:
        if passed.tool is not None:
            return passed.tool.contract
        return self._setting.resolution if self._tools.ends_a_run(passed.name) else None

    def _entry(self, passed: Passed, at: datetime) -> Entry:
        denial, verdict, contract = passed.denial, passed.verdict, self._contract(passed)
        decision = Decision.ALLOW if denial is None else Decision.BLOCK
        if verdict is not None:
            decision = verdict.decision
        if denial is not None:
            told, true_code = told_code(denial.refusal), denial.true_code
        else:
            told, true_code = "ok", passed.flaw or "ok"
        arguments, result = self._shown(passed)
        return Entry(
            run=self._name,
            policy=None if self._policy is None else self._policy.digest,
            at=at,
            seconds=(self._setting.clock() - at).total_seconds(),
            tool=passed.name if contract is None else contract.name,
            arguments=arguments,
            decision=decision.value,
            gate=None if denial is None else denial.gate.value,
            code=told,
            true_code=true_code,
            rule=None if verdict is None else verdict.rule,
            message="" if denial is None else told_message(denial.refusal),
            result=result if passed.asked_for is None else None,
            approved_by=passed.approved_by,
            ends_run=passed.tool is None and contract is not None,
            asked_for=passed.asked_for,
        )

    def _shown(self, passed: Passed) -> tuple[Json, Json]:
        """Return arguments and result without what is sensitive; without a contract, nothing."""
        tool, resolution = passed.tool, self._setting.resolution
        arguments: Json = passed.arguments
        result = None if isinstance(passed.result, Missing) else passed.result
        if tool is not None:
            return tool.shown_arguments(arguments), tool.shown_result(result)
        if resolution is not None and self._tools.ends_a_run(passed.name):
            shown = redact(arguments, resolution.input_schema)
            return shown, None if result is None else shown
        return None, None


def _is_read(contract: Contract) -> bool:
    return contract.kind == "read"


def _value(passed: Passed) -> Any:  # noqa: ANN401 - what the tool returns
    if passed.denial is not None:
        raise passed.denial.refusal from passed.cause
    return cast("Any", passed.value)

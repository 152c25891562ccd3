"""The way of a call in a runtime that is connected to the service.

The first two gates are passed here, and of the third what only the application can say. The rest is
the service's: the call is an effect of the run there, held to its records, its policy, its budgets
and its approvals, and the function is the effect's body. Reads are effects as well, so that facts
and returned identifiers are in the ledger.

A call is known again by its run, its tool and its identifying arguments. What waits for a person is
called once more as it was, and runs then. An equal write is the same one: it is done once in a run,
and answered from the ledger. An equal read is another, once the one before has its result.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

from tallystick._effect import OutcomeUnreported
from tallystick.answer import told_code
from tallystick.canonical import Json, MalformedJson, Missing, canonical_bytes, pointer_split
from tallystick.client import AsyncClient, Client, ContractEntry
from tallystick.effect_class import EffectClass
from tallystick.errors import (
    CredentialPolicyChanged,
    InvalidArguments,
    InvalidRequest,
    RegistryUnavailable,
    TallystickError,
    ToolSchemaDrift,
)
from tallystick.gates.denial import Denial, Gate
from tallystick.gates.permission import (
    Question,
    acts_for,
    check_capabilities,
    check_identifiers,
    own_questions,
    questions,
)
from tallystick.identifiers import asking_for
from tallystick.policy import Call
from tallystick.runtime.first_gates import Passed
from tallystick.runtime.occurrence import Occurrences
from tallystick.runtime.passage import Gates
from tallystick.runtime.proposal import fingerprint
from tallystick.runtime.script import Script, run, run_async
from tallystick.runtime.service_refusal import (
    Ended,
    is_settled,
    of_function,
    of_service,
    verdict_of,
)
from tallystick.runtime.tool import Tool, as_json, injected_into
from tallystick.tool_contract import Contract, ToolReference

Origin: TypeAlias = Literal["runtime", "look_up"]

EFFECT: Final = "effect"
"""The injected parameter by which a function is given the effect that it is the body of."""


class Effect(Protocol):
    """What is needed of `tallystick.Effect`, and of `AsyncEffect`, whose reports are awaited."""

    @property
    def recorded(self) -> bool:
        """Whether the ledger knows of the call."""
        ...

    @property
    def arguments(self) -> dict[str, Json]:
        """The arguments to send, as they are recorded."""
        ...

    def failed(self, code: str, message: str) -> Awaitable[None] | None:
        """Report that nothing was done."""
        ...


class Connection:
    """What one run has with the service.

    Args:
        client: The way to it; functions that are awaited need an `AsyncClient`.
        run: The run's name there.
    """

    def __init__(self, client: Client | AsyncClient, run: str) -> None:
        self._client = client
        self.run = run
        self.occurrences = Occurrences()
        self.references: dict[str, ToolReference] = {}
        self.has_begun = False
        self.is_asynchronous = isinstance(client, AsyncClient)

    def ask(self, method: str, *arguments: object, **terms: object) -> Script[Any]:
        """Call a method of the client, and await it where it is asynchronous."""
        asked = cast("Callable[..., object]", getattr(self._client, method))
        return (yield partial(asked, *arguments, **terms))


def connected(gates: Gates) -> "ConnectedGates":
    """Return the gates of a run as the service has them, by the setting's client."""
    setting = gates.setting
    assert setting.client is not None, "a runtime is connected by its client"
    assert setting.run is not None, "a client comes with the name of a run"
    return ConnectedGates(
        setting=setting,
        tools=gates.tools,
        memory=gates.memory,
        granted=gates.granted,
        key=gates.key,
        traced=gates.traced,
        connection=Connection(setting.client, setting.run),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class ConnectedGates(Gates):
    """The gates of one run that the service keeps the records of."""

    connection: Connection

    def call(self, passed: Passed, arguments: object) -> Script[None]:
        """Take a call through the gates that are here, and through the service's."""
        tool = self.known(passed)
        if tool is None or not self.accept(passed, tool, arguments):
            return
        given = passed.arguments
        assert given is not None, "the second gate has let them pass"
        passed.denial = yield from self.permission(tool.contract, given)
        if passed.denial is None:
            yield from self.service(passed, tool, Call(tool.contract.name, given), given)

    def accept(self, passed: Passed, tool: Tool, arguments: object) -> bool:
        """Pass the second gate: the arguments are the contract's, and the function takes them."""
        if not super().accept(passed, tool, arguments):
            return False
        try:
            if tool.binding is not None and passed.arguments is not None:
                tool.binding.read(passed.arguments)
        except InvalidArguments as error:
            passed.denial = Denial.of(Gate.ARGUMENTS, error)
        return passed.denial is None

    # --- permission -------------------------------------------------------------------------------

    def permission(self, contract: Contract, arguments: dict[str, Json]) -> Script[Denial | None]:
        """Ask the application who owns what, and have the service know what a tool says of it."""
        denial = check_capabilities(contract, self.setting.tenant, self.granted)
        denial = denial or check_identifiers(contract, arguments)
        if denial is not None:
            return denial
        own = own_questions(contract, arguments)
        for question in (*questions(contract, arguments), *own):
            has_tool = question.ownership.tool is not None
            is_nobodys = question in own and acts_for(question, self.memory.subject) is None
            if self.setting.owner_of is not None or not has_tool or is_nobodys:
                denial = yield from self._held_to_owner(contract, arguments, question)
            if denial is None and has_tool and question not in own:
                denial = yield from self._recorded(contract, arguments, question)
            if denial is not None:
                return denial
        return None

    def _recorded(
        self, contract: Contract, arguments: dict[str, Json], question: Question
    ) -> Script[Denial | None]:
        """Call the declared tool, which only reads, unless its result is in the ledger already.

        Whatever it says, the service decides, which knows of no owner if it says none: here only
        its absence stops the call.
        """
        ownership = question.ownership
        if not isinstance(self.memory.owner(ownership, question.identifier), Missing):
            return None
        tool = self.teller(ownership)
        if tool is None:
            return None
        look = Passed(tool.contract.name, tool)
        if not self.accept(look, tool, asking_for(ownership, question.identifier)):
            return None
        assert look.arguments is not None, "the second gate has let them pass"
        call = Call(tool.contract.name, look.arguments)
        yield from self.service(look, tool, call, look.arguments, origin="look_up")
        if look.denial is None or not isinstance(look.cause, Exception):
            return None
        if isinstance(look.denial.refusal, RegistryUnavailable):
            return look.denial
        return self._unreachable(contract, arguments, look.cause, tool.contract)

    # --- service ----------------------------------------------------------------------------------

    def service(
        self,
        passed: Passed,
        tool: Tool,
        call: Call,
        bound: Mapping[str, Any],
        *,
        origin: Origin = "runtime",
    ) -> Script[None]:
        """Have the service decide about a call, and the function run as the body of its effect.

        Raises:
            InvalidRequest: The function cannot be the body of an effect.
        """
        del bound  # the ledger has what is sent
        self._check_function(tool)
        body = _Body(tool, self.setting.injected)
        is_read = tool.contract.effect_class is EffectClass.PURE
        known, occurrences = _identity(tool.contract, call), self.connection.occurrences
        number = occurrences.take(known, is_shared=not is_read)
        is_over = False
        try:
            ended = yield from self._effect(passed, call, body, number, origin)
            is_over = is_read if ended is None else ended.is_over
        finally:
            occurrences.give_back(known, number, is_over=is_over)
        passed.verdict = verdict_of(None if ended is None else ended.denial)
        if ended is None:
            # Which identifiers it returned, the ledger knows.
            self.keep(passed, tool, call, body.flaw, returns=False)
            return
        passed.denial = ended.denial
        if ended.is_of_tool and isinstance(passed.cause, Exception):
            passed.denial = self.masked(tool.contract, call, ended.denial, passed.cause)

    def _check_function(self, tool: Tool) -> None:
        if tool.is_asynchronous and not self.connection.is_asynchronous:
            raise InvalidRequest(f"{tool.contract.name} is awaited, which needs an AsyncClient")
        injected = frozenset[str]() if tool.binding is None else tool.binding.injected
        if tool.contract.idempotency is not None and EFFECT not in injected:
            raise InvalidRequest(
                f"{tool.contract.name} sends the provider a key: give its function the injected "
                f"parameter {EFFECT!r}, which has it"
            )

    def _effect(
        self, passed: Passed, call: Call, body: "_Body", number: int, origin: Origin
    ) -> Script[Ended | None]:
        """Run a call as an effect. Returns how it ended, or None where it has a result."""
        contract, connection = body.tool.contract, self.connection
        work = body.awaited if connection.is_asynchronous else body
        try:
            reference = yield from self._reference(contract)
            yield from self._begin()
            passed.value = passed.result = yield from connection.ask(
                "call",
                reference,
                dict(call.arguments),
                work,
                run=connection.run,
                occurrence=number,
                origin=origin,
            )
        except Exception as error:
            passed.cause = error
            if body.error is not None:
                passed.cause = body.error
                return self._failed_body(contract, call, body.error)
            if isinstance(error, OutcomeUnreported) and body.has_run:
                # It is done, and the ledger finds that out by itself.
                passed.value = passed.result = error.result
                return None
            if isinstance(error, CredentialPolicyChanged):
                connection.references.pop(contract.name, None)
            if isinstance(error, TallystickError):
                return of_service(error, contract)
            raise
        return None

    def _failed_body(self, contract: Contract, call: Call, error: Exception) -> Ended:
        known = fingerprint(contract, call.arguments, self.key)
        ended = of_function(error, contract, failed_before=self.memory.has_failed(known))
        self.memory.failed(known, is_unsettled=False)
        return ended

    def _reference(self, contract: Contract) -> Script[ToolReference]:
        """Return the tuple of a contract, which must be published just as the tool has it."""
        known = self.connection.references.get(contract.name)
        if known is not None:
            return known
        entry: ContractEntry = yield from self.connection.ask(
            "contract", contract.name, str(contract.version)
        )
        if entry.contract.contract_digest != contract.contract_digest:
            raise ToolSchemaDrift(
                f"{contract.name}@{contract.version} is published with another contract."
            )
        self.connection.references[contract.name] = entry.reference
        return entry.reference

    def _begin(self) -> Script[None]:
        """Say on whose behalf the run acts, before its first call."""
        subject = self.memory.subject
        if subject and not self.connection.has_begun:
            yield from self.connection.ask("begin_run", self.connection.run, subject)
            self.connection.has_begun = True


class _Body:
    """What runs once the service has let an effect pass: the tool's function.

    Attributes:
        has_run: Whether the function has returned.
        error: What it raised.
        flaw: Why what it returned has no JSON form.
    """

    def __init__(self, tool: Tool, injected: Mapping[str, object]) -> None:
        self.tool = tool
        self.has_run = False
        self.error: Exception | None = None
        self.flaw: str | None = None
        self._injected = injected

    def __call__(self, effect: Effect) -> Json:
        return run(self._steps(effect))

    async def awaited(self, effect: Effect) -> Json:
        """Do as a call, and await a function that is asynchronous."""
        return await run_async(self._steps(effect))

    def _steps(self, effect: Effect) -> Script[Json]:
        if not effect.recorded:
            raise RegistryUnavailable("The registry cannot be asked whether the call may run.")
        tool = self.tool
        given = _recorded(tool.contract, effect)
        bound = given if tool.binding is None else tool.binding.read(given)
        injected = injected_into(tool, {**self._injected, EFFECT: effect})
        try:
            value = yield partial(tool.function, **bound, **injected)
        except Exception as error:
            self.error = error
            if not is_settled(error, tool.contract):
                raise
            refusal = of_function(error, tool.contract, failed_before=False).denial.refusal
            yield partial(effect.failed, told_code(refusal), refusal.detail)
            return None
        self.has_run = True
        try:
            return as_json(value)
        except MalformedJson as error:
            self.flaw = error.detail
            return None


def _recorded(contract: Contract, effect: Effect) -> dict[str, Json]:
    """Return the arguments for the function: as they are recorded, the same in every attempt.

    A provider's key in an argument that the contract does not declare is left out: the function has
    it from its effect.
    """
    given = effect.arguments
    place = contract.idempotency.argument if contract.idempotency else None
    if place is not None:
        name, declared = pointer_split(place)[0], contract.input_schema.get("properties")
        if not (isinstance(declared, dict) and name in declared):
            given.pop(name, None)
    return given


def _identity(contract: Contract, call: Call) -> bytes:
    """Return what equal calls have in common: all arguments, unless the contract names some."""
    fields = contract.identity_fields
    named = {
        name: value for name, value in call.arguments.items() if fields is None or name in fields
    }
    return canonical_bytes({"tool": call.tool, "arguments": named})

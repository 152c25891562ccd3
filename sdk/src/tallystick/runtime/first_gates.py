"""The first three gates of a run: is there such a tool, is it called right, and may it be.

Each gate decides by `tallystick.gates`; here is who is asked, in which order, and what is kept. All
of it is done before a call costs anything, and before anybody outside is asked to do a thing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from tallystick.canonical import MISSING, Json, Missing
from tallystick.effect_class import EffectClass
from tallystick.errors import InvalidArguments, Refusal, ToolContractNotFound
from tallystick.gates.arguments import check_arguments, parsed
from tallystick.gates.denial import Denial, Gate
from tallystick.gates.permission import (
    Question,
    acts_for,
    check_capabilities,
    check_identifiers,
    check_owner,
    check_result,
    check_returned,
    nobodys,
    own_questions,
    questions,
)
from tallystick.gates.service import failure, unreachable
from tallystick.identifiers import Ownership, asking_for
from tallystick.policy import Call, Verdict
from tallystick.runtime.memory import Memory
from tallystick.runtime.proposal import fingerprint
from tallystick.runtime.script import Script
from tallystick.runtime.setting import OwnerOf, Setting
from tallystick.runtime.tool import Tool, Toolbox, as_json, injected_into
from tallystick.tool_contract import Contract

# A model may ask for anything: so much of it is repeated as tells what it asked for.
_NAME_CHARS_MAX: Final = 64


@dataclass(slots=True)
class Passed:
    """How far a call came, and what came of it.

    Args:
        name: The tool that was asked for.
        tool: The tool, if there is one.
        arguments: What the second gate read; None if that is no object.
        verdict: What the fourth gate said.
        denial: Which gate refused the call, if one did.
        value: What the function returned.
        result: The same as strict JSON; `MISSING` if the call did not succeed.
        flaw: What is wrong with a result that was returned all the same.
        cause: What the function raised.
        approved_by: The person who let the call run.
        asked_for: The tool on whose account the runtime itself asks this one who owns an object.
    """

    name: str
    tool: Tool | None = None
    arguments: dict[str, Json] | None = None
    verdict: Verdict | None = None
    denial: Denial | None = None
    value: object = None
    result: Json | Missing = MISSING
    flaw: str | None = None
    cause: BaseException | None = None
    approved_by: str | None = None
    asked_for: str | None = None


Traced: TypeAlias = Callable[[Passed, Script[None]], Script[Passed]]
"""Takes the steps of a call, and adds its line to the trace."""


@dataclass(frozen=True, eq=False)
class FirstGates:
    """The gates of one run before its policy.

    Args:
        setting: What the application says of the run.
        tools: The tools.
        memory: What the run remembers.
        granted: The capabilities that the principal holds; None for all.
        key: Keys the fingerprints of this process.
        traced: Takes a look-up of the runtime's own, and writes it into the trace.
        offers: Whether a tool is one that a model may call.
    """

    setting: Setting
    tools: Toolbox
    memory: Memory
    granted: frozenset[str] | None
    key: bytes
    traced: Traced
    offers: Callable[[Contract], bool] = field(default=lambda _: True)

    # --- contract and arguments -------------------------------------------------------------------

    def known(self, passed: Passed) -> Tool | None:
        """Pass the first gate: there is such a tool, and a model may call it."""
        tool = self.tools.named(passed.name)
        if tool is not None and self.offers(tool.contract):
            passed.tool = tool
            return tool
        shown = f"{passed.name[:_NAME_CHARS_MAX]}{'…' * (len(passed.name) > _NAME_CHARS_MAX)}"
        refusal = ToolContractNotFound(f"There is no tool named {shown}.")
        true_code = refusal.code if tool is None else "not_offered"
        passed.denial = Denial(Gate.CONTRACT, refusal, true_code)
        return None

    def accept(self, passed: Passed, tool: Tool, arguments: object) -> bool:
        """Pass the second gate: the arguments are the contract's."""
        try:
            passed.arguments = parsed(tool.contract, arguments)
            check_arguments(tool.contract, passed.arguments)
        except InvalidArguments as error:
            passed.denial = Denial.of(Gate.ARGUMENTS, error)
        return passed.denial is None

    def bound(self, passed: Passed, tool: Tool) -> tuple[dict[str, Json], dict[str, object]]:
        """Return the canonical arguments, and what the function is called with.

        An adapter from another version of the contract has its place here: everything after it sees
        the canonical arguments alone.
        """
        given = passed.arguments
        assert given is not None, "the second gate has let them pass"
        injected = injected_into(tool, self.setting.injected)
        if tool.binding is None:
            return given, {**given, **injected}
        try:
            return given, {**tool.binding.read(given), **injected}
        except InvalidArguments as error:
            passed.denial = Denial.of(Gate.ARGUMENTS, error)
            return given, {}

    # --- permission -------------------------------------------------------------------------------

    def permission(self, contract: Contract, arguments: dict[str, Json]) -> Script[Denial | None]:
        """Pass the third gate: the principal may, and the objects are those of the subject."""
        denial = check_capabilities(contract, self.setting.tenant, self.granted)
        if denial is not None or not (contract.ownership or contract.returned):
            return denial
        denial = check_identifiers(contract, arguments) or check_returned(
            contract, arguments, self.memory.was_returned
        )
        if denial is not None:
            return denial
        own = own_questions(contract, arguments)
        unanswered = self._unanswered(own)
        for question in (*questions(contract, arguments), *own):
            if question not in unanswered or acts_for(question, self.memory.subject) is None:
                denial = yield from self._held_to_owner(contract, arguments, question)
                if denial is not None:
                    return denial
        return None

    def _unanswered(self, own: tuple[Question, ...]) -> tuple[Question, ...]:
        """Return which of a call's own questions nobody else can answer yet; see `withheld`."""
        if not own or self.setting.owner_of is not None:
            return ()
        return tuple(
            each
            for each in own
            if isinstance(self.memory.owner(each.ownership, each.identifier), Missing)
        )

    def _held_to_owner(
        self, contract: Contract, arguments: dict[str, Json], question: Question
    ) -> Script[Denial | None]:
        """Hold one object to its owner; nobody is asked of it where the run acts for nobody."""
        subject, owner_of = self.memory.subject, self.setting.owner_of
        owner: Json | Missing | Denial = None
        if acts_for(question, subject) is not None:
            if owner_of is not None:
                owner = yield from self._said(contract, arguments, question, owner_of)
            else:
                owner = self.memory.owner(question.ownership, question.identifier)
            if isinstance(owner, Missing):
                owner = yield from self._look_up(contract, arguments, question)
        if isinstance(owner, Denial):
            return owner
        return check_owner(contract, arguments, question, owner, subject)

    def _said(
        self,
        contract: Contract,
        arguments: dict[str, Json],
        question: Question,
        owner_of: OwnerOf,
    ) -> Script[Json | Denial]:
        """Ask the application who owns an object."""
        try:
            return (yield partial(owner_of, question.ownership.kind, question.identifier))
        except Exception as error:  # noqa: BLE001 - whoever should know failed: nothing passes
            true_code = error.code if isinstance(error, Refusal) else type(error).__name__
            gone = self._unreachable(contract, arguments, error, None)
            return gone or nobodys(contract, arguments, question, true_code)

    def _look_up(
        self, contract: Contract, arguments: dict[str, Json], question: Question
    ) -> Script[Json | Denial]:
        """Ask the declared tool, which only reads, and keep what it says of the owner.

        Whatever else it answers means that nobody owns the object: a failure of its own, too, may
        hang on whether there is one.
        """
        tool = self.teller(question.ownership)
        if tool is None:
            return None
        look = Passed(tool.contract.name, tool, asked_for=contract.name)
        yield from self.traced(look, self._looked(look, tool, question))
        if isinstance(look.cause, Exception):
            return self._unreachable(contract, arguments, look.cause, tool.contract)
        known = self.memory.owner(question.ownership, question.identifier)
        return None if isinstance(known, Missing) else known

    def _looked(self, look: Passed, tool: Tool, question: Question) -> Script[None]:
        asked = asking_for(question.ownership, question.identifier)
        if not self.accept(look, tool, asked):
            return
        given, bound = self.bound(look, tool)
        if look.denial is not None:
            return
        try:
            look.result = as_json((yield partial(tool.function, **bound)))
        except Exception as error:  # noqa: BLE001 - told to nobody but the trace
            look.cause = error
            look.denial = failure(error, tool.contract, failed_before=False)
        else:
            call = Call(tool.contract.name, given)
            self.memory.told_owners(call, look.result, (question.ownership,))

    def teller(self, ownership: Ownership) -> Tool | None:
        """Return the tool that says who owns an object, which does nothing but read."""
        tool = None if ownership.tool is None else self.tools.named(ownership.tool)
        if tool is None or tool.contract.effect_class is not EffectClass.PURE:
            return None
        return tool

    def _unreachable(
        self,
        contract: Contract,
        arguments: dict[str, Json],
        error: Exception,
        asked: Contract | None,
    ) -> Denial | None:
        """Return what is told where nobody could be asked; None where there was an answer."""
        known = fingerprint(contract, arguments, self.key)
        denial = unreachable(error, asked, failed_before=self.memory.has_failed(known))
        if denial is not None:
            self.memory.failed(known, is_unsettled=False)
        return denial

    def withheld(
        self, contract: Contract, arguments: Mapping[str, Json], result: Json | Missing
    ) -> Denial | None:
        """Deny to tell what came of a call before its own result has said whose the object is."""
        if self.setting.owner_of is not None:
            return None
        if not isinstance(result, Missing):
            return check_result(contract, arguments, result, self.memory.subject)
        unanswered = self._unanswered(own_questions(contract, arguments))
        return nobodys(contract, arguments, unanswered[0]) if unanswered else None

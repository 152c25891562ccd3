"""The third gate: what the principal may do, and whose the objects are that a call names.

"Not yours", "not there" and "never returned in this run" are one answer to the model, the same
bytes. Only the trace has the reason. Nothing that a model says of itself is believed: tenant,
principal and subject come from the application.

A tool that only reads may be its own ownership tool: whose the object is, its result says. Such a
call runs first, and nobody is told of it before `check_result`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tallystick.canonical import Json, Missing, pointer_split, resolve_pointer
from tallystick.effect_class import EffectClass
from tallystick.errors import CapabilityNotGranted, NotFound
from tallystick.gates.denial import Denial, Gate
from tallystick.identifiers import (
    Identifier,
    Ownership,
    Returned,
    asked_for,
    identifier_of,
    named_at,
    owner_in,
)
from tallystick.schema import redact
from tallystick.tool_contract import Contract

_SHOWN_CHARS_MAX: Final = 64
_TOOLS_TOLD_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Question:
    """Whose an object is that a call names; the world answers it.

    Args:
        ownership: The declaration that asks.
        pointer: Where the call names the object, a JSON Pointer into the arguments.
        identifier: The object.
    """

    ownership: Ownership
    pointer: str
    identifier: Identifier


def check_capabilities(
    contract: Contract, tenant: str, granted: frozenset[str] | None
) -> Denial | None:
    """Deny a call that touches more than the principal holds.

    Args:
        contract: The contract of the tool.
        tenant: The slug that stands for `{tenant}` in its capabilities.
        granted: What the principal holds; None for all that is declared.
    """
    missing = frozenset[str]() if granted is None else contract.capabilities_for(tenant) - granted
    if not missing:
        return None
    return Denial.of(
        Gate.PERMISSION,
        CapabilityNotGranted(
            f"{contract.name} may not be used here.", facts={"not_granted": [*sorted(missing)]}
        ),
    )


def check_returned(
    contract: Contract,
    arguments: Mapping[str, Json],
    was_returned: Callable[[Returned, Identifier], bool],
) -> Denial | None:
    """Deny a call that names what no tool has returned in the same run.

    Args:
        contract: The contract of the tool.
        arguments: What the second gate accepted.
        was_returned: Whether a tool that counts has returned an identifier, anywhere in its result.
    """
    for source in contract.returned:
        for pointer, value in named_at(dict(arguments), source.argument):
            identifier = identifier_of(value)
            if identifier is None or not was_returned(source, identifier):
                return _unavailable(contract, arguments, source.argument, pointer, "not_returned")
    return None


def check_identifiers(contract: Contract, arguments: Mapping[str, Json]) -> Denial | None:
    """Deny a call whose owned objects are named by what cannot be an identifier."""
    for each in contract.ownership:
        for pointer, value in named_at(dict(arguments), each.argument):
            if identifier_of(value) is None:
                return _unavailable(contract, arguments, each.argument, pointer, "not_found")
    return None


def questions(contract: Contract, arguments: Mapping[str, Json]) -> tuple[Question, ...]:
    """Return whose objects have to be known before the call may run, each question once.

    Those that its own result answers are not among them: `own_questions`.
    """
    asked = _asked(contract, arguments)
    if not _is_told_by_itself(contract):
        return asked
    return tuple(each for each in asked if not _is_own(contract, arguments, each))


def own_questions(contract: Contract, arguments: Mapping[str, Json]) -> tuple[Question, ...]:
    """Return whose objects the call's own result says: it only reads, and asks for each itself."""
    if not _is_told_by_itself(contract):
        return ()
    asked = _asked(contract, arguments)
    return tuple(each for each in asked if _is_own(contract, arguments, each))


def _asked(contract: Contract, arguments: Mapping[str, Json]) -> tuple[Question, ...]:
    found = [
        Question(each, pointer, identifier)
        for each in contract.ownership
        for pointer, value in named_at(dict(arguments), each.argument)
        if (identifier := identifier_of(value)) is not None
    ]
    if len(found) > 1:
        return tuple({(each.ownership, each.identifier): each for each in found}.values())
    return tuple(found)


def _is_told_by_itself(contract: Contract) -> bool:
    return contract.effect_class is EffectClass.PURE and any(
        each.tool == contract.name for each in contract.ownership
    )


def _is_own(contract: Contract, arguments: Mapping[str, Json], question: Question) -> bool:
    if question.ownership.tool != contract.name:
        return False
    return asked_for(question.ownership, dict(arguments)) == question.identifier


def acts_for(question: Question, subject: Mapping[str, Json]) -> Identifier | None:
    """Return whose an object has to be by what is known of the run; None if nobody has said."""
    return identifier_of(subject.get(question.ownership.subject))


def check_owner(
    contract: Contract,
    arguments: Mapping[str, Json],
    question: Question,
    owner: Json,
    subject: Mapping[str, Json],
) -> Denial | None:
    """Deny a call that names an object of somebody else, or of nobody.

    Args:
        contract: The contract of the tool.
        arguments: What the second gate accepted.
        question: What was asked.
        owner: The answer; None if there is no such object, or nobody can say.
        subject: On whose behalf the run acts.
    """
    known, wanted = identifier_of(owner), acts_for(question, subject)
    if wanted is None:
        return nobodys(contract, arguments, question, "no_subject")
    if known is None:
        return nobodys(contract, arguments, question)
    return None if known == wanted else nobodys(contract, arguments, question, "not_owner")


def check_result(
    contract: Contract, arguments: Mapping[str, Json], result: Json, subject: Mapping[str, Json]
) -> Denial | None:
    """Deny to tell the result of a call that names an object of somebody else, or of nobody.

    For the `own_questions` of the call. What is denied is no result to go by: it gives no facts,
    returns no identifiers, and is no prior call.

    Args:
        contract: The contract of the tool.
        arguments: What it was called with.
        result: What it returned.
        subject: On whose behalf the run acts.
    """
    for question in own_questions(contract, arguments):
        owner = owner_in(question.ownership, result)
        denial = check_owner(contract, arguments, question, owner, subject)
        if denial is not None:
            return denial
    return None


def nobodys(
    contract: Contract,
    arguments: Mapping[str, Json],
    question: Question,
    true_code: str = "not_found",
) -> Denial:
    """Return the denial of a call that names an object of which nobody knows an owner.

    Args:
        contract: The contract of the tool.
        arguments: What the second gate accepted.
        question: What was asked.
        true_code: Why there is no answer, for the trace.
    """
    place = question.ownership.argument
    return _unavailable(contract, arguments, place, question.pointer, true_code)


# --- the one answer -------------------------------------------------------------------------------


def _unavailable(
    contract: Contract,
    arguments: Mapping[str, Json],
    argument: str,
    pointer: str,
    true_code: str,
) -> Denial:
    """Return the one answer, which is made of the call and the contract alone.

    There is one for each argument, whichever of its checks has failed.
    """
    kind = next(_kinds(contract, argument), pointer_split(argument)[-1])
    plain = resolve_pointer(redact(dict(arguments), contract.input_schema), pointer)
    shown = None if isinstance(plain, Missing) else identifier_of(plain)
    name = kind
    if shown is not None:
        text = str(shown)
        name = f"{kind} {text[:_SHOWN_CHARS_MAX]}{'…' * (len(text) > _SHOWN_CHARS_MAX)}"
    source = _source(contract, argument)
    advice = f" It has to come from {source} in this run." if source else ""
    refusal = NotFound(f"No {name} is available.{advice}", pointer=pointer)
    return Denial(Gate.PERMISSION, refusal, true_code)


def _kinds(contract: Contract, argument: str) -> Iterator[str]:
    for each in (*contract.ownership, *contract.returned):
        if each.argument == argument and each.kind is not None:
            yield each.kind


def _source(contract: Contract, argument: str) -> str:
    """Return where a model gets such an identifier; empty where the contract does not say."""
    returned = [each for each in contract.returned if each.argument == argument]
    if returned:
        return " and from ".join(_any(each.tools) for each in returned)
    tools = {each.tool for each in contract.ownership if each.argument == argument and each.tool}
    others = tools - {contract.name}
    return _any(others) if others else ""


def _any(tools: Collection[str] | None) -> str:
    if tools is None:
        return "the result of a tool"
    names = sorted(tools)
    told = names[:_TOOLS_TOLD_MAX]
    return " or ".join([*told, "another"] if len(names) > len(told) else told)

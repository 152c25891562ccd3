"""Wrong calls, each made of a right one by one change, with the gate that has to stop it.

What is expected follows from the kind of the change and from the contract, never from what a gate
has answered.
"""

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from tallystick.gates.denial import Gate
from tallystick.tool_contract import Contract
from tests.conformance.tau.corpus import GoldCall

NOBODYS: Final = "no-such-thing"


@dataclass(frozen=True, slots=True)
class Stop:
    """How a call ends that is stopped: at which gate, what is told, and what the trace is told."""

    gate: Gate
    code: str
    true_code: str


UNKNOWN: Final = Stop(Gate.CONTRACT, "unknown_tool", "tool_contract_not_found")
INVALID: Final = Stop(Gate.ARGUMENTS, "invalid_arguments", "invalid_arguments")
NOT_FOUND: Final = Stop(Gate.PERMISSION, "not_found", "not_found")
NOT_OWNER: Final = Stop(Gate.PERMISSION, "not_found", "not_owner")
NOT_RETURNED: Final = Stop(Gate.PERMISSION, "not_found", "not_returned")
NOT_GRANTED: Final = Stop(Gate.PERMISSION, "capability_not_granted", "capability_not_granted")
BLOCKED: Final = Stop(Gate.POLICY, "policy_blocked", "policy_blocked")
NEEDS_HUMAN: Final = Stop(Gate.POLICY, "needs_human", "needs_human")
EXHAUSTED: Final = Stop(Gate.POLICY, "budget_exhausted", "budget_exhausted")
USER_NOT_FOUND: Final = Stop(Gate.SERVICE, "user_not_found", "user_not_found")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A wrong call.

    Args:
        kind: What was changed.
        tool: The tool that is called.
        arguments: What is sent, an object or a text.
        stop: How it has to end.
    """

    kind: str
    tool: str
    arguments: Any
    stop: Stop


def mutants(call: GoldCall, contract: Contract, others: dict[str, str]) -> Iterator[Mutant]:
    """Yield the wrong calls that are wrong at any moment of a run.

    Args:
        call: The right call.
        contract: The contract of its tool.
        others: An identifier of somebody else's, by the name of the argument.
    """
    yield Mutant("unknown tool", f"{call.tool}s", call.arguments, UNKNOWN)
    for kind, arguments in (*_of_form(call), *_of_values(call, contract)):
        yield Mutant(kind, call.tool, arguments, INVALID)
    yield from _of_owners(call, contract, others)
    yield from _of_sources(call, contract)


def _of_form(call: GoldCall) -> Iterator[tuple[str, Any]]:
    text = json.dumps(call.arguments)
    yield "not JSON", text[:-1]
    yield "not an object", [call.arguments]
    yield "extra", {**call.arguments, "on_behalf_of": "C-20417"}
    for name, value in call.arguments.items():
        twice = f"{json.dumps(name)}: {json.dumps(value)}"
        yield "twice", f"{{{twice}, {text[1:]}"


def _of_values(call: GoldCall, contract: Contract) -> Iterator[tuple[str, Any]]:
    declared: Any = contract.input_schema["properties"]
    for name, value in call.arguments.items():
        yield "null", {**call.arguments, name: None}
        yield "missing", {each: of for each, of in call.arguments.items() if each != name}
        yield "wrong type", {**call.arguments, name: 7 if isinstance(value, str) else "seven"}
        yield "wrong type", {**call.arguments, name: {"value": value}}
        if "enum" in declared[name]:
            yield "wrong enum", {**call.arguments, name: "none of them"}
        if isinstance(value, list) and value:
            yield "null", {**call.arguments, name: [None, *value[1:]]}
            if isinstance(value[0], dict):
                first, *rest = value
                yield "extra", {**call.arguments, name: [{**first, "note": "now"}, *rest]}
                for member in first:
                    less = {each: of for each, of in first.items() if each != member}
                    yield "missing", {**call.arguments, name: [less, *rest]}


def _of_owners(call: GoldCall, contract: Contract, others: dict[str, str]) -> Iterator[Mutant]:
    # What must have been returned in the run is not even asked about.
    returned = {each.argument for each in contract.returned}
    for each in contract.ownership:
        name = each.argument.removeprefix("/")
        theirs = {**call.arguments, name: others[name]}
        nobodys = {**call.arguments, name: NOBODYS}
        is_known = each.argument not in returned
        yield Mutant(
            "another customer's", call.tool, theirs, NOT_OWNER if is_known else NOT_RETURNED
        )
        yield Mutant("nobody's", call.tool, nobodys, NOT_FOUND if is_known else NOT_RETURNED)


def _of_sources(call: GoldCall, contract: Contract) -> Iterator[Mutant]:
    owned = {each.argument for each in contract.ownership}
    for each in contract.returned:
        if each.argument not in owned:
            arguments = deepcopy(call.arguments)
            _put_nobodys(arguments, each.argument.split("/")[1:])
            yield Mutant("never returned", call.tool, arguments, NOT_RETURNED)


def _put_nobodys(value: Any, steps: list[str]) -> None:
    """Put an identifier that no tool returned in the place of the last one that is named."""
    *way, last = steps
    for step in way:
        value = value[step]
        value = value[-1] if isinstance(value, list) else value
    if isinstance(value[last], list):
        value[last][-1] = NOBODYS
    else:
        value[last] = NOBODYS

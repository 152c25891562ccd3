"""Reads the trace of a run: what a `PolicyRuntime` wrote of each call, one JSON object a line.

Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tallystick.canonical import Json, MalformedJson, parse_json, values_in
from tallystick.errors import InvalidResult, InvalidTrace, NeedsHuman
from tallystick.policy.call import Call
from tallystick.policy.terms import Decision
from tallystick.schema import REDACTED

TRACE_BYTES_MAX: Final = 64 * 1024 * 1024

# The gates before and after that of the policy, as `tallystick.gates` names them. Permission is
# asked once more after it where a result itself says whose the object is.
_PERMISSION: Final = "permission"
_EARLIER: Final = frozenset({"contract", "arguments"})
_AFTER: Final = "service"
_OK: Final = "ok"
_GATES: Final = _EARLIER | {_PERMISSION, "policy", _AFTER}


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call, as the trace has it.

    Args:
        call: The tool and its arguments; what is sensitive in them is redacted.
        decision: What the policy said; None if an earlier gate refused the call.
        gate: The gate that refused it, or `service` if the tool failed; None if it gave a result.
        rule: The part of the policy that decided.
        told_code: The code that the model was told; None if it got a result.
        code: What it really was, as a code; None if there was nothing.
        message: What the model was told.
        approved_by: The person who was asked, by name.
        run: Which run it belongs to; empty if the trace does not tell.
        policy: The digest of the policy that decided, empty for none; None if the trace does not
            tell.
        ends_run: Whether it is no tool's call, but the resolution that ends the run.
        result: Its result, as far as it is in the trace.
        has_result: Whether the trace has one.
    """

    call: Call
    decision: Decision | None
    gate: str | None = None
    rule: str | None = None
    told_code: str | None = None
    code: str | None = None
    message: str = ""
    approved_by: str | None = None
    run: str = ""
    policy: str | None = None
    ends_run: bool = False
    result: Json = None
    has_result: bool = False

    @property
    def reached_policy(self) -> bool:
        """Whether the policy was asked about it: no earlier gate refused it."""
        return self.decision is not None and not self.ends_run

    @property
    def ran(self) -> bool:
        """Whether the tool was called."""
        # What was blocked by the last gate was not called once more after it had failed.
        is_blocked = self.decision is Decision.BLOCK
        return self.gate is None or self._is_withheld or (self.gate == _AFTER and not is_blocked)

    @property
    def _is_withheld(self) -> bool:
        return self.gate == _PERMISSION and self.decision is not None

    @property
    def succeeded(self) -> bool:
        """Whether the tool did what it was called for."""
        return self.ran and (self.gate is None or self.code == InvalidResult.code)

    @property
    def vouches(self) -> bool:
        """Whether its result is one to go by: a result that breaks its contract is none."""
        return self.gate is None and self.code != InvalidResult.code

    @property
    def outcome(self) -> Decision:
        """What became of it: BLOCK if any gate refused it, or refused to tell what it gave."""
        if self.ran and not self._is_withheld:
            return Decision.ALLOW
        # A person who said no has refused it, too.
        is_held = self.gate == "policy" and self.told_code == NeedsHuman.code
        return Decision.NEEDS_HUMAN if is_held else Decision.BLOCK


def read_calls(text: str) -> Iterator[RecordedCall]:
    """Yield the calls of a trace, in their order.

    Raises:
        InvalidTrace: A line is none of a trace, or is not whole; those before it were yielded.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        recorded = _recorded(line, number) if line.strip() else None
        if recorded is not None:
            yield recorded


def has_redaction(value: Json) -> bool:
    """Return whether some part of a value is redacted."""
    return any(isinstance(each, dict) and REDACTED in each for each in values_in(value))


def _recorded(line: str, number: int) -> RecordedCall | None:
    """Return a call; None for what the runtime itself has looked up, which no policy judges."""
    try:
        members = parse_json(line)
    except MalformedJson as error:
        raise _invalid(number, error.detail) from None
    if not isinstance(members, dict):
        raise _invalid(number, "it is not an object")
    if "asked_for" in members:
        return None
    decision, gate = _text(members, "decision", number), _text(members, "gate", number)
    if decision not in {each.value for each in Decision}:
        raise _invalid(number, "it has no decision")
    if gate is not None and gate not in _GATES:
        raise _invalid(number, "it has no such gate")
    is_early = gate in _EARLIER or (gate == _PERMISSION and decision == Decision.BLOCK)
    tool, arguments = members.get("tool"), members.get("arguments")
    if arguments is None and is_early:
        # What were no arguments of a contract was not written down.
        arguments = {}
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        raise _invalid(number, "it names no tool with its arguments")
    return RecordedCall(
        call=Call(tool, arguments),
        decision=None if is_early else Decision(decision),
        gate=gate,
        rule=_text(members, "rule", number),
        told_code=_code(members, "code", number),
        code=_code(members, "true_code", number),
        message=_text(members, "message", number) or "",
        approved_by=_text(members, "approved_by", number),
        run=_text(members, "run", number) or "",
        policy=(_text(members, "policy", number) or "") if "policy" in members else None,
        ends_run=members.get("ends_run") is True,
        result=members.get("result"),
        has_result="result" in members,
    )


def _code(members: dict[str, Json], name: str, number: int) -> str | None:
    code = _text(members, name, number)
    return None if code == _OK else code


def _text(members: dict[str, Json], name: str, number: int) -> str | None:
    value = members.get(name)
    if value is not None and not isinstance(value, str):
        raise _invalid(number, f'its "{name}" is not a text')
    return value


def _invalid(number: int, why: str) -> InvalidTrace:
    return InvalidTrace(f"line {number} is none of a trace: {why}", facts={"line": number})

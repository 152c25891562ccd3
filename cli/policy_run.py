"""What a recorded run comes to: under the policy that it ran under, and under another one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cli.connection import JsonObject
from cli.runner import Ended
from tallystick.errors import InvalidTrace
from tallystick.policy import Decision, Policy
from tallystick.policy.replay import replay
from tallystick.policy.trace import TRACE_BYTES_MAX, RecordedCall, read_calls

_DECISIONS: Final = tuple(Decision)


def read_trace(file: Path) -> tuple[list[RecordedCall], InvalidTrace | None]:
    """Read a trace as far as it can be read, and say why not to its end.

    A file that is not there is a trace of no calls.
    """
    calls: list[RecordedCall] = []
    try:
        with file.open("rb") as stream:
            content = stream.read(TRACE_BYTES_MAX + 1)
        if len(content) > TRACE_BYTES_MAX:
            return calls, InvalidTrace(f"the trace is larger than {TRACE_BYTES_MAX} bytes")
        calls.extend(read_calls(content.decode()))
    except FileNotFoundError:
        return calls, None
    except UnicodeDecodeError:
        return calls, InvalidTrace("the trace is not UTF-8")
    except OSError as error:
        return calls, InvalidTrace(f"the trace cannot be read: {error.strerror}")
    except InvalidTrace as fault:
        return calls, fault
    return calls, None


def judge(
    policy: Policy, calls: Sequence[RecordedCall], ended: Ended, fault: InvalidTrace | None
) -> JsonObject:
    """Say what a run under a policy came to: `pass`, `fail` or `needs_human`.

    Args:
        policy: The policy.
        calls: The run's calls.
        ended: How the command ended.
        fault: What is wrong with its trace.
    """
    reason = _reason(policy, calls, ended, fault)
    worst = max((call.outcome for call in calls), key=_DECISIONS.index, default=Decision.ALLOW)
    verdict = "fail" if reason else _VERDICTS[worst]
    return {
        "policy": policy.id,
        "title": policy.title,
        "digest": policy.digest,
        "verdict": verdict,
        "reason": reason,
        "exit_status": ended.status,
        "calls": [_recorded(number, call) for number, call in enumerate(calls, start=1)],
    }


_VERDICTS: Final = {
    Decision.ALLOW: "pass",
    Decision.NEEDS_HUMAN: "needs_human",
    Decision.BLOCK: "fail",
}


def replayed(policy: Policy, calls: Sequence[RecordedCall]) -> JsonObject:
    """Say what becomes of the calls of a run under another policy."""
    told = replay(policy, calls)
    return {
        "policy": policy.id,
        "title": policy.title,
        "digest": policy.digest,
        "changed": sum(each.is_changed and each.is_known for each in told),
        "unknown": sum(not each.is_known for each in told),
        "calls": [
            {
                **_recorded(each.number, each.recorded),
                "after": None
                if not each.recorded.reached_policy or each.decision is None
                else {"decision": each.decision.value, "rule": each.rule, "code": each.code},
                "is_changed": each.is_changed,
                "is_known": each.is_known,
                "explanation": each.message,
            }
            for each in told
        ],
    }


def _recorded(number: int, call: RecordedCall) -> JsonObject:
    return {
        "number": number,
        "tool": call.call.tool,
        "arguments": dict(call.call.arguments),
        "outcome": call.outcome.value,
        "decision": call.decision.value if call.decision else None,
        "ran": call.ran,
        "gate": call.gate,
        "rule": call.rule,
        "code": call.code,
        "message": call.message,
        "approved_by": call.approved_by if call.ran else None,
    }


def _reason(
    policy: Policy, calls: Sequence[RecordedCall], ended: Ended, fault: InvalidTrace | None
) -> str | None:
    """Return why a run is none that could pass, whatever its calls were answered."""
    if ended.is_late or ended.status < 0:
        return str(ended)
    if fault is not None:
        return f"Its trace cannot be judged: {fault.detail}"
    if ended.status and all(call.ran for call in calls):
        # After a refusal, an exit status is the command's way to tell of it.
        return str(ended)
    if not calls:
        return "The command made no call through a PolicyRuntime."
    if any(call.policy not in (None, policy.digest) for call in calls):
        return "Another policy was in force, or none: it did not take that of TALLYSTICK_POLICY."
    return None

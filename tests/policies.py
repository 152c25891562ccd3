"""Policies for tests: valid by default, and as small as what a test is about."""

from decimal import Decimal
from typing import Any

from tallystick.policy import Call, History, Policy, Tally, Verdict, captured, decide

TOOLS = {
    "lookup_order": {"risk": "read"},
    "send_email": {"risk": "write"},
    "issue_refund": {"risk": "high_risk"},
}
ORDER_TOTAL = {"name": "order_total", "from_tool": "lookup_order", "path": "total"}
AMOUNT = {"source": "arg", "key": "amount"}
TOTAL = {"source": "fact", "key": "order_total"}


def a_document(**parts: Any) -> dict[str, Any]:
    """Return a policy document with these parts."""
    return {"version": "0.2", "id": "refunds", "tools": TOOLS, **parts}


def policy_of(**parts: Any) -> Policy:
    """Return a policy with these parts."""
    return Policy.of(a_document(**parts))


def a_rule(type: str, *, name: str = "rule", tool: Any = "issue_refund", **fields: Any) -> Any:  # noqa: A002
    """Return one rule, which blocks unless it says otherwise."""
    return {"name": name, "type": type, "tool": tool, "effect": "block", **fields}


def const(value: Any) -> dict[str, Any]:
    """Return a constant as an operand."""
    return {"source": "const", "value": value}


def compare(left: Any, op: str, right: Any = None, **fields: Any) -> Any:
    """Return a rule that compares."""
    sides = {"left": left, "op": op} | ({} if right is None else {"right": right})
    return a_rule("compare", **sides, **fields)


def after(policy: Policy, *calls: tuple[str, dict[str, Any], Any]) -> History:
    """Return the history after calls that succeeded: tool, arguments, result."""
    history = History()
    for tool, arguments, result in calls:
        call = Call(tool, arguments)
        history = history.dispatched(call, policy)
        history = history.succeeded(tool, captured(policy, call, result))
    return history


def ask(policy: Policy, tool: str, history: History | None = None, **arguments: Any) -> Verdict:
    """Decide about a call."""
    return decide(policy, Call(tool, arguments), history or History())


def made(**counts: int) -> History:
    """Return a history in which each tool was called so often, and succeeded each time."""
    return History(tallies={tool: Tally(count, count) for tool, count in counts.items()})


def spent(**units: str) -> History:
    """Return a history in which so much of each limit is spent."""
    return History(spent={name.replace("_", "-"): Decimal(each) for name, each in units.items()})

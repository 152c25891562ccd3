"""What the gates of one process cost a call, beside bare validation of the same arguments.

    .venv/bin/python benchmarks/gates.py [--calls 100] [--rounds 200] [--json]

The call is a refund behind a policy of five rules, three facts and three budgets, as a help desk
has it; its contract owns the order that it names, and wants it returned by a tool of the run. "all
gates" is `PolicyRuntime.call` with a function that does nothing: reading and checking the
arguments, permission, the policy and its budgets, the function, the facts of its result, and the
entry in the trace. "answer" takes JSON text and writes the envelope too.

The peers validate the same arguments and do nothing else: Pydantic a model, and jsonschema-rs the
contract's schema. All take turns, and what is told is the least processor time of any round, which
is what is left when the rest of the machine is elsewhere.
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import jsonschema_rs
from pydantic import BaseModel, ConfigDict, Field

from tallystick import Contract, PolicyRuntime
from tallystick.gates.arguments import accepted
from tallystick.policy import Policy

POLICY: Final = """
version: "0.1"
id: refunds
title: Refunds and mail
defaults: {unknown_tools: block}
tools:
  get_order: {risk: read}
  check_eligibility: {risk: read}
  issue_refund: {risk: high_risk}
  send_email: {risk: write}
facts:
  - {name: order_total, from_tool: get_order, path: total}
  - {name: customer_email, from_tool: get_order, path: email}
  - {name: eligible, from_tool: check_eligibility, path: eligible}
budgets: {max_total_calls: 100000000, max_write_calls: 100000000, max_high_risk_calls: 100000000}
rules:
  - {name: order-first, type: require_prior_call, tool: issue_refund, prior_tool: get_order,
     effect: block}
  - {name: eligible-only, type: require_fact, tool: issue_refund, fact: eligible, op: eq,
     value: true, effect: block}
  - {name: within-total, type: compare, tool: issue_refund, left: {source: arg, key: amount},
     op: gt, right: {source: fact, key: order_total}, effect: block}
  - {name: large, type: compare, tool: issue_refund, left: {source: arg, key: amount}, op: gte,
     right: {source: const, value: 100}, effect: needs_human}
  - {name: to-the-customer, type: compare, tool: send_email, left: {source: arg, key: to}, op: ne,
     right: {source: fact, key: customer_email}, effect: block}
"""
ORDER_ID: Final = r"^LK-\d{6}$"
ARGUMENTS: Final[dict[str, Any]] = {"order_id": "LK-551906", "amount": 42, "reason": "late"}
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "pattern": ORDER_ID},
        "amount": {"type": "number", "exclusiveMinimum": 0, "maximum": 5000},
        "reason": {"enum": ["damaged", "late", "missing"]},
    },
    "required": ["order_id", "amount", "reason"],
}
OWNED: Final[dict[str, Any]] = {
    "ownership": [
        {
            "argument": "/order_id",
            "kind": "order",
            "subject": "customer_id",
            "tool": "get_order",
            "asked": "/order_id",
            "owner": "/customer_id",
        }
    ],
    "returned": [{"argument": "/order_id", "tools": ["get_order"]}],
}


class Refund(BaseModel):
    """The peer's contract."""

    model_config = ConfigDict(extra="forbid")
    order_id: str = Field(pattern=ORDER_ID)
    amount: float = Field(gt=0, le=5000)
    reason: str = Field(pattern="^(damaged|late|missing)$")


def a_contract(name: str, effect_class: str, schema: dict[str, Any], **fields: object) -> Contract:
    return Contract.of(
        name=name,
        version="1.0",
        description=f"Do {name}.",
        capabilities=["order:write:{tenant}"],
        effect_class=effect_class,
        input_schema=schema,
        **fields,
    )


def get_order(order_id: str) -> dict[str, Any]:
    return {"order_id": order_id, "customer_id": "C-88930", "total": 150, "email": "m@a.at"}


def check_eligibility(order_id: str) -> dict[str, Any]:
    return {"eligible": order_id != ""}


def issue_refund(order_id: str, amount: float, reason: str) -> dict[str, Any]:
    return {"refunded": amount, "order_id": order_id, "reason": reason}


REFUND: Final = a_contract("issue_refund", "UNKNOWN", SCHEMA, **OWNED)


def a_run() -> PolicyRuntime:
    """Return a run in which the refund may be made."""
    order = {"type": "object", "properties": {"order_id": {"type": "string"}}}
    runtime = PolicyRuntime(
        Policy.parse(POLICY),
        subject={"customer_id": "C-88930"},
        tenant="acme",
        granted=["order:write:acme"],
    )
    runtime.tool(contract=a_contract("get_order", "PURE", order))(get_order)
    runtime.tool(contract=a_contract("check_eligibility", "PURE", order))(check_eligibility)
    runtime.tool(contract=REFUND)(issue_refund)
    runtime.call("get_order", order_id="LK-551906")
    runtime.call("check_eligibility", order_id="LK-551906")
    return runtime


def subjects() -> dict[str, Callable[[], Callable[[], object]]]:
    """Return what is timed, each as what makes it for one round."""
    text = json.dumps(ARGUMENTS)
    validator = jsonschema_rs.validator_for({**SCHEMA, "additionalProperties": False})

    def calls() -> Callable[[], object]:
        runtime = a_run()
        return lambda: runtime.call("issue_refund", **ARGUMENTS)

    def answers() -> Callable[[], object]:
        runtime = a_run()
        return lambda: runtime.answer("issue_refund", text).text()

    return {
        "all gates, PolicyRuntime.call": calls,
        "all gates, answer from and to JSON text": answers,
        "the arguments gate alone": lambda: lambda: accepted(REFUND, ARGUMENTS),
        "bare Pydantic": lambda: lambda: Refund.model_validate(ARGUMENTS),
        "bare Pydantic, from JSON text": lambda: lambda: Refund.model_validate_json(text),
        "bare jsonschema-rs": lambda: lambda: validator.is_valid(ARGUMENTS),
    }


def seconds_of(work: Callable[[], object], calls: int) -> float:
    begin = time.process_time()
    for _ in range(calls):
        work()
    return (time.process_time() - begin) / calls


def measure(calls: int, rounds: int) -> dict[str, float]:
    """Return the least microseconds of a call, by what was called."""
    least: dict[str, float] = {}
    gc.disable()
    for _ in range(rounds):
        for name, make in subjects().items():
            work = make()
            work()
            taken = seconds_of(work, calls) * 1e6
            least[name] = min(taken, least.get(name, taken))
        gc.collect()
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100, help="how many calls a round has")
    parser.add_argument("--rounds", type=int, default=200, help="how many rounds there are")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    chosen = parser.parse_args()
    least = measure(chosen.calls, chosen.rounds)
    if chosen.json:
        json.dump({"microseconds": least}, sys.stdout, indent=2)
        print()
        return
    print(f"Least processor time of a call, of {chosen.rounds} rounds of {chosen.calls}, in µs")
    for name, microseconds in least.items():
        print(f"{name:44}{microseconds:8.1f}")


if __name__ == "__main__":
    main()

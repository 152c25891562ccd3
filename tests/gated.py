"""Tools, policies and runs for tests of the gates: a shop, its orders and its refunds."""

from dataclasses import dataclass, field
from typing import Any

from tests.api import Answered, Api
from tests.builders import a_contract

ORDER_ID = {"type": "string", "pattern": "^LK-[0-9]+$"}

GET_ORDER = a_contract(
    name="orders.get_order",
    version="1.0",
    description="Look up an order.",
    input_schema={
        "type": "object",
        "properties": {"order_id": ORDER_ID},
        "required": ["order_id"],
    },
    output_schema={"type": "object"},
    capabilities=["orders:read:{tenant}"],
    effect_class="PURE",
    idempotency=None,
    credential=None,
)
LIST_ORDERS = GET_ORDER | {
    "name": "orders.list_orders",
    "description": "List a customer's orders.",
    "input_schema": {"type": "object", "properties": {}},
}
REFUND = a_contract(
    name="orders.refund",
    version="1.0",
    description="Give money back.",
    input_schema={
        "type": "object",
        "properties": {"order_id": ORDER_ID, "amount": {"type": "number", "minimum": 0}},
        "required": ["order_id", "amount"],
    },
    output_schema=None,
    capabilities=["orders:refund:{tenant}"],
    credential=None,
)
OWNED = [
    {
        "argument": "/order_id",
        "kind": "order",
        "subject": "customer_id",
        "tool": "orders.get_order",
        "asked": "/order_id",
        "owner": "/customer_id",
    }
]
RETURNED = [{"argument": "/order_id", "tools": ["orders.get_order", "orders.list_orders"]}]

POLICY = """\
version: "0.2"
id: refunds
title: Refunds need a look at the order
defaults:
  unknown_tools: block
tools:
  orders.get_order: {risk: read}
  orders.list_orders: {risk: read}
  orders.refund: {risk: high_risk}
facts:
  - name: order_total
    from_tool: orders.get_order
    path: total
    per: {arg: order_id}
rules:
  - name: look-first
    type: require_prior_call
    tool: orders.refund
    prior_tool: orders.get_order
    effect: block
  - name: not-more-than-the-order
    type: compare
    tool: orders.refund
    left: {source: arg, key: amount}
    op: gt
    right: {source: fact, key: order_total, for: {source: arg, key: order_id}}
    effect: block
  - name: large-refunds-need-a-person
    type: compare
    tool: orders.refund
    left: {source: arg, key: amount}
    op: gte
    right: {source: const, value: 100}
    effect: needs_human
"""


def without(document: dict[str, Any], *fields: str) -> dict[str, Any]:
    """Return a contract's document without some of its fields."""
    return {name: value for name, value in document.items() if name not in fields}


def a_budget(name: str = "budgeted", **limit: Any) -> str:
    """Return a policy that lets refunds run within one budget and asks for nothing else."""
    lines = [f"      {key}: {value}" for key, value in limit.items()]
    return "\n".join(
        [
            'version: "0.2"',
            f"id: {name}",
            "title: One budget",
            "defaults: {unknown_tools: allow}",
            "tools:",
            "  orders.refund: {risk: high_risk}",
            "budgets:",
            "  limits:",
            "    - name: refunds",
            "      tools: [orders.refund]",
            *lines,
            "",
        ]
    )


@dataclass
class Shop:
    """The shop's tools as one client calls them, in one run after another."""

    api: Api
    tools: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    calls: int = 0

    async def publish(self, *documents: dict[str, Any]) -> "Shop":
        """Publish tools, and grant what they touch."""
        for document in documents:
            self.tools[document["name"]] = await self.api.publish(document)
        return self

    async def govern(self, text: str, *, principal: str = "*") -> int:
        """Publish a policy and put it in force for a principal; returns its revision."""
        made = await self.api.ask("POST", "/v1/policies", {"text": text})
        assert made.status in (200, 201), made
        path = f"/v1/policies/{made.body['policy']}/assignments"
        answer = await self.api.ask("POST", path, {"principal": principal})
        assert answer.status in (200, 201), answer
        return made.body["revision"]

    async def plan(self, tool: str, run: str = "run-1", **arguments: Any) -> Answered:
        """Plan a call under an effect string of its own."""
        self.calls += 1
        return await self.api.plan(
            self.tools[tool], run=run, effect=f"call-{self.calls}", arguments=arguments
        )

    async def call(self, tool: str, run: str = "run-1", **arguments: Any) -> Answered:
        """Plan and dispatch a call at once."""
        self.calls += 1
        return await self.api.plan(
            self.tools[tool],
            run=run,
            effect=f"call-{self.calls}",
            arguments=arguments,
            dispatch=self.api.asking(),
        )

    async def done(
        self, tool: str, result: Any, run: str = "run-1", **arguments: Any
    ) -> dict[str, Any]:
        """Call a tool, and report that it succeeded with a result."""
        answer = await self.call(tool, run, **arguments)
        assert answer.status == 201, answer
        assert answer.body["dispatch"]["owned"], answer
        report = await self.api.report(answer.body, "succeeded", result=result)
        assert report.status == 200, report
        return report.body

    async def looked(self, order_id: str, *, run: str = "run-1", **result: Any) -> dict[str, Any]:
        """Look an order up."""
        found = {"order_id": order_id} | result
        return await self.done("orders.get_order", found, run, order_id=order_id)

    async def acts_for(self, customer_id: str, run: str = "run-1") -> None:
        """Say on whose behalf a run acts."""
        body = {"subject": {"customer_id": customer_id}}
        assert (await self.api.ask("PUT", f"/v1/runs/{run}", body)).status in (200, 201)

    async def trace(self, run: str = "run-1") -> list[dict[str, Any]]:
        """Return all that a run's trace has."""
        return (await self.api.ask("GET", f"/v1/runs/{run}?limit=500")).body["entries"]

    async def refusals(self, run: str = "run-1") -> list[tuple[str, str, str, str | None]]:
        """Return what was refused in a run: gate, told code, true code, rule."""
        return [
            (one["gate"], one["code"], one["true_code"], one["rule"])
            for one in await self.trace(run)
            if one["kind"] == "refusal"
        ]

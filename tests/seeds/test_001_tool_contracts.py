"""A help desk's tools under contracts: each call of its table, each gate, each rule of a write."""

import json
from collections import Counter
from typing import Any

import pytest

from tallystick import Contract, PolicyRuntime, errors

ORDER_ID = {"type": "string", "pattern": r"^LK-\d{6}$", "description": "LK- and 6 digits."}
ORDERS = {
    "LK-551906": {"order_id": "LK-551906", "customer_id": "C-88930", "status": "late"},
    "LK-615204": {"order_id": "LK-615204", "customer_id": "C-20417", "status": "sent"},
}
OWNED = [{"argument": "/order_id", "kind": "order", "subject": "customer_id"}]


def read(name: str, description: str, **properties: Any) -> Contract:
    """Return the contract of a read: all its arguments required, and nothing else."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
    return Contract.of(
        name=name,
        version="1.0",
        description=description,
        capabilities=[],
        effect_class="PURE",
        input_schema=schema,
        ownership=OWNED if "order_id" in properties else None,
    )


GET_ORDER = read("get_order", "Look up one order of this customer.", order_id=ORDER_ID)
READS = [
    GET_ORDER,
    read("get_customer_orders", "List the orders of this customer."),
    read("get_payments", "Payments and refunds of one order.", order_id=ORDER_ID),
    read(
        "search_policy",
        "Search the policy documents.",
        query={"type": "string", "minLength": 3, "maxLength": 200},
    ),
]
REASONS = ["damaged", "late", "missing"]
ACTION = {
    "oneOf": [
        {
            "type": "object",
            "properties": {
                "type": {"const": "refund"},
                "order_id": ORDER_ID,
                "amount": {"type": "number", "exclusiveMinimum": 0, "maximum": 5000},
                "reason": {"enum": REASONS},
            },
            "required": ["type", "order_id", "amount", "reason"],
        },
        {
            "type": "object",
            "properties": {
                "type": {"const": "label"},
                "order_id": ORDER_ID,
                "sku": {"type": "string"},
                "reason": {"enum": ["wrong_item", "no_longer_wanted", "too_small"]},
            },
            "required": ["type", "order_id", "sku", "reason"],
        },
    ]
}
RESOLUTION = Contract.of(
    name="finish",
    version="1.0",
    description="End the task. Actions are proposed, and a person approves them.",
    capabilities=[],
    effect_class="PURE",
    returned=[{"argument": "/actions/order_id"}],
    input_schema={
        "type": "object",
        "properties": {
            "outcome": {"enum": ["resolve", "reply_only", "hand_over"]},
            "actions": {"type": "array", "items": ACTION},
        },
        "required": ["outcome", "actions"],
        "if": {"properties": {"outcome": {"const": "resolve"}}},
        "then": {"properties": {"actions": {"minItems": 1}}},
        "else": {"properties": {"actions": {"maxItems": 0}}},
    },
)
REFUND = Contract.of(
    name="request_refund",
    version="1.0",
    description="Refund an order.",
    capabilities=[],
    effect_class="NON_RETRYABLE",
    ownership=OWNED,
    input_schema={
        "type": "object",
        "properties": {"order_id": ORDER_ID, "amount": {"type": "number"}},
        "required": ["order_id", "amount"],
    },
)


class Desk:
    """The desk's systems, which count what they are asked, for one customer's ticket."""

    def __init__(self, customer_id: str = "C-88930") -> None:
        self.asked: Counter[str] = Counter()
        self.fault: Exception | None = None
        self.owners = {key: each["customer_id"] for key, each in ORDERS.items()}
        self.runtime = PolicyRuntime(
            contracts=[*READS, REFUND],
            subject={"customer_id": customer_id},
            principal="agent",
            owner_of=self.owner,
            writes="propose",
            resolution=RESOLUTION,
            proposals=refunds_of,
            injected={"customer_id": customer_id},
        )
        for function in (
            self.get_order,
            self.get_payments,
            self.search_policy,
            self.request_refund,
        ):
            self.runtime.tool(function.__name__)(function)
        self.runtime.tool("get_customer_orders", injected=["customer_id"])(self.customer_orders)

    def owner(self, kind: str, identifier: object) -> str | None:
        self.asked[f"owner of {kind}"] += 1
        return self.owners.get(str(identifier))

    def _serve(self, name: str) -> None:
        self.asked[name] += 1
        if self.fault is not None:
            raise self.fault

    def get_order(self, order_id: str) -> Any:
        self._serve("get_order")
        return ORDERS[order_id]

    def get_payments(self, order_id: str) -> Any:
        self._serve("get_payments")
        return [{"order_id": order_id, "amount": 129.0}]

    def customer_orders(self, customer_id: str) -> Any:
        self._serve("get_customer_orders")
        return [each for each in ORDERS.values() if each["customer_id"] == customer_id]

    def search_policy(self, query: str) -> Any:
        self._serve("search_policy")
        return [query.lower()] * 3

    def request_refund(self, order_id: str, amount: float) -> Any:
        self._serve("request_refund")
        return {"refunded": amount, "order_id": order_id}

    def answer(self, name: str, arguments: Any) -> dict[str, Any]:
        return json.loads(self.runtime.answer(name, arguments).text())


def refunds_of(resolution: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("request_refund", {"order_id": each["order_id"], "amount": each["amount"]})
        for each in resolution["actions"]
        if each["type"] == "refund"
    ]


# --- the table: calls that do not fit -------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("get_order", {"order_id": "LK-55190"}, "String should match pattern"),
        ("get_order", {"order_id": None}, "Input should be a valid string"),
        ("get_order", {}, "Field required"),
        (
            "get_order",
            {"order_id": "LK-551906", "customer_id": "C-20417"},
            "Extra inputs are not permitted",
        ),
        ("search_policy", {"query": None}, "Input should be a valid string"),
        ("search_policy", {"query": ""}, "at least 3 characters"),
        # calls of the same kind that the text names beside its table
        ("get_order", {"order_id": "LARK-12345"}, "String should match pattern"),
        ("get_order", {"order_id": "LK-551906", "limit": 1}, "Extra inputs are not permitted"),
        ("get_order", "not json", "not JSON"),
        # your turn
        ("get_payments", {"order_id": "lk-551906"}, r"should match pattern '^LK-\d{6}$'"),
        ("get_customer_orders", {"customer_id": "C-20417"}, "Extra inputs are not permitted"),
    ],
)
def test_a_call_that_does_not_fit_is_told_why_and_asks_nobody(name: str, arguments: Any, told: str):
    desk = Desk()
    error = desk.answer(name, arguments)["error"]
    assert error["code"] == "invalid_arguments"
    assert error["message"].startswith(f"Invalid arguments for {name}: ")
    assert told in error["message"]
    assert not desk.asked


def test_a_call_that_fits_is_answered():
    desk = Desk()
    assert desk.answer("get_order", {"order_id": "LK-551906"}) == {
        "ok": True,
        "result": ORDERS["LK-551906"],
    }
    assert desk.answer("get_customer_orders", "{}")["result"] == [ORDERS["LK-551906"]]
    assert desk.answer("get_customer_orders", "")["ok"] is True


# --- the four gates -------------------------------------------------------------------------------

OWNER_ASKED = {"owner of order": 1}


@pytest.mark.parametrize(
    ("name", "arguments", "code", "true_code", "asked"),
    [
        ("get_refund", {"order_id": "x"}, "unknown_tool", "tool_contract_not_found", {}),
        ("get_order", {"order_id": "x"}, "invalid_arguments", "invalid_arguments", {}),
        # knowledge check: well-formed, and the neighbour's
        ("get_payments", {"order_id": "LK-615204"}, "not_found", "not_owner", OWNER_ASKED),
        ("get_payments", {"order_id": "LK-000000"}, "not_found", "not_found", OWNER_ASKED),
    ],
)
def test_each_gate_stops_a_call_before_the_next_one_costs_anything(
    name: str, arguments: Any, code: str, true_code: str, asked: dict[str, int]
):
    desk = Desk()
    assert desk.answer(name, arguments)["error"]["code"] == code
    assert (desk.runtime.trace[-1].true_code, dict(desk.asked)) == (true_code, asked)


def test_the_neighbours_order_and_no_order_have_the_same_words():
    desk = Desk()
    texts = [
        desk.runtime.answer("get_order", {"order_id": order_id}).text().replace(order_id, "ID")
        for order_id in ("LK-615204", "LK-000000")
    ]
    assert texts[0] == texts[1]
    assert [each.true_code for each in desk.runtime.trace] == ["not_owner", "not_found"]


def test_a_service_that_fails_may_be_tried_once_more():
    desk = Desk()
    desk.fault = TimeoutError("db-7 did not answer")
    first = desk.answer("get_order", {"order_id": "LK-551906"})["error"]
    again = desk.answer("get_order", {"order_id": "LK-551906"})["error"]
    assert (first["code"], first["retryable"]) == ("service_timeout", True)
    assert "You may try again once." in first["message"]
    assert (again["retryable"], "again once" in again["message"]) == (False, False)
    assert "db-7" not in first["message"]


def test_a_tool_that_crashes_is_a_result_too():
    desk = Desk()
    desk.fault = AttributeError("'NoneType' object has no attribute 'lower'")
    assert desk.answer("search_policy", {"query": "returns"})["error"]["code"] == (
        "service_unavailable"
    )


def test_no_result_is_longer_than_4000_characters():
    desk = Desk()
    text = desk.runtime.answer("search_policy", {"query": "x" * 200}).text()
    assert json.loads(text)["result"] == ["x" * 200] * 3

    long = read("long", "Say much.")
    desk.runtime.tool(contract=long)(lambda: [{"n": number} for number in range(5000)])
    text = desk.runtime.answer("long", {}).text()
    assert 3900 < len(text) <= 4000
    assert json.loads(text)["truncated"].keys() == {"items"}


def test_the_trace_shows_the_refusal_and_the_run_goes_on():
    desk = Desk()
    desk.answer("get_order", '{"order_id":"LK-55190"}')
    (found,) = desk.answer("get_customer_orders", "{}")["result"]
    desk.answer("finish", {"outcome": "reply_only", "actions": []})
    assert [(each.tool, each.code) for each in desk.runtime.trace] == [
        ("get_order", "invalid_arguments"),
        ("get_customer_orders", "ok"),
        ("finish", "ok"),
    ]
    assert desk.runtime.trace[0].arguments == {"order_id": "LK-55190"}
    assert found["order_id"] == "LK-551906"


# --- reads and writes -----------------------------------------------------------------------------


def test_a_model_is_offered_the_reads_and_the_end_of_the_task():
    names = [each["function"]["name"] for each in Desk().runtime.tools()]
    assert names == [
        "get_customer_orders",
        "get_order",
        "get_payments",
        "search_policy",
        "finish",
    ]


def test_a_write_that_a_model_calls_all_the_same_is_no_tool():
    desk = Desk()
    error = desk.answer("request_refund", {"order_id": "LK-551906", "amount": 5})["error"]
    assert (error["code"], dict(desk.asked)) == ("unknown_tool", {})


def refund(**changes: Any) -> dict[str, Any]:
    action = {"type": "refund", "order_id": "LK-551906", "amount": 129, "reason": "late"}
    return {"outcome": "resolve", "actions": [action | changes]}


LABEL = {"type": "label", "order_id": "LK-551906", "sku": "T-1", "reason": "wrong_item"}


@pytest.mark.parametrize(
    ("resolution", "code"),
    [
        (refund(), None),
        ({"outcome": "resolve", "actions": [LABEL]}, None),
        ({"outcome": "reply_only", "actions": []}, None),
        # only `resolve` carries actions, and it carries one at least
        ({"outcome": "resolve", "actions": []}, "invalid_arguments"),
        ({**refund(), "outcome": "reply_only"}, "invalid_arguments"),
        (refund(amount=0), "invalid_arguments"),
        (refund(amount=5001), "invalid_arguments"),
        (refund(amount=None), "invalid_arguments"),
        (refund(reason="a whole paragraph about rule R2"), "invalid_arguments"),
        # a return label with a refund's reason, and without what it is for
        ({"outcome": "resolve", "actions": [{**LABEL, "reason": "late"}]}, "invalid_arguments"),
        ({"outcome": "resolve", "actions": [{**LABEL, "sku": None}]}, "invalid_arguments"),
        # an order that no tool has returned in this task
        (refund(order_id="LK-615204"), "not_found"),
        (refund(order_id="LK-123456"), "not_found"),
    ],
)
def test_a_resolution_has_a_contract_of_its_own(resolution: Any, code: str | None):
    desk = Desk()
    desk.answer("get_customer_orders", "{}")
    answer = desk.answer("finish", resolution)
    assert answer.get("error", {}).get("code") == code
    assert (desk.runtime.resolution is None) is (code is not None)
    assert desk.asked["request_refund"] == 0


def test_a_person_approves_and_then_it_happens_once():
    desk = Desk()
    desk.answer("get_customer_orders", "{}")
    desk.answer("finish", refund())
    (proposal,) = desk.runtime.proposals
    assert desk.runtime.execute(proposal, approved_by="mei")["refunded"] == 129
    with pytest.raises(errors.EffectNotRetryable):
        desk.runtime.execute(proposal, approved_by="mei")
    assert desk.asked["request_refund"] == 1


def test_the_owner_is_asked_again_when_the_write_happens():
    desk = Desk()
    desk.answer("get_customer_orders", "{}")
    desk.answer("finish", refund())
    desk.owners["LK-551906"] = "C-20417"
    with pytest.raises(errors.NotFound):
        desk.runtime.execute(desk.runtime.proposals[0], approved_by="mei")
    assert desk.asked["request_refund"] == 0


# --- what a description is ------------------------------------------------------------------------


def test_another_description_is_another_prompt_and_the_same_check():
    before, after = GET_ORDER, read("get_order", "Find an order.", order_id=ORDER_ID)
    assert before.prompt_hash != after.prompt_hash
    assert before.schema_hash == after.schema_hash

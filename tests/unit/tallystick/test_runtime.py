"""Tools behind the gates in one process: what runs, what does not, and what everyone is told."""

import asyncio
import datetime as dt
import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from tallystick import (
    Approval,
    ApprovalRequest,
    Catalog,
    Contract,
    Injected,
    PolicyRuntime,
    contract,
    errors,
)
from tallystick.policy import Policy
from tallystick.runtime import Proposal

POLICY = """
version: "0.2"
id: shop
title: Orders and refunds
defaults: {unknown_tools: block}
tools:
  orders.get: {risk: read}
  refund: {risk: high_risk}
facts:
  - {name: total, from_tool: orders.get, path: total, per: {arg: order_id}}
budgets: {max_high_risk_calls: 2}
rules:
  - {name: look-first, type: require_prior_call, tool: refund, prior_tool: orders.get,
     effect: block}
  - name: within-total
    type: compare
    tool: refund
    left: {source: arg, key: amount}
    op: gt
    right: {source: fact, key: total, for: {source: arg, key: order_id}}
    effect: block
  - {name: large, type: compare, tool: refund, left: {source: arg, key: amount}, op: gte,
     right: {source: const, value: 100}, effect: needs_human}
"""
TEXT = {"type": "string"}
OWNED = [
    {
        "argument": "/order_id",
        "kind": "order",
        "subject": "customer_id",
        "tool": "orders.get",
        "asked": "/order_id",
        "owner": "/customer_id",
    }
]
ORDERS = {
    "LK-1": {"order_id": "LK-1", "customer_id": "C-1", "total": 150},
    "LK-2": {"order_id": "LK-2", "customer_id": "C-2", "total": 900},
}
SUBJECT = {"customer_id": "C-1"}


def a_contract(name: str, effect_class: str = "PURE", **fields: Any) -> Contract:
    properties: dict[str, Any] = {"order_id": TEXT}
    if name == "refund":
        properties["amount"] = {"type": "number", "exclusiveMinimum": 0}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Contract.of(
        name=name,
        version="1.0",
        description=f"Do {name}.",
        effect_class=effect_class,
        **{"capabilities": [], "input_schema": schema, **fields},
    )


GET = a_contract("orders.get", ownership=OWNED, output_schema={"type": "object"})
REFUND = a_contract(
    "refund",
    "UNKNOWN",
    ownership=OWNED,
    returned=[{"argument": "/order_id", "tools": ["orders.get"]}],
)


class Shop:
    """A shop with a book of what was really done."""

    def __init__(self, policy: str | None = POLICY, **options: Any) -> None:
        self.book: list[tuple[str, Any]] = []
        given: dict[str, Any] = {"contracts": [GET, REFUND], "subject": SUBJECT, **options}
        self.runtime = PolicyRuntime(
            None if policy is None else Policy.parse(policy),
            **given,
        )
        self.runtime.tool("orders.get")(self.get)
        self.runtime.tool("refund")(self.refund)

    def get(self, order_id: str) -> Any:
        self.book.append(("get", order_id))
        return ORDERS.get(order_id, {})

    def refund(self, order_id: str, amount: float) -> Any:
        self.book.append(("refund", (order_id, amount)))
        return {"refunded": amount}

    def refunds(self) -> list[Any]:
        return [what for name, what in self.book if name == "refund"]


def told(runtime: PolicyRuntime, name: str, arguments: Any) -> dict[str, Any]:
    return json.loads(runtime.answer(name, arguments).text())


# --- the gates in their order ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "gate", "code", "true_code"),
    [
        # Each call has every fault of the gates behind the one that refuses it.
        ("nope", "[", "contract", "unknown_tool", "tool_contract_not_found"),
        ("refund", {"order_id": "LK-2"}, "arguments", "invalid_arguments", "invalid_arguments"),
        ("refund", {"order_id": "LK-2", "amount": 999}, "permission", "not_found", "not_returned"),
        ("orders.get", {"order_id": "LK-2"}, "permission", "not_found", "not_owner"),
        ("orders.get", {"order_id": "LK-9"}, "permission", "not_found", "not_found"),
    ],
)
def test_the_first_gate_that_says_no_is_the_one_that_is_told(
    name: str, arguments: Any, gate: str, code: str, true_code: str
):
    shop = Shop(owner_of=lambda kind, key: ORDERS.get(str(key), {}).get("customer_id"))
    assert told(shop.runtime, name, arguments)["error"]["code"] == code
    (entry,) = shop.runtime.trace
    assert (entry.gate, entry.code, entry.true_code) == (gate, code, true_code)
    assert shop.book == []


def test_a_call_that_is_refused_early_asks_nobody():
    asked: list[Any] = []
    shop = Shop(
        owner_of=lambda *question: asked.append(question),
        approve=lambda request: asked.append(request) or True,
    )
    for arguments in ("not json", {}, {"order_id": 7}, {"order_id": "LK-1", "x": 1}):
        error = told(shop.runtime, "refund", arguments)["error"]
        assert error["code"] == "invalid_arguments"
    # And what no tool has returned is refused before anybody is asked whose it is.
    assert told(shop.runtime, "refund", {"order_id": "LK-1", "amount": 1})["ok"] is False
    assert (asked, shop.book) == ([], [])


def test_a_refused_call_spends_nothing():
    shop = Shop()
    shop.runtime.call("orders.get", order_id="LK-1")
    for amount in (0, 999, 120):
        told(shop.runtime, "refund", {"order_id": "LK-1", "amount": amount})
    for _ in range(2):
        shop.runtime.call("refund", order_id="LK-1", amount=1)
    with pytest.raises(errors.BudgetExhausted):
        shop.runtime.call("refund", order_id="LK-1", amount=1)


def test_a_call_raises_and_an_answer_tells():
    shop = Shop()
    assert shop.runtime.call("orders.get", order_id="LK-1") == ORDERS["LK-1"]
    assert told(shop.runtime, "orders.get", '{"order_id": "LK-1"}')["result"] == ORDERS["LK-1"]
    with pytest.raises(errors.PolicyBlocked, match="within-total") as caught:
        shop.runtime.call("refund", order_id="LK-1", amount=151)
    assert caught.value.facts == {"rule": "within-total", "policy": "shop"}
    assert told(shop.runtime, "refund", {"order_id": "LK-1", "amount": 99})["ok"] is True
    assert [entry.code for entry in shop.runtime.trace] == ["ok", "ok", "policy_blocked", "ok"]


def test_a_function_stays_what_it_is():
    shop = Shop()
    assert shop.runtime.tool("other", contract=a_contract("other"))(len) is len


# --- permission -----------------------------------------------------------------------------------


def test_the_declared_tool_is_asked_who_owns_an_object():
    shop = Shop()
    assert told(shop.runtime, "orders.get", {"order_id": "LK-2"})["error"]["code"] == "not_found"
    assert shop.runtime.trace[0].true_code == "not_owner"
    assert told(shop.runtime, "orders.get", {"order_id": "LK-1"})["ok"] is True
    shop.book.clear()
    # What it told in this run is known, and not asked again.
    assert told(shop.runtime, "refund", {"order_id": "LK-1", "amount": 1})["ok"] is True
    assert [name for name, _ in shop.book] == ["refund"]


@pytest.mark.parametrize(
    ("owner", "is_returned", "true_code"),
    [("C-2", True, "not_owner"), (None, True, "not_found"), ("C-1", False, "not_returned")],
)
def test_every_no_about_an_object_is_the_same_bytes(
    owner: str | None, is_returned: bool, true_code: str
):
    runtime = PolicyRuntime(subject=SUBJECT, owner_of=lambda kind, key: owner)
    runtime.tool("list")(lambda: ["LK-3"] if is_returned else [])
    asks_both = a_contract("pay", ownership=OWNED, returned=[{"argument": "/order_id"}])
    runtime.tool(contract=asks_both)(lambda order_id: order_id)
    runtime.call("list")
    assert runtime.answer("pay", {"order_id": "LK-3"}).text() == (
        '{"ok":false,"error":{"code":"not_found","message":"No order LK-3 is available. '
        'It has to come from the result of a tool in this run.",'
        '"retryable":false,"pointer":"/order_id"}}'
    )
    assert runtime.trace[-1].true_code == true_code


def test_an_owner_that_cannot_be_asked_lets_nothing_pass():
    def broken(kind: str, identifier: object) -> str:
        raise ConnectionError(kind, identifier)

    shop = Shop(owner_of=broken)
    assert told(shop.runtime, "orders.get", {"order_id": "LK-1"})["error"]["code"] == (
        "service_unavailable"
    )
    assert (shop.runtime.trace[0].gate, shop.book) == ("permission", [])


def test_without_an_owner_tool_or_a_callback_nobody_owns_anything():
    nobody = [{"argument": "/order_id", "kind": "order", "subject": "customer_id"}]
    runtime = PolicyRuntime(subject=SUBJECT)
    runtime.tool(contract=a_contract("peek", ownership=nobody))(lambda order_id: order_id)
    assert told(runtime, "peek", {"order_id": "LK-1"})["error"]["code"] == "not_found"


def test_capabilities_are_held_to_the_grant():
    writes = a_contract("note", capabilities=["note:write:{tenant}"])
    for granted, passes in (
        (None, True),
        (["note:write:acme"], True),
        (["note:write:other"], False),
    ):
        runtime = PolicyRuntime(granted=granted, tenant="acme")
        runtime.tool(contract=writes)(lambda order_id: order_id)
        assert told(runtime, "note", {"order_id": "LK-1"})["ok"] is passes


# --- people ---------------------------------------------------------------------------------------


def ready(**options: Any) -> Shop:
    shop = Shop(**options)
    shop.runtime.call("orders.get", order_id="LK-1")
    return shop


LARGE = {"order_id": "LK-1", "amount": 120}


@pytest.mark.parametrize(
    ("word", "code", "true_code"),
    [
        (True, "ok", "ok"),
        (Approval(approved=True, by="mei"), "ok", "ok"),
        (False, "policy_blocked", "approval_rejected"),
        (Approval(approved=False, by="mei"), "policy_blocked", "approval_rejected"),
        (None, "policy_blocked", "approval_rejected"),
        ("yes", "policy_blocked", "approval_rejected"),
        (Approval(approved=True, by="agent"), "needs_human", "same_person"),
    ],
)
def test_a_persons_word_decides(word: Any, code: str, true_code: str):
    asked: list[ApprovalRequest] = []
    shop = ready(principal="agent", approve=lambda request: asked.append(request) or word)
    shop.runtime.answer("refund", LARGE)
    entry = shop.runtime.trace[-1]
    assert (entry.code, entry.true_code, entry.rule) == (code, true_code, "large")
    assert shop.refunds() == ([("LK-1", 120)] if code == "ok" else [])
    (request,) = asked
    assert (request.tool, request.arguments, request.rule) == ("refund", LARGE, "large")
    assert request.policy == "shop"


def test_without_anybody_to_ask_it_waits():
    shop = ready()
    with pytest.raises(errors.NeedsHuman, match="large"):
        shop.runtime.call("refund", **LARGE)
    assert shop.refunds() == []


def test_a_person_is_not_asked_about_what_is_blocked():
    asked: list[Any] = []
    shop = ready(approve=lambda request: asked.append(request) or True)
    assert told(shop.runtime, "refund", {**LARGE, "amount": 151})["ok"] is False
    assert asked == []


def test_what_has_changed_while_a_person_thought_counts():
    def spend_the_rest(request: ApprovalRequest) -> bool:
        for _ in range(2):
            shop.runtime.call("refund", order_id="LK-1", amount=1)
        return True

    shop = ready(approve=spend_the_rest)
    assert told(shop.runtime, "refund", LARGE)["error"]["code"] == "budget_exhausted"
    assert shop.refunds() == [("LK-1", 1), ("LK-1", 1)]

    owners = {"LK-1": "C-1"}
    shop = ready(
        owner_of=lambda kind, key: owners.get(str(key)),
        approve=lambda request: owners.clear() or True,
    )
    assert told(shop.runtime, "refund", LARGE)["error"]["code"] == "not_found"
    assert (shop.runtime.trace[-1].gate, shop.refunds()) == ("permission", [])


def test_a_question_that_fails_lets_nothing_pass():
    def broken(request: ApprovalRequest) -> bool:
        raise OSError(request.tool)

    shop = ready(approve=broken)
    assert told(shop.runtime, "refund", LARGE)["error"]["code"] == "needs_human"
    assert (shop.runtime.trace[-1].true_code, shop.refunds()) == ("OSError", [])


def test_a_contract_asks_for_a_person_too():
    for approval, has_policy, passes in (
        ("always", True, False),
        ("policy", True, True),
        ("policy", False, False),
        ("never", False, True),
    ):
        one = a_contract("orders.get", approval=approval)
        runtime = PolicyRuntime(Policy.parse(POLICY) if has_policy else None)
        runtime.tool(contract=one)(lambda order_id: order_id)
        assert told(runtime, "orders.get", {"order_id": "LK-1"})["ok"] is passes


# --- the service ----------------------------------------------------------------------------------


def failing(effect_class: str, *raised: Exception | None) -> tuple[PolicyRuntime, list[Any]]:
    left, calls = list(raised), list[Any]()

    def work(order_id: str) -> str:
        calls.append(order_id)
        error = left.pop(0) if left else None
        if error is not None:
            raise error
        return "done"

    runtime = PolicyRuntime()
    runtime.tool(contract=a_contract("work", effect_class))(work)
    return runtime, calls


def test_a_failed_read_may_be_tried_once_more():
    runtime, _ = failing("PURE", TimeoutError(), TimeoutError(), None, TimeoutError())
    messages = [
        told(runtime, "work", {"order_id": "1"}).get("error", {}).get("message", "ok")
        for _ in range(4)
    ]
    assert "You may try again once." in messages[0]
    assert "do not try once more" in messages[1]
    assert messages[2] == "ok"
    assert "You may try again once." in messages[3]


def test_a_write_whose_end_nobody_knows_does_not_run_again():
    runtime, calls = failing("UNKNOWN", TimeoutError())
    first = told(runtime, "work", {"order_id": "1"})["error"]
    again = told(runtime, "work", {"order_id": "1"})["error"]
    assert (first["code"], first["retryable"]) == ("service_timeout", False)
    assert (again["code"], calls) == ("effect_not_retryable", ["1"])
    assert told(runtime, "work", {"order_id": "2"})["ok"] is True


def test_a_call_raises_from_what_the_tool_raised():
    runtime, _ = failing("PURE", KeyError("secret"))
    with pytest.raises(errors.ServiceUnavailable) as caught:
        runtime.call("work", order_id="1")
    assert isinstance(caught.value.__cause__, KeyError)
    assert "secret" not in str(caught.value)


def test_a_result_that_is_no_json_is_told_as_done():
    runtime = PolicyRuntime()
    runtime.tool(contract=a_contract("odd"))(lambda order_id: object())
    error = told(runtime, "odd", {"order_id": "1"})["error"]
    assert (error["code"], error["retryable"]) == ("invalid_result", False)
    assert "was done" in error["message"]


def test_a_result_that_breaks_its_contract_is_nothing_to_go_by():
    shop = Shop()
    runtime = PolicyRuntime(Policy.parse(POLICY), subject=SUBJECT)
    number = {"type": "object", "properties": {"total": {"type": "number"}}}
    runtime.tool(contract=a_contract("orders.get", output_schema=number))(
        lambda order_id: {"total": "150"}
    )
    runtime.tool(contract=a_contract("refund", "UNKNOWN"))(shop.refund)
    assert told(runtime, "orders.get", {"order_id": "LK-1"})["ok"] is True
    assert runtime.trace[0].true_code == "invalid_result"
    assert told(runtime, "refund", {"order_id": "LK-1", "amount": 1})["error"]["code"] == (
        "policy_blocked"
    )


def test_a_long_result_is_cut_to_the_limit_of_its_contract():
    runtime = PolicyRuntime()
    runtime.tool(contract=a_contract("many", result_limit=200))(lambda order_id: ["x" * 9] * 999)
    text = runtime.answer("many", {"order_id": "1"}).text()
    assert len(text) <= 200
    assert json.loads(text)["truncated"]["items"] > 900


# --- contracts of tools ---------------------------------------------------------------------------


def test_a_signature_makes_a_contract_whose_kind_the_policy_says():
    runtime = PolicyRuntime(Policy.parse(POLICY), writes="propose")

    @runtime.tool("orders.get")
    def get(order_id: str) -> dict[str, int]:
        return {"total": len(order_id)}

    @runtime.tool("refund")
    def refund(order_id: str, amount: int) -> None: ...

    assert [each["function"]["name"] for each in runtime.tools()] == ["orders_get"]
    assert runtime.call("orders.get", order_id="LK-1") == {"total": 4}


def test_the_newest_contract_of_the_catalog_holds():
    older = a_contract("orders.get", input_schema={"type": "object"})
    newer = Contract.parse({**GET.document, "version": "1.1"})
    runtime = PolicyRuntime(contracts=Catalog([older, newer]))
    runtime.tool("orders.get")(lambda order_id: order_id)
    assert told(runtime, "orders.get", {})["error"]["code"] == "invalid_arguments"


def test_a_declared_function_brings_its_contract(tmp_path: Path):
    @contract(
        name="search_docs",
        effect_class="PURE",
        result_limit=100,
        lockfile=tmp_path / "tallystick.lock",
        frozen=False,
    )
    def search(query: str) -> list[str]:
        """Search documents."""
        return [query] * 100

    runtime = PolicyRuntime()
    runtime.tool()(search)
    assert len(runtime.answer("search_docs", {"query": "tea"}).text()) <= 100
    with pytest.raises(errors.InvalidRequest, match="search_docs"):
        PolicyRuntime().tool("search")(search)


def test_two_tools_of_one_name_are_refused():
    shop = Shop()
    with pytest.raises(errors.NameTaken):
        shop.runtime.tool("refund")(shop.refund)


class Line(BaseModel):
    sku: str
    price: Decimal


def even(number: int) -> int:
    if number % 2:
        raise ValueError("must be even")
    return number


def test_a_function_gets_what_its_annotations_say():
    runtime = PolicyRuntime(injected={"session": "S", "customer": "C-1"})
    seen: list[Any] = []

    @runtime.tool("ship", injected=["customer"])
    def ship(
        at: dt.date,
        lines: list[Line],
        customer: object,
        session: Annotated[str, Injected],
        count: Annotated[int, AfterValidator(even)] = 2,
    ) -> Line:
        seen.append((at, lines, customer, session, count))
        return lines[0]

    given = {"at": "2026-11-30", "lines": [{"sku": "T", "price": "9.50"}]}
    assert told(runtime, "ship", given)["result"] == {"sku": "T", "price": "9.50"}
    line = Line(sku="T", price=Decimal("9.50"))
    assert seen == [(dt.date(2026, 11, 30), [line], "C-1", "S", 2)]

    error = told(runtime, "ship", {**given, "count": 3})["error"]
    assert (error["code"], error["pointer"]) == ("invalid_arguments", "/count")
    assert "must be even" in error["message"]
    for stolen in ("customer", "session"):
        error = told(runtime, "ship", {**given, stolen: "C-2"})["error"]
        assert f"{stolen}: Extra inputs are not permitted" in error["message"]


def test_what_nobody_fills_in_is_a_mistake_of_the_application():
    runtime = PolicyRuntime()
    runtime.tool("greet", injected=["session"])(lambda session: session)
    with pytest.raises(errors.InvalidRequest, match="session"):
        runtime.answer("greet", {})


# --- the tool list --------------------------------------------------------------------------------


def test_the_list_is_closed_strict_where_it_can_be_and_in_order():
    shop = Shop()
    optional = a_contract("zzz", input_schema={"type": "object", "properties": {"q": TEXT}})
    shop.runtime.tool(contract=optional)(lambda: None)
    tools = [each["function"] for each in shop.runtime.tools()]
    assert [each["name"] for each in tools] == ["orders_get", "refund", "zzz"]
    assert all(each["parameters"]["additionalProperties"] is False for each in tools)
    assert [each.get("strict") for each in tools] == [True, True, None]
    assert told(shop.runtime, "orders_get", {"order_id": "LK-1"})["ok"] is True


# --- proposals ------------------------------------------------------------------------------------

RESOLUTION = Contract.of(
    name="finish",
    version="1.0",
    description="End the task with a resolution.",
    capabilities=[],
    effect_class="PURE",
    returned=[{"argument": "/actions/order_id", "tools": ["orders.get"]}],
    input_schema={
        "type": "object",
        "properties": {
            "outcome": {"enum": ["resolve", "reply_only"]},
            "actions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"order_id": TEXT, "amount": {"type": "number"}},
                    "required": ["order_id", "amount"],
                },
            },
        },
        "required": ["outcome", "actions"],
    },
)


def proposing(**options: Any) -> Shop:
    return ready(
        writes="propose",
        resolution=RESOLUTION,
        proposals=lambda resolution: [("refund", each) for each in resolution["actions"]],
        principal="agent",
        **options,
    )


def resolving(*amounts: float, order_id: str = "LK-1") -> dict[str, Any]:
    actions = [{"order_id": order_id, "amount": amount} for amount in amounts]
    return {"outcome": "resolve", "actions": actions}


def test_a_model_is_not_offered_writes_that_it_can_only_propose():
    shop = proposing()
    assert [each["function"]["name"] for each in shop.runtime.tools()] == ["orders_get", "finish"]
    answer = shop.runtime.answer("refund", {"order_id": "LK-1", "amount": 1})
    unknown = shop.runtime.answer("refumd", {})
    assert answer.text() == unknown.text().replace("refumd", "refund")
    assert (shop.runtime.trace[-2].true_code, shop.refunds()) == ("not_offered", [])


def test_a_proposal_runs_once_with_another_persons_word():
    shop = proposing()
    assert told(shop.runtime, "finish", resolving(120, 5))["ok"] is True
    assert shop.runtime.resolution == resolving(120, 5)
    large, small = shop.runtime.proposals
    assert (large.rule, small.rule, shop.refunds()) == ("large", None, [])

    for nobody in ("", "agent"):
        with pytest.raises(errors.Forbidden):
            shop.runtime.execute(large, approved_by=nobody)
    assert shop.runtime.execute(large, approved_by="mei") == {"refunded": 120}
    with pytest.raises(errors.EffectNotRetryable):
        shop.runtime.execute(large, approved_by="mei")
    assert shop.refunds() == [("LK-1", 120)]
    assert shop.runtime.trace[-2].approved_by == "mei"


@pytest.mark.parametrize(
    ("resolution", "code", "message"),
    [
        ({"outcome": "refund"}, "invalid_arguments", "Input should be 'resolve' or 'reply_only'"),
        (resolving(1, order_id="LK-2"), "not_found", "No order_id LK-2 is available"),
        (resolving(-1), "invalid_arguments", "Action 1, refund: Invalid arguments for refund"),
        (resolving(1, 151), "policy_blocked", "Action 2, refund: The rule"),
        (resolving(1, 1, 1), "budget_exhausted", "Action 3, refund"),
    ],
)
def test_a_resolution_with_one_bad_proposal_is_refused_whole(
    resolution: Any, code: str, message: str
):
    shop = proposing()
    error = told(shop.runtime, "finish", resolution)["error"]
    assert error["code"] == code
    assert message in error["message"]
    assert (shop.runtime.proposals, shop.runtime.resolution) == ((), None)
    # Nothing was spent on it.
    assert shop.runtime.finish(resolving(1, 1)) == resolving(1, 1)


def test_a_run_ends_once():
    shop = proposing()
    shop.runtime.finish(resolving(1))
    with pytest.raises(errors.IllegalTransition):
        shop.runtime.finish(resolving(1))
    assert len(shop.runtime.proposals) == 1


def test_permission_is_checked_again_when_a_proposal_runs():
    owners = {"LK-1": "C-1"}
    shop = proposing(owner_of=lambda kind, key: owners.get(str(key)))
    shop.runtime.finish(resolving(1))
    (proposal,) = shop.runtime.proposals
    owners["LK-1"] = "C-2"
    with pytest.raises(errors.NotFound):
        shop.runtime.execute(proposal, approved_by="mei")
    owners["LK-1"] = "C-1"
    assert shop.runtime.execute(proposal, approved_by="mei") == {"refunded": 1}
    assert shop.refunds() == [("LK-1", 1)]


def test_a_proposal_of_another_run_is_none_of_this_one():
    shop, other = proposing(), proposing()
    for each in (shop, other):
        each.runtime.finish(resolving(1))
    with pytest.raises(errors.NotFound):
        shop.runtime.execute(other.runtime.proposals[0], approved_by="mei")
    assert isinstance(shop.runtime.proposals[0], Proposal)


# --- many at once ---------------------------------------------------------------------------------

LIMITED = """
version: "0.2"
id: limited
title: Limits
tools: {spend: {risk: write}}
budgets:
  max_total_calls: 1000
  limits:
    - {name: run, tools: [spend], max: MOST, amount: units, per: run}
    - {name: everyone, tools: [spend], max: ALL, amount: units, per: tenant, window: 24h}
rules:
"""
# So many rules that a decision takes longer than all else, and is met by another in its middle.
NEVER = """
  - {{name: never-{}, type: compare, tool: spend, left: {{source: arg, key: units}}, op: gt,
     right: {{source: const, value: 99}}, effect: block}}
"""


@pytest.fixture
def eager_threads():
    """Let threads take turns so often that an unguarded step is met between its halves."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def spending(function: Any, most: int = 9) -> PolicyRuntime:
    units = {"type": "object", "properties": {"units": {"type": "integer"}}, "required": ["units"]}
    text = LIMITED.replace("MOST", str(most)).replace("ALL", str(most + 3))
    runtime = PolicyRuntime(Policy.parse(text + "".join(map(NEVER.format, range(100)))))
    runtime.tool(contract=a_contract("spend", "UNKNOWN", input_schema=units))(function)
    return runtime


def test_threads_never_overspend_a_budget(eager_threads: None):
    spent: list[int] = []
    gate = threading.Barrier(32)

    def work(units: int) -> None:
        spent.append(units)

    runtime = spending(work, most=300)

    def spend(_: int) -> int:
        gate.wait(timeout=30)
        return sum(runtime.answer("spend", {"units": 1}).ok for _ in range(20))

    with ThreadPoolExecutor(32) as pool:
        passed = sum(pool.map(spend, range(32)))
    assert (passed, len(spent)) == (300, 300)


async def test_tasks_never_overspend_a_budget():
    spent: list[int] = []

    async def spend(units: int) -> None:
        await asyncio.sleep(0)
        spent.append(units)

    runtime = spending(spend)
    answers = await asyncio.gather(*(runtime.aanswer("spend", {"units": 1}) for _ in range(32)))
    assert (sum(answer.ok for answer in answers), len(spent)) == (9, 9)


def test_a_tenants_limit_is_shared_by_its_runs_and_whole_again_in_the_next_window():
    first = spending(lambda units: units)
    at = [dt.datetime(2026, 11, 30, 23, tzinfo=dt.UTC)]
    second = first.for_run(clock=lambda: at[0])
    third = second.for_run()
    assert second.answer("spend", {"units": 9}).ok
    assert not second.answer("spend", {"units": 1}).ok
    assert not third.answer("spend", {"units": 4}).ok
    assert third.answer("spend", {"units": 3}).ok
    assert not third.answer("spend", {"units": 1}).ok
    at[0] += dt.timedelta(hours=2)
    assert third.answer("spend", {"units": 6}).ok
    assert second.for_run(tenant="other").answer("spend", {"units": 9}).ok


def test_the_next_run_has_the_tools_and_none_of_the_history():
    shop = ready()
    run = shop.runtime.for_run(subject={"customer_id": "C-2"})
    assert run.trace == ()
    assert told(run, "refund", {"order_id": "LK-1", "amount": 1})["error"]["code"] == "not_found"
    assert told(run, "orders.get", {"order_id": "LK-2"})["ok"] is True
    with pytest.raises(errors.InvalidRequest):
        shop.runtime.for_run(contracts=[])


# --- asynchronous ---------------------------------------------------------------------------------


async def test_one_tool_list_serves_both_shells():
    runtime = PolicyRuntime(subject=SUBJECT, owner_of=owner_later, approve=approve_later)
    here = threading.get_ident()

    async def later(order_id: str) -> str:
        await asyncio.sleep(0)
        return order_id

    runtime.tool(contract=a_contract("later", approval="always", ownership=OWNED))(later)
    runtime.tool(contract=a_contract("now"))(lambda order_id: threading.get_ident() != here)
    assert await runtime.acall("later", order_id="LK-1") == "LK-1"
    assert (await runtime.aanswer("later", {"order_id": "LK-2"})).error is not None
    assert await runtime.acall("now", order_id="LK-1") is True


async def owner_later(kind: str, identifier: object) -> Any:
    await asyncio.sleep(0)
    return ORDERS[str(identifier)]["customer_id"]


async def approve_later(request: ApprovalRequest) -> bool:
    await asyncio.sleep(0)
    return request.tool == "later"


def test_a_blocking_call_of_an_asynchronous_tool_is_a_mistake_that_runs_nothing():
    ran: list[int] = []

    async def later(units: int) -> None:
        ran.append(units)

    runtime = spending(later)
    with pytest.raises(TypeError, match="acall"):
        runtime.answer("spend", {"units": 9})
    assert asyncio.run(runtime.aanswer("spend", {"units": 9})).ok
    assert ran == [9]


async def test_a_cancelled_write_is_one_whose_end_nobody_knows():
    began = asyncio.Event()

    async def work(order_id: str) -> None:
        began.set()
        await asyncio.sleep(3600)

    runtime = PolicyRuntime()
    runtime.tool(contract=a_contract("work", "UNKNOWN"))(work)
    task = asyncio.create_task(runtime.acall("work", order_id="1"))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert runtime.trace[0].true_code == "CancelledError"
    assert (await runtime.aanswer("work", {"order_id": "1"})).error is not None
    assert runtime.trace[1].code == "effect_not_retryable"


# --- trace and environment ------------------------------------------------------------------------


def test_the_trace_has_what_was_told_and_what_it_was(tmp_path: Path):
    path = tmp_path / "trace.jsonl"
    secret = {"type": "object", "properties": {"pin": {**TEXT, "x-sensitive": True}}}
    runtime = PolicyRuntime(trace=path)
    runtime.tool(contract=a_contract("unlock", input_schema=secret, output_schema=secret))(
        lambda pin: {"pin": pin}
    )
    runtime.answer("unlock", {"pin": "1234"})
    runtime.answer("unlock", {"pin": 1234})
    runtime.answer("nope", {"pin": "1234"})

    text = path.read_text(encoding="utf-8")
    assert "1234" not in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines == [entry.to_json() for entry in runtime.trace]
    assert [line["code"] for line in lines] == ["ok", "invalid_arguments", "unknown_tool"]
    assert lines[0]["result"] == {"pin": {"x-redacted": True}}
    assert {"at", "tool", "arguments", "decision", "gate", "true_code", "rule", "message"} <= (
        lines[1].keys()
    )


def test_the_environment_names_policy_and_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TALLYSTICK_POLICY", raising=False)
    with pytest.raises(errors.InvalidRequest, match="TALLYSTICK_POLICY"):
        PolicyRuntime.from_environment()
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    monkeypatch.setenv("TALLYSTICK_POLICY", str(tmp_path / "policy.yaml"))
    monkeypatch.setenv("TALLYSTICK_TRACE", str(tmp_path / "trace.jsonl"))
    for runtime in (
        PolicyRuntime.from_environment(),
        PolicyRuntime.from_file(tmp_path / "policy.yaml"),
    ):
        runtime.answer("nope", {})
    assert len((tmp_path / "trace.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    own = tmp_path / "own.jsonl"
    PolicyRuntime.from_environment(trace=own).answer("nope", {})
    assert own.exists()


def test_options_are_held_to_their_names():
    with pytest.raises(errors.InvalidRequest, match="propose"):
        PolicyRuntime(writes="never")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError):
        PolicyRuntime(colour="red")  # pyright: ignore[reportCallIssue]

"""`PolicyRuntime` connected to the real service: what it lets run is what the service says."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import httpx
import pytest

from tallystick import AsyncClient, Client, Contract, errors
from tallystick.canonical import Json
from tallystick.policy import Policy
from tallystick.runtime import PolicyRuntime
from tests.api import Api
from tests.fixtures import Owner, Sweep
from tests.gated import GET_ORDER, LIST_ORDERS, OWNED, POLICY, REFUND, RETURNED, Shop, a_budget
from tests.integration.test_lockfile_exchange import listening

NOTE: dict[str, Any] = GET_ORDER | {
    "name": "orders.add_note",
    "description": "Write a note on an order.",
    "capabilities": ["orders:write:{tenant}"],
    "effect_class": "NON_RETRYABLE",
    "errors": [
        {
            "code": "order_locked",
            "meaning": "The order is being changed. Wait.",
            "retryable": True,
            "not_executed": True,
        }
    ],
}
DOCUMENTS = [GET_ORDER, LIST_ORDERS, REFUND, NOTE]
ORDERS = {
    "LK-1": {"order_id": "LK-1", "customer_id": "C-1", "total": 500},
    "LK-2": {"order_id": "LK-2", "customer_id": "C-2", "total": 500},
}


class OrderLocked(Exception):
    code = "order_locked"


@dataclass
class Backend:
    """The shop behind the tools: what really happens there, and what goes wrong."""

    calls: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    faults: list[Exception] = field(default_factory=list[Exception])

    def did(self, what: str, about: Any = None) -> None:
        self.calls.append((what, about))
        if self.faults:
            raise self.faults.pop(0)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


@dataclass
class Agent:
    """A runtime with one of the two clients, and how it is called."""

    runtime: PolicyRuntime
    backend: Backend

    async def call(self, name: str, **arguments: Any) -> Any:
        return await self.runtime.acall(name, **arguments)

    async def answer(self, name: str, arguments: Any) -> Any:
        return (await self.runtime.aanswer(name, arguments)).to_json()

    def another(self, run: str, **changes: Any) -> "Agent":
        return Agent(self.runtime.for_run(run=run, **changes), self.backend)


class Threads(Agent):
    """The same, blocking in a thread."""

    async def call(self, name: str, **arguments: Any) -> Any:
        return await asyncio.to_thread(self.runtime.call, name, **arguments)

    async def answer(self, name: str, arguments: Any) -> Any:
        return (await asyncio.to_thread(self.runtime.answer, name, arguments)).to_json()

    def another(self, run: str, **changes: Any) -> "Agent":
        return Threads(self.runtime.for_run(run=run, **changes), self.backend)


def equip(runtime: PolicyRuntime, backend: Backend, *, awaited: bool) -> None:
    """Give a runtime the shop's tools, functions that block or functions that are awaited."""

    def get_order(order_id: str) -> Any:
        backend.did("get_order", order_id)
        return ORDERS.get(order_id)

    def list_orders() -> Any:
        backend.did("list_orders")
        return {"orders": [{"order_id": "LK-1"}]}

    def refund(order_id: str, amount: float, effect: Any) -> Any:
        assert effect.headers().keys() == {"Idempotency-Key"}
        backend.did("refund", amount)
        return {"refunded": amount}

    def add_note(order_id: str) -> Any:
        backend.did("add_note", order_id)
        return {"noted": order_id}

    def shape(function: Callable[..., Any]) -> Callable[..., Any]:
        if not awaited:
            return function

        @wraps(function)
        async def later(**arguments: Any) -> Any:
            await asyncio.sleep(0)
            return function(**arguments)

        return later

    runtime.tool("orders.get_order")(shape(get_order))
    runtime.tool("orders.list_orders")(shape(list_orders))
    runtime.tool("orders.refund", injected=["effect"])(shape(refund))
    runtime.tool("orders.add_note")(shape(add_note))


@pytest.fixture
async def url(api: Api) -> AsyncGenerator[str]:
    async with listening(api.app) as url:
        yield url


@pytest.fixture
async def shop(api: Api) -> Shop:
    return await Shop(api).publish(*DOCUMENTS)


Connect = Callable[..., Agent]


with_both = pytest.mark.parametrize("connect", ["Client", "AsyncClient"], indirect=True)
"""Most of the way is the same: what differs is tried with both clients."""


@pytest.fixture
async def connect(
    request: pytest.FixtureRequest, api: Api, url: str, shop: Shop
) -> AsyncGenerator[Connect]:
    """Make an agent with one of the clients; the contracts of its tools are published."""
    del shop
    awaited = getattr(request, "param", "Client") == "AsyncClient"
    with Client(url, api.token, retry_seconds=0) as blocking:
        async with AsyncClient(url, api.token, retry_seconds=0) as asynchronous:

            def connect(*documents: dict[str, Any], run: str = "run-1", **options: Any) -> Agent:
                contracts = {each["name"]: each for each in (*DOCUMENTS, *documents)}
                backend = Backend()
                runtime = PolicyRuntime(
                    client=asynchronous if awaited else blocking,
                    run=run,
                    contracts=[Contract.parse(each) for each in contracts.values()],
                    **options,
                )
                equip(runtime, backend, awaited=awaited)
                return (Agent if awaited else Threads)(runtime, backend)

            yield connect


@pytest.fixture
async def grace(api: Api, owner: Owner) -> AsyncGenerator[Api]:
    """A person who may approve."""
    grace = api.speaking_for(await owner.token("default", "approver", principal="grace"))
    async with grace.http:
        yield grace


# --- the way of a call ----------------------------------------------------------------------------


@with_both
async def test_a_call_is_an_effect_of_the_run(connect: Connect, shop: Shop):
    agent = connect()
    assert await agent.call("orders.get_order", order_id="LK-1") == ORDERS["LK-1"]
    assert await agent.answer("orders_refund", '{"order_id": "LK-1", "amount": 5}') == {
        "ok": True,
        "result": {"refunded": 5},
    }
    assert agent.backend.calls == [("get_order", "LK-1"), ("refund", 5)]
    trace = await shop.trace()
    assert [(one["tool"], one["state"]) for one in trace] == [
        ("orders.get_order", "SUCCEEDED"),
        ("orders.refund", "SUCCEEDED"),
    ]
    assert [each.code for each in agent.runtime.trace] == ["ok", "ok"]


async def test_what_the_first_gates_refuse_never_reaches_the_service(
    connect: Connect, owner: Owner
):
    agent = connect()
    before = await owner.counts()
    unknown = await agent.answer("orders.delete", {})
    wrong = await agent.answer("orders.get_order", {"order_id": 7, "extra": 1})
    assert [each["error"]["code"] for each in (unknown, wrong)] == [
        "unknown_tool",
        "invalid_arguments",
    ]
    assert [each.gate for each in agent.runtime.trace] == ["contract", "arguments"]
    assert await owner.counts() == before
    assert agent.backend.calls == []


async def test_an_equal_write_is_done_once_and_an_equal_read_is_made_again(connect: Connect):
    agent = connect()
    for _ in range(2):
        await agent.call("orders.get_order", order_id="LK-1")
        assert await agent.call("orders.add_note", order_id="LK-1") == {"noted": "LK-1"}
    assert agent.backend.names == ["get_order", "add_note", "get_order"]
    other = agent.another("run-2")
    await other.call("orders.add_note", order_id="LK-1")
    assert agent.backend.names[3:] == ["add_note"]


async def test_a_run_that_is_taken_up_again_is_answered_from_the_ledger(connect: Connect):
    first, second = connect(), connect()
    for agent in (first, second):
        assert await agent.call("orders.get_order", order_id="LK-1") == ORDERS["LK-1"]
        assert await agent.call("orders.add_note", order_id="LK-1") == {"noted": "LK-1"}
    assert (first.backend.names, second.backend.names) == (["get_order", "add_note"], [])


@with_both
async def test_equal_reads_at_once_are_each_answered(connect: Connect):
    agent = connect()
    results = await asyncio.gather(
        *(agent.call("orders.get_order", order_id="LK-1") for _ in range(5))
    )
    assert results == [ORDERS["LK-1"]] * 5


async def test_equal_writes_at_once_are_one(connect: Connect):
    agent = connect()
    answers = await asyncio.gather(
        *(agent.answer("orders.add_note", {"order_id": "LK-1"}) for _ in range(4))
    )
    assert agent.backend.names == ["add_note"]
    told = {each["error"]["code"] for each in answers if not each["ok"]}
    assert told <= {"effect_not_retryable"}, "one of them is running"
    assert await agent.call("orders.add_note", order_id="LK-1") == {"noted": "LK-1"}
    assert agent.backend.names == ["add_note"]


@pytest.mark.parametrize("declared", [True, False])
async def test_every_attempt_hands_the_function_the_same(
    connect: Connect, api: Api, shop: Shop, sweep: Sweep, *, declared: bool
):
    """What a model words anew, or writes in another order, is sent as it was the first time."""
    properties: dict[str, Any] = NOTE["input_schema"]["properties"] | {"labels": {"type": "object"}}
    properties |= {"request_id": {"type": "string"}} if declared else {}
    place = {"argument": "/request_id", "retention_seconds": 3600, "conflict": {"statuses": [409]}}
    document = NOTE | {
        "name": "orders.label",
        "input_schema": NOTE["input_schema"] | {"properties": properties},
        "effect_class": "IDEMPOTENT",
        "idempotency": place,
        "identity_fields": ["order_id"],
        "lease_seconds": 30,
    }
    await shop.publish(document)
    got: list[tuple[str, str]] = []

    def runtime() -> Agent:
        agent = connect(document)

        def label(order_id: str, labels: dict[str, Any], effect: Any, request_id: str = "") -> Any:
            assert (request_id == effect.idempotency_key) is declared
            got.append((json.dumps([order_id, labels]), effect.idempotency_key))
            agent.backend.did("label")
            return {}

        def undeclared(order_id: str, labels: dict[str, Any], effect: Any) -> Any:
            return label(order_id, labels, effect)

        function = label if declared else undeclared
        agent.runtime.tool("orders.label", injected=["effect"])(function)
        return agent

    first = runtime()
    first.backend.faults = [ConnectionResetError()]
    labels = {"z": 1.0, "a": "for May"}
    answer = await first.answer("orders.label", {"order_id": "LK-1", "labels": labels})
    assert answer["error"]["code"] == "service_unavailable"
    (effect,) = await api.effects("tool=orders.label")
    await sweep.until(api, effect, "QUARANTINED")
    path = f"/v1/effects/{effect['effect_id']}/retry"
    assert (await api.ask("POST", path, {"reason": "looked it up"})).status == 200
    labels = {"a": "for the month of May", "z": 2}
    assert await runtime().call("orders.label", labels=labels, order_id="LK-1") == {}
    assert got[0] == got[1]
    assert got[0][0] == '["LK-1", {"a": "for May", "z": 1}]'


# --- policy, budgets, approvals -------------------------------------------------------------------


async def test_the_policy_in_force_decides_on_what_the_ledger_knows(connect: Connect, shop: Shop):
    await shop.govern(POLICY)
    agent = connect()
    with pytest.raises(errors.PolicyBlocked) as raised:
        await agent.call("orders.refund", order_id="LK-1", amount=5)
    assert raised.value.facts["rule"] == "look-first"
    await agent.call("orders.get_order", order_id="LK-1")
    assert await agent.call("orders.refund", order_id="LK-1", amount=5) == {"refunded": 5}
    refused = await agent.answer("orders.refund", {"order_id": "LK-1", "amount": 501})
    assert refused["error"]["code"] == "policy_blocked"
    assert [(each.gate, each.decision, each.rule) for each in agent.runtime.trace] == [
        ("policy", "block", "look-first"),
        (None, "allow", None),
        (None, "allow", None),
        ("policy", "block", "not-more-than-the-order"),
    ]
    assert agent.backend.names == ["get_order", "refund"]


@with_both
async def test_two_runtimes_of_a_run_have_one_budget(connect: Connect, shop: Shop):
    await shop.govern(a_budget(per="run", max=2))
    one, two = connect(), connect()
    outcomes = await asyncio.gather(
        *(
            agent.answer("orders.refund", {"order_id": "LK-1", "amount": amount})
            for amount, agent in enumerate([one, two, one, two, one], start=1)
        )
    )
    codes = [each["error"]["code"] for each in outcomes if not each["ok"]]
    assert codes == ["budget_exhausted"] * 3
    assert len(one.backend.calls) + len(two.backend.calls) == 2


@with_both
async def test_a_call_waits_for_a_person_and_then_runs_as_it_was(
    connect: Connect, shop: Shop, grace: Api
):
    await shop.govern(POLICY)
    agent = connect()
    await agent.call("orders.get_order", order_id="LK-1")
    large = {"order_id": "LK-1", "amount": 120}
    ids: set[object] = set()
    for _ in range(2):
        with pytest.raises(errors.NeedsHuman) as raised:
            await agent.call("orders.refund", **large)
        ids.add(raised.value.facts["approval_id"])
    (approval_id,) = ids
    assert agent.runtime.trace[-1].decision == "needs_human"
    answer = await grace.ask("POST", f"/v1/approvals/{approval_id}/approve", {})
    assert answer.status == 200
    assert await agent.call("orders.refund", **large) == {"refunded": 120}
    assert await agent.call("orders.refund", **large) == {"refunded": 120}
    assert agent.backend.names == ["get_order", "refund"]


async def test_what_a_person_refused_stays_refused_in_the_run(
    connect: Connect, shop: Shop, grace: Api
):
    await shop.publish(NOTE | {"version": "1.1", "approval": "always"})
    agent = connect(NOTE | {"version": "1.1", "approval": "always"})
    with pytest.raises(errors.NeedsHuman) as raised:
        await agent.call("orders.add_note", order_id="LK-1")
    path = f"/v1/approvals/{raised.value.facts['approval_id']}/reject"
    assert (await grace.ask("POST", path, {"reason": "No."})).status == 200
    for _ in range(2):
        with pytest.raises(errors.ApprovalRejected) as refused:
            await agent.call("orders.add_note", order_id="LK-1")
        assert refused.value.facts["reason"] == "No."
        assert "No." not in refused.value.detail, "what a model is told"
    assert agent.runtime.trace[-1].gate == "policy"
    assert agent.backend.calls == []


async def test_what_was_approved_before_the_policy_changed_is_asked_anew(
    connect: Connect, shop: Shop, grace: Api
):
    await shop.govern(POLICY)
    agent = connect()
    await agent.call("orders.get_order", order_id="LK-1")
    large = {"order_id": "LK-1", "amount": 120}
    with pytest.raises(errors.NeedsHuman) as first:
        await agent.call("orders.refund", **large)
    path = f"/v1/approvals/{first.value.facts['approval_id']}/approve"
    assert (await grace.ask("POST", path, {})).status == 200
    await shop.govern(POLICY.replace("value: 100", "value: 90"))
    with pytest.raises(errors.ApprovalStale):
        await agent.call("orders.refund", **large)
    await agent.call("orders.get_order", order_id="LK-1")
    with pytest.raises(errors.NeedsHuman) as second:
        await agent.call("orders.refund", **large)
    assert second.value.facts["approval_id"] != first.value.facts["approval_id"]
    assert agent.backend.names == ["get_order", "get_order"]


# --- whose it is ----------------------------------------------------------------------------------


@with_both
async def test_the_service_knows_on_whose_behalf_and_whose_it_is(connect: Connect, shop: Shop):
    owned = REFUND | {"version": "1.1", "ownership": OWNED}
    await shop.publish(owned)
    agent = connect(owned, subject={"customer_id": "C-1"})
    assert await agent.call("orders.refund", order_id="LK-1", amount=5) == {"refunded": 5}
    answers = [
        await agent.answer("orders.refund", {"order_id": order, "amount": 5})
        for order in ("LK-2", "LK-3")
    ]
    told = {str(each).replace("LK-3", "LK-2") for each in answers}
    assert len(told) == 1
    assert "No order LK-2 is available." in told.pop()
    assert agent.backend.names == ["get_order", "refund", "get_order", "get_order"]
    assert [one[2] for one in await shop.refusals()] == ["not_owner", "not_found"]
    shown = (await shop.api.ask("GET", "/v1/runs/run-1")).body
    assert shown["subject"] == {"customer_id": "C-1"}


async def test_who_owns_it_is_looked_up_beside_the_policy(connect: Connect, shop: Shop):
    """The runtime's own look-up is no call of the model's: nothing counts it, nothing blocks it."""
    owned = REFUND | {"version": "1.1", "ownership": OWNED, "returned": RETURNED}
    await shop.publish(owned)
    await shop.govern(POLICY)
    agent = connect(owned, subject={"customer_id": "C-1"})
    refund = {"order_id": "LK-1", "amount": 5}
    refused = await agent.answer("orders.refund", refund)
    assert refused["error"]["code"] == "not_found", "the model was never shown the order"
    await agent.call("orders.list_orders")
    refused = await agent.answer("orders.refund", refund)
    assert refused["error"]["code"] == "policy_blocked"
    assert "orders.get_order" in refused["error"]["message"], "it has not looked yet"
    await agent.call("orders.get_order", order_id="LK-1")
    assert (await agent.answer("orders.refund", refund))["ok"]


async def test_an_identifier_must_have_been_returned_in_the_run(connect: Connect, shop: Shop):
    returned = REFUND | {"version": "1.1", "returned": RETURNED}
    await shop.publish(returned)
    agent = connect(returned)
    await agent.call("orders.list_orders")
    await agent.call("orders.refund", order_id="LK-1", amount=5)
    with pytest.raises(errors.NotFound):
        await agent.call("orders.refund", order_id="LK-2", amount=5)
    assert agent.backend.names == ["list_orders", "refund"]
    # What a worker before it was given counts as well: the run is the ledger's.
    later = connect(returned)
    await later.call("orders.refund", order_id="LK-1", amount=6)
    assert later.backend.names == ["refund"]


async def test_the_application_says_whose_it_is_where_no_tool_does(connect: Connect, shop: Shop):
    owned = REFUND | {
        "version": "1.1",
        "ownership": [{"argument": "/order_id", "kind": "order", "subject": "customer_id"}],
    }
    await shop.publish(owned)
    asked: list[object] = []

    def owner_of(kind: str, identifier: object) -> Json:
        asked.append((kind, identifier))
        return ORDERS[str(identifier)]["customer_id"]

    for options in ({}, {"owner_of": owner_of}):
        agent = connect(owned, subject={"customer_id": "C-1"}, run=f"run-{len(options)}", **options)
        with pytest.raises(errors.NotFound):
            await agent.call("orders.refund", order_id="LK-2", amount=5)
    await agent.call("orders.refund", order_id="LK-1", amount=5)
    assert asked == [("order", "LK-2"), ("order", "LK-1")]
    assert agent.backend.names == ["refund"]


@with_both
async def test_whatever_a_look_up_answers_of_what_is_not_there_it_is_as_if_it_were_anothers(
    connect: Connect, shop: Shop
):
    owned = REFUND | {"version": "1.1", "ownership": OWNED}
    await shop.publish(owned)
    agent = connect(owned, subject={"customer_id": "C-1"})
    faults = [KeyError("LK-3"), FileNotFoundError("LK-3"), OrderLocked(), errors.NotFound("LK-3")]
    told: set[str] = set()
    for number, fault in enumerate([None, *faults], start=2):
        agent.backend.faults = [fault] if fault is not None else []
        order = f"LK-{number}"
        answer = await agent.answer("orders.refund", {"order_id": order, "amount": 5})
        told.add(str(answer).replace(order, "LK-?"))
    (only,) = told
    assert "No order LK-? is available. It has to come from orders.get_order" in only
    agent.backend.faults = [TimeoutError("LK-9")]
    answer = await agent.answer("orders.refund", {"order_id": "LK-9", "amount": 5})
    assert answer["error"]["code"] == "service_timeout"
    assert "LK-9" not in str(answer)
    assert set(agent.backend.names) == {"get_order"}


@with_both
async def test_a_look_up_that_is_its_own_ownership_tool_runs_once(connect: Connect, shop: Shop):
    own = GET_ORDER | {"version": "1.1", "ownership": OWNED}
    owned = REFUND | {"version": "1.1", "ownership": OWNED}
    await shop.publish(own, owned)
    agent = connect(own, owned, subject={"customer_id": "C-1"})
    assert await agent.call("orders.get_order", order_id="LK-1") == ORDERS["LK-1"]
    assert await agent.call("orders.refund", order_id="LK-1", amount=5) == {"refunded": 5}
    assert agent.backend.names == ["get_order", "refund"]

    told: set[str] = set()
    for order, fault in (("LK-2", None), ("LK-3", None), ("LK-4", KeyError("LK-4"))):
        agent.backend.faults = [fault] if fault is not None else []
        answer = await agent.answer("orders.get_order", {"order_id": order})
        told.add(str(answer).replace(order, "LK-?"))
    (only,) = told
    assert "No order LK-? is available." in only
    lines = [(each.gate, each.true_code, each.decision) for each in agent.runtime.trace[-3:]]
    assert lines == [
        ("permission", "not_owner", "allow"),
        ("permission", "not_found", "allow"),
        ("permission", "KeyError", "allow"),
    ]
    agent.backend.faults = [ConnectionError("LK-5")]
    answer = await agent.answer("orders.get_order", {"order_id": "LK-5"})
    assert answer["error"]["code"] == "service_unavailable"
    # Each is in the ledger, as it ran.
    looks = [each for each in await shop.trace() if each["tool"] == "orders.get_order"]
    assert [each["state"] for each in looks if each["kind"] == "effect"] == [
        *["SUCCEEDED"] * 3,
        *["FAILED"] * 2,
    ]
    # A worker after it is told no more.
    later = connect(own, owned, subject={"customer_id": "C-1"})
    for order in ("LK-2", "LK-3", "LK-4", "LK-5"):
        answer = await later.answer("orders.get_order", {"order_id": order})
        assert str(answer).replace(order, "LK-?") == only
    assert later.backend.names == []
    assert (await later.answer("orders.get_order", {"order_id": "LK-1"}))["ok"] is True


@with_both
async def test_on_whose_behalf_a_run_acts_may_be_known_later(connect: Connect, shop: Shop):
    own = GET_ORDER | {"version": "1.1", "ownership": OWNED}
    await shop.publish(own)
    agent = connect(own)
    await agent.call("orders.list_orders")
    with pytest.raises(errors.NotFound):
        await agent.call("orders.get_order", order_id="LK-1")
    assert agent.runtime.trace[-1].true_code == "no_subject"
    assert agent.backend.names == ["list_orders"]
    agent.runtime.set_subject({"customer_id": "C-1"})
    assert await agent.call("orders.get_order", order_id="LK-1") == ORDERS["LK-1"]
    shown = (await shop.api.ask("GET", "/v1/runs/run-1")).body
    assert shown["subject"] == {"customer_id": "C-1"}
    with pytest.raises(errors.EffectConflict):
        agent.runtime.set_subject({"customer_id": "C-2"})


# --- failures -------------------------------------------------------------------------------------


@with_both
async def test_a_read_that_fails_may_be_made_again(connect: Connect, shop: Shop):
    agent = connect()
    agent.backend.faults = [TimeoutError("the secret address 10.0.0.7")]
    failed = await agent.answer("orders.get_order", {"order_id": "LK-1"})
    told = failed["error"]["code"], failed["error"]["retryable"]
    assert told == ("service_timeout", True)
    assert "10.0.0.7" not in str(failed)
    assert await agent.call("orders.get_order", order_id="LK-1") == ORDERS["LK-1"]
    states = [one["state"] for one in await shop.trace()]
    assert states == ["FAILED", "SUCCEEDED"]


@with_both
async def test_a_write_of_which_nobody_knows_the_end_is_not_tried_again(
    connect: Connect, shop: Shop
):
    agent = connect()
    agent.backend.faults = [ConnectionError("reset")]
    first = await agent.answer("orders.add_note", {"order_id": "LK-1"})
    second = await agent.answer("orders.add_note", {"order_id": "LK-1"})
    told = [first["error"], second["error"]]
    assert [(each["code"], each["retryable"]) for each in told] == [
        ("service_unavailable", False),
        ("effect_not_retryable", False),
    ]
    assert all("Nobody knows whether it was done" in each["message"] for each in told)
    assert agent.backend.names == ["add_note"]
    assert [one["state"] for one in await shop.trace()] == ["UNKNOWN"]


@with_both
async def test_an_error_that_vouches_for_nothing_done_may_be_tried_again(
    connect: Connect, shop: Shop
):
    agent = connect()
    agent.backend.faults = [OrderLocked()]
    failed = await agent.answer("orders.add_note", {"order_id": "LK-1"})
    assert failed["error"]["code"] == "order_locked"
    assert "The order is being changed." in failed["error"]["message"]
    assert await agent.call("orders.add_note", order_id="LK-1") == {"noted": "LK-1"}
    assert agent.backend.names == ["add_note", "add_note"]
    assert [one["state"] for one in await shop.trace()] == ["FAILED", "SUCCEEDED"]


async def test_a_contract_that_is_published_otherwise_is_drift(connect: Connect):
    agent = connect(NOTE | {"description": "Write something else."})
    with pytest.raises(errors.ToolSchemaDrift):
        await agent.call("orders.add_note", order_id="LK-1")
    unknown = connect(NOTE | {"version": "7.0"})
    with pytest.raises(errors.ToolContractNotFound):
        await unknown.call("orders.add_note", order_id="LK-1")
    assert agent.backend.calls == unknown.backend.calls == []


class Line(httpx.HTTPTransport):
    """A way to the service that can be cut."""

    is_cut = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.is_cut:
            raise httpx.ConnectError("cut", request=request)
        return super().handle_request(request)


async def test_nothing_runs_while_the_service_cannot_be_asked(api: Api, url: str, shop: Shop):
    del shop
    line, backend = Line(), Backend()
    with Client(url, api.token, retry_seconds=0, transport=line) as client:
        contracts = [Contract.parse(each) for each in DOCUMENTS]
        runtime = PolicyRuntime(client=client, run="run-1", contracts=contracts)
        equip(runtime, backend, awaited=False)
        agent = Threads(runtime, backend)
        await agent.call("orders.get_order", order_id="LK-1")
        line.is_cut = True
        for name in ("orders.get_order", "orders.add_note", "orders.list_orders"):
            arguments = {} if name == "orders.list_orders" else {"order_id": "LK-1"}
            refused = await agent.answer(name, arguments)
            assert refused["error"]["code"] == "registry_unavailable"
        line.is_cut = False
        assert await agent.call("orders.add_note", order_id="LK-1") == {"noted": "LK-1"}
    assert backend.names == ["get_order", "add_note"]


async def test_an_owner_that_the_service_cannot_tell_now_is_no_word_of_the_object(
    api: Api, url: str, shop: Shop
):
    owned = REFUND | {"version": "1.1", "ownership": OWNED}
    await shop.publish(owned)
    line, backend = Line(), Backend()
    with Client(url, api.token, retry_seconds=0, transport=line) as client:
        contracts = [Contract.parse(each) for each in (*DOCUMENTS, owned)]
        subject = {"customer_id": "C-1"}
        runtime = PolicyRuntime(client=client, run="run-1", contracts=contracts, subject=subject)
        equip(runtime, backend, awaited=False)
        agent = Threads(runtime, backend)
        await agent.call("orders.refund", order_id="LK-1", amount=5)
        line.is_cut = True
        refused = await agent.answer("orders.refund", {"order_id": "LK-2", "amount": 5})
        assert refused["error"]["code"] == "registry_unavailable"
        assert "LK-2" not in str(refused)
    assert backend.names == ["get_order", "refund"]


# --- what does not go together --------------------------------------------------------------------


async def test_what_the_service_decides_is_decided_nowhere_else(api: Api, url: str, shop: Shop):
    del shop
    policy = Policy.parse(POLICY)
    with Client(url, api.token) as client:
        for policies, options in (
            ([policy], {"client": client, "run": "run-1"}),
            ([], {"client": client}),
            ([], {"run": "run-1"}),
            ([], {"client": client, "run": "run-1", "approve": lambda _: True}),
            ([], {"client": client, "run": "run-1", "writes": "propose"}),
        ):
            with pytest.raises(errors.InvalidRequest):
                PolicyRuntime(*policies, **options)
        runtime = PolicyRuntime(client=client, run="run-1")
        with pytest.raises(errors.InvalidRequest, match="another name"):
            runtime.for_run()


async def test_a_function_that_cannot_be_the_body_of_an_effect_says_so(
    api: Api, url: str, shop: Shop
):
    del shop

    async def get_order(order_id: str) -> Any:
        return ORDERS[order_id]

    def refund(order_id: str, amount: float) -> Any:
        raise AssertionError("it would send no key")

    contracts = [Contract.parse(each) for each in DOCUMENTS]
    with Client(url, api.token) as client:
        runtime = PolicyRuntime(client=client, run="run-1", contracts=contracts)
        runtime.tool("orders.get_order")(get_order)
        runtime.tool("orders.refund")(refund)
        with pytest.raises(errors.InvalidRequest, match="AsyncClient"):
            await runtime.acall("orders.get_order", order_id="LK-1")
        with pytest.raises(errors.InvalidRequest, match="'effect'"):
            await runtime.acall("orders.refund", order_id="LK-1", amount=5)

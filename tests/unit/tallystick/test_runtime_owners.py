"""Whose the objects are that a call names: no answer of a tool says more than that to a model."""

import asyncio
import json
from typing import Any

import pytest

from tallystick import Contract, PolicyRuntime, errors
from tallystick.policy import Policy

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
NOT_FOUND = {"code": "order_not_found", "meaning": "There is no such order.", "retryable": False}
MINE, THEIRS, NOBODYS = "LK-1", "LK-2", "LK-3"
ORDERS = {
    MINE: {"order_id": MINE, "customer_id": "C-1", "parcel": "P-1"},
    THEIRS: {"order_id": THEIRS, "customer_id": "C-2", "parcel": "P-2"},
}
SUBJECT = {"customer_id": "C-1"}


class OrderNotFound(Exception):
    code = "order_not_found"


def a_contract(name: str, effect_class: str = "PURE", **fields: Any) -> Contract:
    return Contract.of(
        name=name,
        version="1.0",
        description=f"Do {name}.",
        capabilities=[],
        effect_class=effect_class,
        errors=[NOT_FOUND],
        input_schema={
            "type": "object",
            "properties": {"order_id": {"type": "string"}},
            "required": ["order_id"],
        },
        **fields,
    )


class Shop:
    """A shop whose tool that looks up orders fails as it is told to.

    Args:
        fault: What the look-up raises for an order that is nobody's.
        is_own: Whether the look-up holds its own argument to the owner.
    """

    def __init__(self, fault: Exception | None = None, *, is_own: bool = True, **options: Any):
        self.fault = fault
        self.orders = dict(ORDERS)
        self.looks: list[str] = []
        self.writes: list[str] = []
        policy = options.pop("policy", None)
        given: dict[str, Any] = {"subject": SUBJECT, **options}
        self.runtime = PolicyRuntime(policy, **given)
        get = a_contract("orders.get", ownership=OWNED if is_own else None)
        self.runtime.tool(contract=get)(self.get)
        self.runtime.tool(contract=a_contract("refund", "UNKNOWN", ownership=OWNED))(self.refund)

    def get(self, order_id: str) -> Any:
        self.looks.append(order_id)
        if order_id not in self.orders and self.fault is not None:
            raise self.fault
        return self.orders.get(order_id, {})

    def refund(self, order_id: str) -> str:
        self.writes.append(order_id)
        return "done"

    def told(self, tool: str, order_id: str) -> str:
        """Return what a model is told, with one name for all orders."""
        text = self.runtime.answer(tool, {"order_id": order_id}).text()
        return text.replace(order_id, "LK-?")

    def error(self, tool: str, order_id: str) -> dict[str, Any]:
        return json.loads(self.told(tool, order_id))["error"]


# --- what the one who is asked may answer ---------------------------------------------------------

ANSWERS = [
    None,
    OrderNotFound("LK-3"),
    KeyError("LK-3"),
    FileNotFoundError("LK-3"),
    RuntimeError("no row for LK-3"),
    errors.NotFound("There is no LK-3."),
    errors.Forbidden("LK-3 is not yours."),
]


@pytest.mark.parametrize("fault", ANSWERS, ids=repr)
@pytest.mark.parametrize("tool", ["orders.get", "refund"])
def test_whatever_a_look_up_answers_of_what_is_not_there_it_is_as_if_it_were_anothers(
    tool: str, fault: Exception | None
):
    shop = Shop(fault)
    theirs, nobodys = shop.told(tool, THEIRS), shop.told(tool, NOBODYS)
    assert theirs == nobodys
    assert json.loads(theirs)["error"]["code"] == "not_found"
    assert shop.writes == []
    assert [each.gate for each in shop.runtime.trace if each.asked_for is None] == [
        "permission",
        "permission",
    ]


@pytest.mark.parametrize("fault", ANSWERS[1:], ids=repr)
def test_whatever_the_application_answers_it_is_as_if_it_were_anothers(fault: Exception):
    def owner_of(kind: str, identifier: object) -> Any:
        if identifier not in ORDERS:
            raise fault
        return ORDERS[str(identifier)]["customer_id"]

    shop = Shop(owner_of=owner_of)
    for tool in ("orders.get", "refund"):
        assert shop.told(tool, THEIRS) == shop.told(tool, NOBODYS)
    assert (shop.looks, shop.writes) == ([], [])
    known = fault.code if isinstance(fault, errors.Refusal) else type(fault).__name__
    assert [each.true_code for each in shop.runtime.trace] == ["not_owner", known] * 2


@pytest.mark.parametrize("tool", ["orders.get", "refund"])
@pytest.mark.parametrize(
    ("fault", "code"),
    [(TimeoutError("LK-3"), "service_timeout"), (ConnectionError("LK-3"), "service_unavailable")],
)
def test_that_nobody_could_be_asked_is_told_and_names_no_object(
    tool: str, fault: Exception, code: str
):
    shop = Shop(fault)
    first, again = shop.error(tool, NOBODYS), shop.error(tool, NOBODYS)
    assert (first["code"], first["retryable"], again["retryable"]) == (code, True, False)
    assert "LK" not in first["message"]
    assert shop.writes == []
    # Once it answers, nothing of that is left.
    shop.fault = None
    assert shop.error(tool, NOBODYS)["code"] == "not_found"


def test_a_failure_is_told_as_it_is_of_what_is_known_to_be_ones_own():
    shop = Shop()
    assert shop.runtime.answer("orders.get", {"order_id": MINE}).ok
    del shop.orders[MINE]
    shop.fault = OrderNotFound()
    assert shop.error("orders.get", MINE)["code"] == "order_not_found"


# --- a tool that is asked about its own argument --------------------------------------------------

POLICY = """
version: "0.2"
id: shop
title: Look first
tools: {orders.get: {risk: read}, refund: {risk: high_risk}, ship: {risk: write}}
budgets: {max_total_calls: 3}
rules:
  - {name: look-first, type: require_prior_call, tool: ship, prior_tool: orders.get, effect: block}
"""


def test_a_look_up_that_is_its_own_ownership_tool_runs_once():
    shop = Shop()
    assert shop.runtime.call("orders.get", order_id=MINE) == ORDERS[MINE]
    assert shop.looks == [MINE]
    # And what it said holds for others as well.
    assert shop.runtime.call("refund", order_id=MINE) == "done"
    assert shop.looks == [MINE]


def test_what_is_another_customers_is_told_to_nobody_and_is_nothing_to_go_by():
    shop = Shop(policy=Policy.parse(POLICY))
    ship = a_contract("ship", "UNKNOWN", returned=[{"argument": "/order_id"}])
    shop.runtime.tool(contract=ship)(shop.refund)
    for _ in range(2):
        with pytest.raises(errors.NotFound) as caught:
            shop.runtime.call("orders.get", order_id=THEIRS)
        assert "C-2" not in str(caught.value)
    # Whose it is, is known from the first time on.
    assert shop.looks == [THEIRS]
    entry = shop.runtime.trace[0]
    assert (entry.gate, entry.true_code, entry.decision) == ("permission", "not_owner", "allow")
    assert "P-2" not in str([each.to_json() for each in shop.runtime.trace])

    shop.runtime.call("orders.get", order_id=MINE)
    assert shop.error("ship", "P-2")["code"] == "not_found"
    assert shop.runtime.trace[-1].true_code == "not_returned"
    # It ran, and has cost what a call costs.
    assert shop.runtime.answer("ship", {"order_id": "P-1"}).ok
    assert shop.error("ship", "P-1")["code"] == "budget_exhausted"


def test_what_was_withheld_is_no_prior_call():
    shop = Shop(policy=Policy.parse(POLICY))
    shop.runtime.tool(contract=a_contract("ship", "UNKNOWN"))(shop.refund)
    assert shop.error("orders.get", THEIRS)["code"] == "not_found"
    assert shop.error("ship", MINE)["code"] == "policy_blocked"


def test_a_person_who_is_asked_first_is_asked_before_it_runs():
    asked: list[Any] = []
    runtime = PolicyRuntime(
        subject=SUBJECT, approve=lambda request: asked.append(list(looks)) or True
    )
    looks: list[str] = []
    get = a_contract("orders.get", ownership=OWNED, approval="always")
    runtime.tool(contract=get)(lambda order_id: looks.append(order_id) or ORDERS[order_id])
    assert runtime.answer("orders.get", {"order_id": MINE}).ok
    assert not runtime.answer("orders.get", {"order_id": THEIRS}).ok
    assert (asked, looks) == ([[], [MINE]], [MINE, THEIRS])


def test_a_result_that_has_no_json_is_withheld_like_any_other():
    runtime = PolicyRuntime(subject=SUBJECT)
    runtime.tool(contract=a_contract("orders.get", ownership=OWNED))(lambda order_id: object())
    answer = runtime.answer("orders.get", {"order_id": MINE})
    assert answer.error is not None
    assert answer.error.code == "not_found"


def test_a_resolution_says_of_nothing_whose_it_is():
    finish = a_contract("finish", ownership=[{**OWNED[0], "tool": "finish"}])
    runtime = PolicyRuntime(subject=SUBJECT, resolution=finish)
    answer = runtime.answer("finish", {"order_id": MINE})
    assert answer.error is not None
    assert (answer.error.code, runtime.resolution) == ("not_found", None)


# --- the look-up in the trace ---------------------------------------------------------------------


def test_a_look_up_of_the_runtimes_own_has_its_line(tmp_path: Any):
    path = tmp_path / "trace.jsonl"
    shop = Shop(KeyError(NOBODYS), is_own=False, trace=path)
    for order_id in (MINE, THEIRS, NOBODYS):
        shop.runtime.answer("refund", {"order_id": order_id})
    # Known from the first time on.
    shop.runtime.answer("refund", {"order_id": MINE})
    told = [(each.tool, each.asked_for, each.true_code) for each in shop.runtime.trace]
    assert told == [
        ("orders.get", "refund", "ok"),
        ("refund", None, "ok"),
        ("orders.get", "refund", "ok"),
        ("refund", None, "not_owner"),
        ("orders.get", "refund", "KeyError"),
        ("refund", None, "not_found"),
        ("refund", None, "ok"),
    ]
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line.get("asked_for") for line in lines] == [each[1] for each in told]
    assert lines[0]["arguments"] == {"order_id": MINE}
    # What it said goes to nobody.
    assert [("result" in line) for line in lines] == [False, True] + [False] * 4 + [True]


async def test_an_ownership_tool_that_is_awaited_is_no_reason_to_let_pass_or_to_hide():
    async def get(order_id: str) -> Any:
        await asyncio.sleep(0)
        return ORDERS[order_id]

    runtime = PolicyRuntime(subject=SUBJECT)
    runtime.tool(contract=a_contract("orders.get", ownership=OWNED))(get)
    runtime.tool(contract=a_contract("refund", "UNKNOWN", ownership=OWNED))(lambda order_id: "done")
    with pytest.raises(TypeError, match="acall"):
        runtime.answer("refund", {"order_id": MINE})
    assert await runtime.acall("refund", order_id=MINE) == "done"
    for tool in ("refund", "orders.get"):
        assert not (await runtime.aanswer(tool, {"order_id": THEIRS})).ok
    assert (await runtime.aanswer("orders.get", {"order_id": MINE})).ok


# --- on whose behalf ------------------------------------------------------------------------------


def test_a_subject_is_said_once():
    shop = Shop(subject={})
    anybody = shop.told("refund", MINE)
    assert anybody == shop.told("refund", NOBODYS)
    assert shop.error("orders.get", MINE)["code"] == "not_found"
    assert {each.true_code for each in shop.runtime.trace} == {"no_subject"}
    assert shop.looks == []

    for _ in range(2):
        shop.runtime.set_subject({"customer_id": "C-1"})
    assert shop.runtime.call("refund", order_id=MINE) == "done"
    for other in ({"customer_id": "C-2"}, {"customer_id": "C-1", "shop": 7}, {}):
        with pytest.raises(errors.EffectConflict):
            shop.runtime.set_subject(other)
    # What another run acts for is said of that one.
    assert not shop.runtime.for_run().answer("refund", {"order_id": MINE}).ok


def test_a_subject_that_was_given_is_the_one():
    shop = Shop()
    shop.runtime.set_subject(dict(SUBJECT))
    with pytest.raises(errors.EffectConflict):
        shop.runtime.set_subject({"customer_id": "C-2"})
    assert shop.runtime.call("refund", order_id=MINE) == "done"


def test_one_and_true_are_two_subjects():
    runtime = PolicyRuntime(subject={"customer_id": 1})
    runtime.set_subject({"customer_id": 1.0})
    with pytest.raises(errors.EffectConflict):
        runtime.set_subject({"customer_id": True})

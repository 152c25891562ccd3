"""What a principal may do, and whose objects a call may name: one answer for every no."""

from typing import Any

import pytest

from tallystick.answer import refused
from tallystick.gates.denial import Denial, Gate
from tallystick.gates.permission import (
    check_capabilities,
    check_identifiers,
    check_owner,
    check_result,
    check_returned,
    nobodys,
    own_questions,
    questions,
)
from tallystick.tool_contract import Contract

OWNED = [{"argument": "/order_id", "kind": "order", "subject": "customer_id"}]
TEXT = {"type": "string"}


def a_tool(**fields: Any) -> Contract:
    return Contract.of(
        name="orders.refund",
        version="1.0",
        description="Refund an order.",
        effect_class="UNKNOWN",
        **{
            "capabilities": ["order:write:{tenant}"],
            "input_schema": {"type": "object", "properties": {"order_id": TEXT}},
            **fields,
        },
    )


@pytest.mark.parametrize(
    ("granted", "is_denied"),
    [
        (None, False),
        ({"order:write:acme"}, False),
        ({"order:write:acme", "order:read:acme"}, False),
        (set(), True),
        ({"order:write:{tenant}"}, True),
        ({"order:write:other"}, True),
    ],
)
def test_capabilities_are_the_principals(granted: set[str] | None, is_denied: bool):
    denial = check_capabilities(a_tool(), "acme", None if granted is None else frozenset(granted))
    assert (denial is not None) is is_denied
    if denial is not None:
        assert (denial.gate, denial.true_code) == (Gate.PERMISSION, "capability_not_granted")


def owned(owner: Any, subject: dict[str, Any], **fields: Any) -> Denial | None:
    contract, arguments = a_tool(ownership=OWNED, **fields), {"order_id": "LK-1"}
    (question,) = questions(contract, arguments)
    return check_owner(contract, arguments, question, owner, subject)


@pytest.mark.parametrize(
    ("owner", "subject", "reason"),
    [
        ("C-1", {"customer_id": "C-1"}, None),
        (7, {"customer_id": 7}, None),
        (7.0, {"customer_id": 7}, None),
        ("C-2", {"customer_id": "C-1"}, "not_owner"),
        ("C-1", {}, "no_subject"),
        ("C-1", {"name": "Mei"}, "no_subject"),
        ("C-1", {"customer_id": None}, "no_subject"),
        ("7", {"customer_id": 7}, "not_owner"),
        (1, {"customer_id": True}, "no_subject"),
        (None, {"customer_id": "C-1"}, "not_found"),
        (None, {"customer_id": None}, "no_subject"),
        ({"id": "C-1"}, {"customer_id": "C-1"}, "not_found"),
    ],
)
def test_the_owner_is_the_subject_or_nobody(
    owner: Any, subject: dict[str, Any], reason: str | None
):
    denial = owned(owner, subject)
    assert (denial.true_code if denial else None) == reason


BY_TOOL = [{**OWNED[0], "tool": "orders.get", "asked": "/order_id", "owner": "/customer_id"}]
OF_ANY = {"argument": "/order_id"}
OF_LIST = {**OF_ANY, "tools": ["orders.list"], "kind": "parcel"}
OF_TWO = {**OF_ANY, "tools": ["orders.list", "orders.find"]}
OF_MANY = {**OF_ANY, "tools": [f"find_{number}" for number in range(9)]}


@pytest.mark.parametrize(
    ("ownership", "returned", "kind", "source"),
    [
        (OWNED, None, "order", None),
        (BY_TOOL, None, "order", "orders.get"),
        (BY_TOOL, [OF_LIST], "order", "orders.list"),
        (OWNED, [OF_ANY], "order", "the result of a tool"),
        (None, [OF_LIST], "parcel", "orders.list"),
        (None, [OF_TWO, OF_LIST], "parcel", "orders.find or orders.list and from orders.list"),
        (None, [OF_MANY], "order_id", "find_0 or find_1 or find_2 or find_3 or find_4 or another"),
    ],
)
def test_every_no_about_an_argument_is_the_same_bytes(
    ownership: Any, returned: Any, kind: str, source: str | None
):
    told = f"No {kind} LK-1 is available."
    if source is not None:
        told += f" It has to come from {source} in this run."
    contract, arguments = a_tool(ownership=ownership, returned=returned), {"order_id": "LK-1"}
    subject = {"customer_id": "C-1"}
    denials = [check_returned(contract, arguments, lambda *_: False)]
    for question in questions(contract, arguments):
        denials += [
            check_owner(contract, arguments, question, "C-2", subject),
            check_owner(contract, arguments, question, None, subject),
            check_owner(contract, arguments, question, "C-1", {}),
            nobodys(contract, arguments, question, "KeyError"),
        ]
    found = [each for each in denials if each is not None]
    assert {(each.refusal.detail, each.refusal.pointer) for each in found} == {(told, "/order_id")}
    assert {refused(each.refusal).text() for each in found} == {refused(found[0].refusal).text()}
    assert [each.true_code for each in found] == [
        *(["not_returned"] if returned else []),
        *(["not_owner", "not_found", "no_subject", "KeyError"] if ownership else []),
    ]


OWN = {"input_schema": {"type": "object", "properties": {"order_id": {}, "other_id": {}}}}


def a_reader(*ownership: dict[str, Any]) -> Contract:
    return Contract.of(
        name="orders.get",
        version="1.0",
        description="Look up an order.",
        capabilities=[],
        effect_class="PURE",
        ownership=[*ownership] or BY_TOOL,
        **OWN,
    )


@pytest.mark.parametrize(
    ("contract", "arguments", "before", "by_itself"),
    [
        (a_reader(), {"order_id": "LK-1"}, [], ["LK-1"]),
        # It asks for several at once, and its result would say whose only one of them is.
        (a_reader(), {"order_id": ["LK-1", "LK-2"]}, ["LK-1", "LK-2"], []),
        (a_reader(), {}, [], []),
        # The other argument is not what it asks for.
        (
            a_reader(*BY_TOOL, {**BY_TOOL[0], "argument": "/other_id"}),
            {"order_id": "LK-1", "other_id": "LK-2"},
            ["LK-2"],
            ["LK-1"],
        ),
        (a_reader(*OWNED), {"order_id": "LK-1"}, ["LK-1"], []),
        (a_reader({**BY_TOOL[0], "tool": "orders.find"}), {"order_id": "LK-1"}, ["LK-1"], []),
    ],
)
def test_a_reader_answers_by_its_own_result_for_what_it_asks(
    contract: Contract, arguments: Any, before: list[str], by_itself: list[str]
):
    assert [each.identifier for each in questions(contract, arguments)] == before
    assert [each.identifier for each in own_questions(contract, arguments)] == by_itself


@pytest.mark.parametrize(
    ("result", "subject", "true_code"),
    [
        ({"customer_id": "C-1"}, {"customer_id": "C-1"}, None),
        ({"customer_id": "C-2"}, {"customer_id": "C-1"}, "not_owner"),
        ({"customer_id": None}, {"customer_id": "C-1"}, "not_found"),
        ({}, {"customer_id": "C-1"}, "not_found"),
        (None, {"customer_id": "C-1"}, "not_found"),
        ({"customer_id": "C-1"}, {}, "no_subject"),
    ],
)
def test_a_result_is_told_to_whom_it_belongs(result: Any, subject: Any, true_code: str | None):
    denial = check_result(a_reader(), {"order_id": "LK-1"}, result, subject)
    assert (denial and denial.true_code) == true_code
    assert denial is None or denial.refusal.detail == "No order LK-1 is available."
    assert check_result(a_reader(*OWNED), {"order_id": "LK-1"}, result, subject) is None


def test_what_is_sensitive_or_long_is_not_repeated():
    secret = {"type": "object", "properties": {"order_id": {**TEXT, "x-sensitive": True}}}
    denial = owned("C-2", {}, input_schema=secret)
    assert denial is not None
    assert denial.refusal.detail == "No order is available."

    contract = a_tool(returned=[{"argument": "/order_id"}])
    denial = check_returned(contract, {"order_id": "x" * 5000}, lambda *_: False)
    assert denial is not None
    assert len(denial.refusal.detail) < 160


def test_each_object_is_asked_for_once():
    many = {
        "type": "object",
        "properties": {"order_id": {"type": "array", "items": TEXT}},
    }
    contract = a_tool(ownership=OWNED, input_schema=many)
    asked = questions(contract, {"order_id": ["LK-1", "LK-2", "LK-1"]})
    assert [each.identifier for each in asked] == ["LK-1", "LK-2"]
    assert questions(contract, {}) == ()
    assert questions(contract, {"order_id": []}) == ()


@pytest.mark.parametrize("value", [True, 1.5, {"id": "LK-1"}, ["LK-1", {"id": "LK-2"}]])
def test_what_is_no_identifier_names_nothing_of_anybody(value: Any):
    anything = {"type": "object", "properties": {"order_id": {}}}
    contract = a_tool(ownership=OWNED, input_schema=anything)
    denial = check_identifiers(contract, {"order_id": value})
    assert denial is not None
    assert denial.refusal.code == "not_found"


def test_identifiers_come_from_the_tools_that_count():
    contract = a_tool(returned=[{"argument": "/order_id", "tools": ["orders.list"]}])
    seen: list[Any] = []
    check_returned(contract, {"order_id": "LK-1"}, lambda *asked: seen.append(asked) or True)
    ((source, identifier),) = seen
    assert (source.tools, identifier) == (frozenset({"orders.list"}), "LK-1")

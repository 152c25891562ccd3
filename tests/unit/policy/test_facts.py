"""What is kept of a result: the last one counts, also where it has nothing to say."""

from typing import Any

import pytest

from tallystick.policy import Call, CapturedFact, History, captured
from tallystick.policy.facts import FACT_BYTES_MAX, KEY_CHARS_MAX, key_text
from tests.policies import ORDER_TOTAL, a_rule, after, ask, policy_of


def facts_of(fact: Any, result: Any, **arguments: Any) -> list[tuple[str, Any]]:
    policy = policy_of(facts=[{**ORDER_TOTAL, **fact}])
    found = captured(policy, Call("lookup_order", arguments), result)
    return [(each.key, each.value) for each in found]


@pytest.mark.parametrize(
    ("fact", "result", "value"),
    [
        ({}, {"total": 150}, 150),
        ({}, {"total": False}, False),
        ({}, {"total": None}, None),
        ({}, {"sum": 1}, None),
        ({}, "not an object", None),
        ({}, None, None),
        ({"path": "order.total"}, {"order": {"total": 7}}, 7),
        ({"path": "items[*].price", "transform": ["sum"]}, {"items": [{"price": 0.1}] * 3}, 0.3),
        ({"path": "items[*].price", "transform": ["max"]}, {"items": [{"price": 1}, {}]}, None),
        ({"transform": ["number"]}, {"total": "12.50"}, 12.5),
        ({"transform": ["number"]}, {"total": "many"}, None),
        ({}, {"total": "a" * (FACT_BYTES_MAX - 2)}, "a" * (FACT_BYTES_MAX - 2)),
        ({}, {"total": "a" * (FACT_BYTES_MAX - 1)}, None),
        ({}, {"total": ["a"] * FACT_BYTES_MAX}, None),
        ({}, {"total": float("nan")}, None),
        ({"path": ""}, {"total": 1}, {"total": 1}),
        ({"path": ""}, "shipped", "shipped"),
        ({"path": ""}, None, None),
        ({"path": "", "transform": ["length"]}, ["a", "b"], 2),
    ],
)
def test_a_result_has_a_value_or_null(fact: Any, result: Any, value: Any):
    assert facts_of(fact, result) == [("", value)]


@pytest.mark.parametrize(
    ("per", "arguments", "result", "keys"),
    [
        ({"arg": "order_id"}, {"order_id": "LK-1"}, {}, ['"LK-1"']),
        ({"arg": "order.id"}, {"order": {"id": 7}}, {}, ["7"]),
        ({"arg": "order_id"}, {"order_id": 7.0}, {}, ["7"]),
        ({"arg": "order_id"}, {"order_id": True}, {}, ["true"]),
        ({"path": "order_id"}, {}, {"order_id": "LK-1"}, ['"LK-1"']),
        ({"arg": "order_id"}, {}, {"order_id": "LK-1"}, []),
        ({"path": "order_id"}, {"order_id": "LK-1"}, {}, []),
        ({"arg": "order_id"}, {"order_id": None}, {}, []),
        ({"arg": "order_id"}, {"order_id": ["LK-1"]}, {}, []),
        ({"arg": "order_id"}, {"order_id": "a" * (KEY_CHARS_MAX + 1)}, {}, []),
    ],
)
def test_a_fact_is_kept_for_each_value(per: Any, arguments: Any, result: Any, keys: list[str]):
    assert [key for key, _ in facts_of({"per": per}, result, **arguments)] == keys


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", '""'),
        ('a"\\\n\x01é😀', '"a\\"\\\\\\n\\u0001é😀"'),
        (0, "0"),
        (1e21, "1e+21"),
        (-0.0, "0"),
        (False, "false"),
        (None, None),
        ([], None),
        ({}, None),
        (float("inf"), None),
    ],
)
def test_a_key_is_canonical_json(value: Any, text: str | None):
    assert key_text(value) == text


def test_other_tools_have_other_facts():
    policy = policy_of(facts=[ORDER_TOTAL])
    assert captured(policy, Call("send_email", {}), {"total": 1}) == ()


def test_a_later_result_takes_the_place_of_an_earlier_one():
    rule = a_rule("require_fact", fact="order_total", op="exists")
    policy = policy_of(facts=[ORDER_TOTAL], rules=[rule])
    first = ("lookup_order", {"order_id": "A"}, {"total": 1})
    silent = ("lookup_order", {"order_id": "B"}, {"error": "no such order"})
    assert ask(policy, "issue_refund", after(policy, first)).code is None
    assert ask(policy, "issue_refund", after(policy, first, silent)).code == "policy_blocked"
    assert ask(policy, "issue_refund", after(policy, first, silent, first)).code is None


def test_of_a_fact_from_several_tools_the_last_result_of_any_counts():
    fact = {"name": "status", "from_tool": ["lookup_order", "issue_refund"], "path": "status"}
    rule = a_rule("require_fact", tool="send_email", fact="status", op="eq", value="paid")
    policy = policy_of(facts=[fact], rules=[rule])
    paid, refunded = {"status": "paid"}, {"status": "refunded"}
    for calls, code in (
        ([("lookup_order", {}, paid)], None),
        ([("issue_refund", {}, paid)], None),
        ([("lookup_order", {}, paid), ("issue_refund", {}, refunded)], "policy_blocked"),
        ([("issue_refund", {}, refunded), ("lookup_order", {}, paid)], None),
        ([("lookup_order", {}, paid), ("issue_refund", {}, {})], "policy_blocked"),
        ([("send_email", {}, paid)], "policy_blocked"),
    ):
        assert ask(policy, "send_email", after(policy, *calls)).code == code


def test_histories_are_steps_and_never_change():
    policy = policy_of(facts=[ORDER_TOTAL], budgets={"limits": [{"name": "all", "max": 9}]})
    call = Call("lookup_order", {})
    start = History()
    let_through = start.dispatched(call, policy)
    done = let_through.succeeded("lookup_order", [CapturedFact("order_total", "", 5)])
    assert start == History()
    assert {name: int(units) for name, units in let_through.spent.items()} == {"all": 1}
    assert [(each.dispatched, each.succeeded) for each in let_through.tallies.values()] == [(1, 0)]
    assert [(each.dispatched, each.succeeded) for each in done.tallies.values()] == [(1, 1)]
    assert dict(done.facts) == {("order_total", ""): 5}
    assert let_through.facts == {}

"""The gates in the way of a dispatch: permission, policy, facts, budgets, as a caller sees them."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.api import Answered, Api, running
from tests.builders import a_contract, http_evidence
from tests.fixtures import Owner, Sweep
from tests.gated import (
    GET_ORDER,
    LIST_ORDERS,
    OWNED,
    POLICY,
    REFUND,
    RETURNED,
    Shop,
    a_budget,
    without,
)
from tests.provider import Provider

BLOCKED = (403, "policy_blocked")
EXHAUSTED = (429, "budget_exhausted")
WAITS = (403, "needs_human")
NOT_FOUND = (404, "not_found")
REPLAYABLE = without(REFUND, "idempotency") | {
    "version": "2.0",
    "effect_class": "REPLAYABLE",
    "max_duplicates": 5,
}


@pytest.fixture
async def shop(api: Api) -> Shop:
    return await Shop(api).publish(GET_ORDER, LIST_ORDERS, REFUND)


async def told(shop: Shop, order_id: str, run: str = "run-1") -> tuple[int, Any]:
    """Return the whole answer to a refund."""
    answer = await shop.call("orders.refund", run, order_id=order_id, amount=1)
    return answer.status, answer.body


# --- permission -----------------------------------------------------------------------------------


async def test_not_yours_not_there_and_not_returned_are_one_answer(api: Api, shop: Shop):
    await shop.publish(REFUND | {"version": "1.1", "ownership": OWNED, "returned": RETURNED})
    await shop.acts_for("C-1")
    await shop.looked("LK-1", customer_id="C-1", total=20)
    await shop.looked("LK-2", customer_id="C-2", total=20)
    await shop.looked("LK-3", total=20)
    await shop.done("orders.list_orders", {"orders": [{"order_id": "LK-4"}]})
    answers = {order: await told(shop, order) for order in ("LK-2", "LK-3", "LK-4", "LK-5")}
    for order, (status, body) in answers.items():
        assert (status, body["code"]) == NOT_FOUND
        assert body["detail"].startswith(f"No order {order} is available.")
    assert len({str(answer).replace(order, "LK-0") for order, answer in answers.items()}) == 1
    assert await shop.refusals() == [
        ("permission", "not_found", "not_owner", None),
        ("permission", "not_found", "not_found", None),
        ("permission", "not_found", "not_found", None),
        ("permission", "not_found", "not_returned", None),
    ]
    assert (await told(shop, "LK-1"))[0] == 201
    assert (await told(shop, "LK-1", "run-2"))[0] == 404, "another run was given nothing"


async def test_a_run_for_nobody_owns_nothing(shop: Shop):
    await shop.publish(REFUND | {"version": "1.1", "ownership": OWNED})
    await shop.looked("LK-1", customer_id="C-1", total=20)
    assert (await told(shop, "LK-1"))[0] == 404
    assert (await shop.refusals())[-1][2] == "no_subject"
    await shop.acts_for("C-1")
    assert (await told(shop, "LK-1"))[0] == 201


@pytest.mark.parametrize(
    ("result", "is_returned"),
    [
        ({"deep": [{"er": ["LK-7"]}]}, True),
        ({"LK-7": {}}, True),
        ("LK-7", True),
        ({"order_id": "LK-77"}, False),
        ({"text": "about LK-7"}, False),
        ({"order_id": 7}, False),
        (None, False),
    ],
)
async def test_an_identifier_was_returned_whole(shop: Shop, result: Any, is_returned: bool):
    anything = without(LIST_ORDERS, "output_schema") | {"name": "orders.any"}
    await shop.publish(
        anything, REFUND | {"version": "1.1", "returned": [{"argument": "/order_id"}]}
    )
    await shop.done("orders.any", result)
    assert (await told(shop, "LK-7"))[0] == (201 if is_returned else 404)


async def test_only_the_result_of_a_success_that_keeps_its_contract_counts(api: Api, shop: Shop):
    await shop.publish(REFUND | {"version": "1.1", "returned": RETURNED})
    failed = await shop.call("orders.get_order", order_id="LK-7")
    await api.report(failed.body, "failed", error={"code": "gone"}, result={"order_id": "LK-7"})
    assert (await told(shop, "LK-7"))[0] == 404
    broken = await shop.done("orders.get_order", ["LK-7"], order_id="LK-7")
    assert broken["outcome"]["invalid_result"]
    assert (await told(shop, "LK-7"))[0] == 404
    await shop.looked("LK-7")
    assert (await told(shop, "LK-7"))[0] == 201


async def test_the_owner_is_asked_again_at_the_dispatch(api: Api, shop: Shop):
    await shop.publish(REFUND | {"version": "1.1", "ownership": OWNED})
    await shop.acts_for("C-1")
    await shop.looked("LK-1", customer_id="C-1", total=20)
    planned = (await shop.plan("orders.refund", order_id="LK-1", amount=1)).body
    await shop.looked("LK-1", customer_id="C-2", total=20)
    answer = await api.dispatch(planned)
    assert answer.refusal == NOT_FOUND
    assert await api.state(planned) == "PLANNED", "nothing of it has changed"
    assert (await shop.refusals())[-1] == ("permission", "not_found", "not_owner", None)


async def test_an_owner_that_only_the_application_knows_is_asked_there(shop: Shop):
    """In the application's own process; the service has nobody to ask."""
    owned = [{"argument": "/order_id", "kind": "order", "subject": "customer_id"}]
    await shop.publish(REFUND | {"version": "1.1", "ownership": owned})
    assert (await told(shop, "LK-1"))[0] == 201


async def test_the_gates_are_passed_in_their_order(api: Api, shop: Shop):
    await shop.publish(REFUND | {"version": "1.1", "returned": RETURNED})
    await shop.govern(POLICY)
    unknown = shop.tools["orders.refund"] | {"schema_hash": "sha256:" + "0" * 64}
    assert (await api.plan(unknown, arguments={})).code == "tool_schema_drift"
    assert (await shop.call("orders.refund", amount=1)).code == "invalid_arguments"
    assert (await told(shop, "LK-1"))[1]["code"] == "not_found"
    await shop.done("orders.list_orders", {"orders": ["LK-1"]})
    assert (await told(shop, "LK-1"))[1]["code"] == "policy_blocked"
    assert [gate for gate, *_ in await shop.refusals()] == [
        "contract",
        "arguments",
        "permission",
        "policy",
    ]


async def test_nothing_extra_is_let_in_where_a_schema_is_open(shop: Shop):
    answer = await shop.call("orders.get_order", order_id="LK-1", limit=1)
    assert answer.refusal == (422, "invalid_arguments")
    assert answer.body["pointer"] == "/limit"


# --- policy ---------------------------------------------------------------------------------------


async def test_a_policy_decides_on_what_the_run_did(api: Api, owner: Owner, shop: Shop):
    assert await shop.govern(POLICY) == 1
    first = await shop.call("orders.refund", order_id="LK-1", amount=10)
    assert first.refusal == BLOCKED
    assert first.body["facts"] == {"rule": "look-first", "policy": "refunds"}
    await shop.looked("LK-1", total=50)
    assert (await told(shop, "LK-1"))[0] == 201
    over = await shop.call("orders.refund", order_id="LK-1", amount=50.01)
    assert over.body["facts"]["rule"] == "not-more-than-the-order"
    assert "50" not in over.body["detail"], "no fact's value is told"
    other = await shop.call("orders.refund", order_id="LK-2", amount=10)
    assert other.refusal == BLOCKED, "one order's total vouches for no other"
    assert (
        await shop.call("orders.refund", "run-2", order_id="LK-1", amount=1)
    ).code == "policy_blocked"
    shown = await shop.trace()
    assert {one["policy"]["revision"] for one in shown} == {1}
    assert Counter(one["kind"] for one in shown) == {"effect": 2, "refusal": 3}
    assert await owner.one("SELECT count(*) FROM effect") == 2, "what is blocked is not recorded"


async def test_without_a_policy_nothing_is_counted(api: Api, owner: Owner, shop: Shop):
    effect = (await shop.call("orders.refund", order_id="LK-1", amount=1e6)).body
    assert (effect["policy"], effect["approval"]) == (None, None)
    await api.report(effect, "succeeded")
    for table in ("run_state", "run_tally", "run_fact", "budget_slice", "approval", "gate_refusal"):
        assert await owner.one(f"SELECT count(*) FROM {table}") == 0


async def test_a_principals_own_policy_comes_before_everybodys(shop: Shop):
    await shop.govern(POLICY)
    assert (await told(shop, "LK-1"))[0] == 403
    await shop.govern(a_budget("own", max=5), principal="admin")
    assert (await told(shop, "LK-1"))[0] == 201


async def test_only_a_success_is_a_prior_call(api: Api, shop: Shop):
    await shop.govern(POLICY)
    looking = (await shop.call("orders.get_order", order_id="LK-1")).body
    assert (await told(shop, "LK-1"))[0] == 403, "it is under way"
    await api.report(looking, "failed", error={"code": "gone"})
    assert (await told(shop, "LK-1"))[0] == 403, "it failed"
    await shop.looked("LK-1", total=5)
    assert (await told(shop, "LK-1"))[0] == 201


async def test_a_result_that_breaks_its_contract_gives_no_fact(shop: Shop):
    strict = GET_ORDER | {
        "version": "2.0",
        "output_schema": {"type": "object", "required": ["currency"]},
    }
    await shop.publish(strict)
    await shop.govern(POLICY)
    await shop.looked("LK-1", total=50)
    answer = await shop.call("orders.refund", order_id="LK-1", amount=1)
    assert answer.body["facts"]["rule"] == "not-more-than-the-order", (
        "it was called, and says nothing"
    )


async def test_a_sensitive_value_is_no_fact(owner: Owner, shop: Shop):
    secret = {"type": "object", "properties": {"total": {"type": "number", "x-sensitive": True}}}
    await shop.publish(GET_ORDER | {"version": "2.0", "output_schema": secret})
    await shop.govern(POLICY)
    await shop.looked("LK-1", total=4711.25)
    assert "4711" not in await owner.dump()
    answer = await shop.call("orders.refund", order_id="LK-1", amount=1)
    assert answer.body["facts"]["rule"] == "not-more-than-the-order"


async def test_what_was_planned_is_decided_again_at_the_dispatch(api: Api, shop: Shop):
    await shop.govern(POLICY)
    await shop.looked("LK-1", total=50)
    planned = (await shop.plan("orders.refund", order_id="LK-1", amount=40)).body
    assert planned["policy"] == {"policy": "refunds", "revision": 1}
    await shop.looked("LK-1", total=30)
    assert (await api.dispatch(planned)).refusal == BLOCKED
    assert (await shop.refusals())[-1][3] == "not-more-than-the-order"
    await shop.looked("LK-1", total=60)
    answer = await api.dispatch(planned)
    assert answer.body["dispatch"]["owned"], "a refusal of a policy changed nothing"


async def test_a_policy_that_changed_ends_what_was_planned_under_it(api: Api, shop: Shop):
    await shop.govern(POLICY)
    await shop.looked("LK-1", total=50)
    planned = (await shop.plan("orders.refund", order_id="LK-1", amount=40)).body
    assert await shop.govern(POLICY.replace("value: 100", "value: 90")) == 2
    answer = await api.dispatch(planned)
    assert answer.refusal == (409, "credential_policy_changed")
    shown = await api.show(planned)
    assert (shown["state"], shown["reason"]) == ("REFUSED", "credential_policy_changed")
    again = await shop.call("orders.refund", order_id="LK-1", amount=40)
    assert again.refusal == BLOCKED, "a fact is one revision's"
    await shop.looked("LK-1", total=50)
    assert (await told(shop, "LK-1"))[0] == 201


async def test_work_without_a_policy_ends_when_there_is_one(api: Api, shop: Shop):
    planned = (await shop.plan("orders.refund", order_id="LK-1", amount=1)).body
    await shop.govern(a_budget(max=5))
    assert (await api.dispatch(planned)).refusal == (409, "credential_policy_changed")


async def test_a_further_attempt_is_charged_for_nothing(
    api: Api, owner: Owner, shop: Shop, sweep: Sweep
):
    await shop.publish(REPLAYABLE)
    await shop.govern(a_budget(max=1))
    effect = (await shop.call("orders.refund", order_id="LK-1", amount=1)).body
    await api.report(effect, "unknown")
    await sweep.until(api, effect, "RETRYABLE")
    again = await api.dispatch(effect)
    assert again.body["dispatch"]["owned"]
    assert (await told(shop, "LK-1"))[1]["code"] == "budget_exhausted"
    assert await owner.rows("SELECT dispatched FROM run_tally") == [(1,)]


async def test_a_further_attempt_is_stopped_by_a_policy_that_blocks_now(
    api: Api, shop: Shop, sweep: Sweep
):
    await shop.publish(REPLAYABLE)
    await shop.govern(POLICY)
    await shop.looked("LK-1", total=50)
    effect = (await shop.call("orders.refund", order_id="LK-1", amount=40)).body
    await api.report(effect, "unknown")
    await sweep.until(api, effect, "RETRYABLE")
    await shop.looked("LK-1", total=30)
    assert (await api.dispatch(effect)).refusal == BLOCKED
    assert await api.state(effect) == "RETRYABLE"


@pytest.mark.parametrize("is_booked", [True, False])
async def test_a_success_that_the_provider_or_a_person_tells_counts(
    api: Api, owner: Owner, shop: Shop, sweep: Sweep, provider: Provider, is_booked: bool
):
    evidence = http_evidence(provider.port)
    evidence["answer"] = without(evidence["answer"], "match")
    once = {"name": "orders.ship", "effect_class": "NON_RETRYABLE", "evidence": evidence}
    await shop.publish(without(REFUND, "idempotency") | once)
    text = POLICY.split("  - name: not-more")[0].replace(
        "prior_tool: orders.get", "prior_tool: orders.ship", 1
    )
    text = text.replace("orders.ship_order", "orders.ship")
    await shop.govern(text.replace("\ntools:", "\ntools:\n  orders.ship: {risk: write}", 1))
    effect = (await shop.call("orders.ship", order_id="LK-1", amount=1)).body
    if is_booked:
        provider.book(effect["effect_id"])
    await api.report(effect, "unknown")
    assert (await told(shop, "LK-1"))[0] == 403
    await sweep.until(api, effect, "SUCCEEDED" if is_booked else "QUARANTINED")
    if not is_booked:
        assert (await told(shop, "LK-1"))[0] == 403
        assert (await api.resolve(effect, "SUCCEEDED")).body["state"] == "QUARANTINED"
        assert (await told(shop, "LK-1"))[0] == 403
        grace = api.speaking_for(await owner.token("default", "operator", principal="grace"))
        async with grace.http:
            assert (await grace.resolve(effect, "SUCCEEDED")).body["state"] == "SUCCEEDED"
    assert (await told(shop, "LK-1"))[0] == 201


# --- budgets --------------------------------------------------------------------------------------


async def test_a_run_spends_its_own_budget(shop: Shop):
    await shop.govern(a_budget(max=100, amount="amount"))
    for amount, status in ((60, 201), (40.01, 429), (39.99, 201), (0.02, 429), (0.01, 201)):
        answer = await shop.call("orders.refund", order_id="LK-1", amount=amount)
        assert answer.status == status, amount
    assert answer.body["dispatch"]["owned"]
    assert (await shop.call("orders.refund", "run-2", order_id="LK-1", amount=100)).status == 201
    over = await shop.call("orders.refund", order_id="LK-1", amount=1)
    assert over.body["facts"] == {"rule": "budgets.limits.refunds", "policy": "budgeted"}


async def test_a_refused_call_spends_nothing(api: Api, owner: Owner, shop: Shop):
    await shop.govern(POLICY + "budgets:\n  max_high_risk_calls: 1\n")
    for _ in range(3):
        assert (await told(shop, "LK-1"))[1]["code"] == "policy_blocked"
    await shop.looked("LK-1", total=10)
    planned = [(await shop.plan("orders.refund", order_id="LK-1", amount=1)).body for _ in "ab"]
    assert (await api.dispatch(planned[0])).body["dispatch"]["owned"]
    assert (await api.dispatch(planned[1])).refusal == EXHAUSTED
    assert await api.state(planned[1]) == "PLANNED"
    assert await owner.rows("SELECT tool, dispatched FROM run_tally ORDER BY tool") == [
        ("orders.get_order", 1),
        ("orders.refund", 1),
    ]


async def test_all_runs_share_a_budget_to_the_last_unit(owner: Owner, shop: Shop):
    """What lies idle in one run's slice is another's when it needs it."""
    await shop.govern(a_budget(max=40, per="tenant", slice=10))
    answers = [
        await shop.call("orders.refund", f"run-{number % 20}", order_id="LK-1", amount=1)
        for number in range(45)
    ]
    assert [answer.status for answer in answers] == [201] * 40 + [429] * 5
    assert await owner.one("SELECT sum(used) FROM budget_slice") == 40


async def test_a_window_is_whole_again_when_the_next_begins(owner: Owner, shop: Shop):
    await shop.govern(a_budget(max=1, per="tenant", window="24h"))
    assert (await told(shop, "LK-1"))[0] == 201
    assert (await told(shop, "LK-1", "run-2"))[0] == 429
    for table in ("budget_pool", "budget_slice"):
        await owner.rows(f"UPDATE {table} SET window_start = window_start - interval '1 day'")
    assert (await told(shop, "LK-1", "run-2"))[0] == 201
    assert (await told(shop, "LK-1", "run-3"))[0] == 429


async def test_a_budget_is_the_policys_whatever_its_revision(shop: Shop):
    await shop.govern(a_budget(max=2, per="tenant"))
    assert [(await told(shop, "LK-1"))[0] for _ in range(3)] == [201, 201, 429]
    await shop.govern(a_budget(max=3, per="tenant"))
    assert [(await told(shop, "LK-1"))[0] for _ in range(2)] == [201, 429]
    await shop.govern(a_budget(max=1, per="tenant"))
    assert (await told(shop, "LK-1"))[0] == 429


# --- many at once ---------------------------------------------------------------------------------


@pytest.fixture
async def busy(database_url: str, owner: Owner, tmp_path: Path) -> AsyncGenerator[Shop]:
    """A shop in an application with room for many transactions at once."""
    async with running(database_url, tmp_path / "home", pool_size=16) as api:
        yield await Shop(api).publish(GET_ORDER, REFUND)
        await owner.check_ledger()


def owned(answers: list[Answered]) -> int:
    assert {answer.status for answer in answers} <= {200, 201, 429}, answers
    return sum(answer.status != 429 and answer.body["dispatch"]["owned"] for answer in answers)


@pytest.mark.parametrize(
    "limit",
    [
        {"max": 10},
        {"max": 25, "amount": "amount"},
        {"max": 10, "per": "tenant"},
        {"max": 10, "per": "tenant", "slice": 4},
        {"max": 25, "amount": "amount", "per": "tenant", "window": "365d", "slice": 7},
    ],
)
@pytest.mark.parametrize("runs", [1, 4])
async def test_a_budget_is_never_overspent(busy: Shop, owner: Owner, limit: Any, runs: int):
    await busy.govern(a_budget(**limit))
    calls = [
        busy.call("orders.refund", f"run-{number % runs}", order_id="LK-1", amount=2.5)
        for number in range(32)
    ]
    ran = owned(await asyncio.gather(*calls))
    shares = 1 if limit.get("per") == "tenant" else runs
    assert ran == 10 * min(shares, 4) if shares == 1 else ran == 32
    spent = await owner.one("SELECT sum(used) FROM budget_slice")
    assert spent == Decimal(ran) * (Decimal("2.5") if "amount" in limit else 1)
    pools = await owner.rows(
        "SELECT granted, most, (SELECT sum(granted) FROM budget_slice AS slice"
        " WHERE slice.name = pool.name AND slice.scope = 'tenant') FROM budget_pool AS pool"
    )
    assert all(granted == given <= most for granted, most, given in pools)


async def test_two_workers_of_one_run_never_both_spend_the_last_unit(busy: Shop):
    await busy.govern(a_budget(max=1))
    planned = [(await busy.plan("orders.refund", order_id="LK-1", amount=1)).body for _ in range(8)]
    workers = [busy.api.speaking_for(busy.api.token) for _ in planned]
    try:
        answers = await asyncio.gather(
            *(worker.dispatch(effect) for worker, effect in zip(workers, planned, strict=True))
        )
    finally:
        for worker in workers:
            await worker.http.aclose()
    assert owned(answers) == 1


async def test_one_effect_asked_for_many_times_is_charged_once(busy: Shop, owner: Owner):
    await busy.govern(a_budget(max=5))
    tool = busy.tools["orders.refund"]
    call = {"effect": "same", "arguments": {"order_id": "LK-1", "amount": 1}}
    answers = await asyncio.gather(
        *(
            busy.api.plan(tool, **call, dispatch={"worker_id": str(uuid4()), "nonce": str(uuid4())})
            for _ in range(12)
        )
    )
    assert owned(answers) == 1
    assert await owner.rows("SELECT used FROM budget_slice") == [(1,)]
    assert await owner.rows("SELECT dispatched FROM run_tally") == [(1,)]


async def test_a_publication_and_dispatches_race(busy: Shop, owner: Owner):
    """Each dispatch is under the revision that counts when it commits."""
    await busy.govern(a_budget(max=100))

    async def republish() -> None:
        for most in range(101, 106):
            await busy.govern(a_budget(max=most))

    calls = [busy.call("orders.refund", order_id="LK-1", amount=1) for _ in range(24)]
    answers, _ = await asyncio.gather(asyncio.gather(*calls), republish())
    assert owned(answers) == 24
    assert await owner.one("SELECT used FROM budget_slice") == 24


# --- two tenants ----------------------------------------------------------------------------------


async def test_two_tenants_share_no_budget_and_no_fact(api: Api, other: Api):
    shops = [await Shop(each).publish(GET_ORDER, REFUND) for each in (api, other)]
    for each in shops:
        await each.govern(a_budget(max=1, per="tenant"))
    assert [(await told(each, "LK-1"))[0] for each in shops] == [201, 201]
    assert [(await told(each, "LK-1"))[0] for each in shops] == [429, 429]
    await shops[0].acts_for("C-1")
    assert (await other.ask("GET", "/v1/runs/run-1")).body["subject"] is None


async def test_a_shared_tool_is_held_to_the_policy_of_who_uses_it(api: Api, other: Api):
    mine = await Shop(api).publish(GET_ORDER, REFUND)
    await mine.govern(POLICY)
    theirs = await Shop(other).publish(a_contract(name="orders.other"), GET_ORDER, REFUND)
    assert (await told(theirs, "LK-1"))[0] == 201, "a policy is its tenant's"
    assert (await told(mine, "LK-1"))[0] == 403

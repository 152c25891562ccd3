"""What an attacker tries at the gates: at a policy, its facts, a budget, an approval, the locks."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.api import Answered, Api, running
from tests.fixtures import Owner, Sweep, asking, sweeper_of
from tests.gated import (
    GET_ORDER,
    OWNED,
    POLICY,
    REFUND,
    RETURNED,
    Shop,
    a_budget,
    without,
)

BLOCKED = (403, "policy_blocked")
EXHAUSTED = (429, "budget_exhausted")


@pytest.fixture
async def busy(database_url: str, owner: Owner, tmp_path: Path) -> AsyncGenerator[Shop]:
    """A shop in an application with room for many transactions at once."""
    async with running(database_url, tmp_path / "home", pool_size=16) as api:
        yield await Shop(api).publish(GET_ORDER, REFUND)
        await owner.check_ledger()


async def refund(shop: Shop, run: str = "run-1", amount: float = 1) -> Answered:
    return await shop.call("orders.refund", run, order_id="LK-1", amount=amount)


# --- budgets --------------------------------------------------------------------------------------


async def test_a_budget_that_was_lowered_is_not_spent_from_what_was_given_out_before(
    busy: Shop, owner: Owner, database_url: str
):
    """Two runs hold slices of the larger budget, and come at the same moment."""
    runs = ("run-1", "run-2")
    await busy.govern(a_budget(max=160, per="tenant", slice=10))
    for run in runs:
        assert (await refund(busy, run)).status == 201
    await busy.govern(a_budget(max=3, per="tenant", slice=10))
    async with await psycopg.AsyncConnection.connect(database_url) as held:
        await held.execute("SELECT FROM budget_slice FOR UPDATE")
        calls = [asyncio.ensure_future(refund(busy, run)) for run in runs]
        await owner.wait_for_locks(len(runs))
        await held.rollback()
        answers = await asyncio.gather(*calls)
    assert sorted(answer.status for answer in answers) == [201, 429]
    assert [(await refund(busy, run)).status for run in runs] == [429, 429]
    assert await owner.one("SELECT sum(used) FROM budget_slice") == 3


async def test_a_budget_that_is_lowered_and_raised_strands_nothing(busy: Shop, owner: Owner):
    runs = [f"run-{number}" for number in range(4)]
    for most, able in ((40, 4), (2, 0), (6, 2), (50, 4), (3, 0), (51, 4)):
        await busy.govern(a_budget(max=most, per="tenant", slice=3))
        answers = [await refund(busy, run) for run in runs]
        assert sum(answer.status == 201 for answer in answers) == able, most
    rest = 51 - 14
    answers = [await refund(busy, runs[number % 4]) for number in range(rest + 2)]
    assert [answer.status for answer in answers] == [201] * rest + [429] * 2
    assert await owner.one("SELECT granted FROM budget_pool") == 51


# --- a further attempt ----------------------------------------------------------------------------


async def test_a_further_attempt_is_held_to_what_must_not_have_come_before(api: Api, sweep: Sweep):
    """Its own first attempt is none of it, and a call of another tool is."""
    again = without(REFUND, "idempotency") | {"effect_class": "REPLAYABLE", "max_duplicates": 5}
    shop = await Shop(api).publish(GET_ORDER, again)
    await shop.govern(
        'version: "0.2"\nid: once\ntitle: Once\ndefaults: {unknown_tools: block}\n'
        "tools:\n  orders.get_order: {risk: read}\n  orders.refund: {risk: high_risk}\n"
        "budgets: {max_total_calls: 2}\n"
        "rules:\n"
        "  - {name: once, type: forbid_prior_call, tool: orders.refund,"
        " prior_tool: orders.refund, effect: block}\n"
        "  - {name: not-after, type: forbid_prior_call, tool: orders.refund,"
        " prior_tool: orders.get_order, effect: block}\n"
    )
    effect = (await refund(shop)).body
    await api.report(effect, "unknown")
    await sweep.until(api, effect, "RETRYABLE")
    second = await api.dispatch(effect)
    assert second.body["dispatch"]["owned"]
    assert (await refund(shop)).body["facts"]["rule"] == "once"
    await api.report(second.body, "unknown")
    await sweep.until(api, effect, "RETRYABLE")
    await shop.call("orders.get_order", order_id="LK-1")
    answer = await api.dispatch(effect)
    assert answer.refusal == BLOCKED
    assert answer.body["facts"]["rule"] == "not-after"


# --- approvals ------------------------------------------------------------------------------------


async def test_what_a_person_refused_is_answered_as_what_it_is(api: Api, owner: Owner):
    """However it is asked for again: it is closed, and nobody is asked a second time."""
    shop = await Shop(api).publish(REFUND | {"approval": "always"})
    same: dict[str, Any] = {"effect": "same", "arguments": {"order_id": "LK-1", "amount": 1}}
    tool = shop.tools["orders.refund"]
    effect = (await api.plan(tool, **same)).body
    grace = api.speaking_for(await owner.token("default", "approver", principal="grace"))
    async with grace.http:
        path = f"/v1/approvals/{effect['effect_id']}/reject"
        assert (await grace.ask("POST", path, {"reason": "no"})).status == 200
    for again in (
        await api.plan(tool, **same),
        await api.plan(tool, dispatch=api.asking(), **same),
        await api.dispatch(effect),
    ):
        assert again.status == 200
        assert (again.body["state"], again.body["reason"]) == ("REFUSED", "approval_rejected")
        assert again.body["approval"]["status"] == "rejected"
        assert not (again.body["dispatch"] or {}).get("owned")
    other = await api.plan(tool, **same | {"arguments": {"order_id": "LK-1", "amount": 2}})
    assert other.refusal == (409, "effect_conflict")


# --- facts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", [{"result": ["no", "order"]}, {}])
async def test_what_an_older_result_said_does_not_outlive_a_later_success(
    api: Api, shop: Shop, result: dict[str, Any]
):
    """Also where the later one says nothing, or breaks its contract."""
    await shop.govern(POLICY)
    await shop.looked("LK-1", total=50)
    looked = (await shop.call("orders.get_order", order_id="LK-1")).body
    assert (await api.report(looked, "succeeded", **result)).status == 200
    answer = await refund(shop)
    assert answer.refusal == BLOCKED
    assert answer.body["facts"]["rule"] == "not-more-than-the-order"


# --- permission -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [7, 7.0, -7, 2**53 - 1, 1e21, "7", 'ä"\\\n/\u2028', ""])
async def test_an_identifier_is_found_however_it_is_written(api: Api, name: Any):
    """In a result, as the name of a member there, and in the arguments of who tells the owner."""
    anything = {"type": "object", "properties": {"order_id": {"type": ["string", "number"]}}}
    shop = await Shop(api).publish(
        GET_ORDER | {"input_schema": anything},
        REFUND | {"input_schema": anything, "ownership": OWNED, "returned": [RETURNED[0]]},
    )
    await shop.acts_for("C-1")
    unknown = await shop.call("orders.refund", order_id=name)
    assert unknown.refusal == (404, "not_found")
    other = f"{name}0" if isinstance(name, str) else str(name)
    await shop.looked(other, customer_id="C-1")
    assert (await shop.call("orders.refund", order_id=name)).refusal == (404, "not_found")
    found = {"customer_id": "C-1", "of": [{"it": name}]}
    if isinstance(name, str):
        found["of"] = [{name: "it"}]
    await shop.done("orders.get_order", found, order_id=name)
    assert (await shop.call("orders.refund", order_id=name)).status == 201


@pytest.mark.parametrize("name", [{}, {"effect": "same"}, {"key": "same"}])
async def test_what_a_look_up_read_is_no_answer_to_a_call(api: Api, name: dict[str, str]):
    """No policy was asked about it: an equal call is another effect, and asks one."""
    shop = await Shop(api).publish(GET_ORDER)
    await shop.govern(a_budget(max=5).replace("unknown_tools: allow", "unknown_tools: block"))
    tool = shop.tools["orders.get_order"]
    call: dict[str, Any] = {"effect": None, "arguments": {"order_id": "LK-1"}} | name
    read = await api.plan(tool, origin="look_up", dispatch=api.asking(), **call)
    assert read.status == 201
    assert (await api.report(read.body, "succeeded", result={"total": 4711})).status == 200
    for asked in (
        await api.plan(tool, **call),
        await api.plan(tool, dispatch=api.asking(), **call),
    ):
        assert asked.refusal == ((409, "effect_conflict") if "key" in name else BLOCKED)
        assert "4711" not in str(asked.body)
    again = await api.plan(tool, origin="look_up", dispatch=api.asking(), **call)
    assert again.body["effect_id"] == read.body["effect_id"]


async def test_what_a_call_read_of_somebody_elses_vouches_for_nothing(api: Api, owner: Owner):
    """A tool that says itself whose an object is has run before that is known."""
    shop = await Shop(api).publish(
        GET_ORDER | {"ownership": OWNED}, REFUND | {"returned": [RETURNED[0]]}
    )
    await shop.govern(POLICY)
    await shop.acts_for("C-1")
    theirs = await shop.looked("LK-2", customer_id="C-2", total=50, phone="555-4711")
    assert (theirs["state"], theirs["outcome"]["result"]) == ("SUCCEEDED", None)
    assert theirs["outcome"]["invalid_result"] is None
    assert "555-4711" not in await owner.dump()
    refused = await shop.call("orders.refund", order_id="LK-2", amount=1)
    assert refused.refusal == (404, "not_found")
    assert [one[2] for one in await shop.refusals()] == ["not_owner", "not_returned"]
    assert await owner.rows("SELECT succeeded FROM run_tally") == [(0,)]
    assert await owner.one("SELECT count(*) FROM run_fact") == 0
    await shop.looked("LK-1", customer_id="C-1", total=50)
    assert (await refund(shop)).status == 201


# --- locks ----------------------------------------------------------------------------------------


async def deadlocks(owner: Owner) -> int:
    await owner.rows("SELECT pg_stat_clear_snapshot()")
    return await owner.one(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    )


async def test_one_call_asked_for_by_many_while_it_is_sent_waits_in_no_circle(
    busy: Shop, owner: Owner, database_url: str
):
    """Who plans what another one records meanwhile holds nothing that its worker waits for."""
    await busy.govern(a_budget(max=10**6))
    same: dict[str, Any] = {"effect": "same", "arguments": {"order_id": "LK-1", "amount": 1}}
    tool = busy.tools["orders.refund"]
    await refund(busy)
    async with await psycopg.AsyncConnection.connect(database_url) as held:
        # The run stands still: whoever decides in it waits, and who only plans may be faster.
        await held.execute("SELECT FROM run_state FOR UPDATE")
        asked = [
            asyncio.ensure_future(busy.api.plan(tool, dispatch=busy.api.asking(), **same))
            for _ in range(2)
        ]
        await owner.wait_for_locks(2)
        planned = asyncio.ensure_future(busy.api.plan(tool, **same))
        waits = asyncio.ensure_future(owner.wait_for_locks(3))
        await asyncio.wait({planned, waits}, return_when=asyncio.FIRST_COMPLETED)
        if planned.done():
            asked.append(asyncio.ensure_future(busy.api.dispatch(planned.result().body)))
        await waits
        await held.rollback()
        answers = await asyncio.gather(*asked)
    assert (await planned).status in (200, 201)
    assert {answer.status for answer in answers} <= {200, 201}
    assert sum(answer.body["dispatch"]["owned"] for answer in answers) == 1
    assert await deadlocks(owner) == 0


@pytest.fixture
async def shop(api: Api) -> Shop:
    strict = GET_ORDER | {"output_schema": {"type": "object"}}
    return await Shop(api).publish(strict, REFUND)


async def work(busy: Shop, grace: Api, run: str) -> list[Answered]:
    """Read, ask for what others ask for too, have it approved, send it, and report."""
    answers: list[Answered] = []
    for turn in range(6):
        read = await busy.call("orders.get_order", run, order_id=f"LK-{turn}")
        if read.status == 201:
            answers.append(await busy.api.report(read.body, "succeeded", result={"total": turn}))
        asked = await busy.api.plan(
            busy.tools["orders.refund"],
            run=run,
            effect=f"same-{turn}",
            arguments={"order_id": "LK-1", "amount": 1},
            dispatch=busy.api.asking(),
        )
        effect = asked.body.get("facts", asked.body)
        if "effect_id" not in effect:
            continue  # The version is closed just now.
        await grace.ask("POST", f"/v1/approvals/{effect['effect_id']}/approve", {})
        sent = await busy.api.dispatch(effect)
        answers.append(sent)
        if sent.status == 200 and sent.body["dispatch"]["owned"]:
            answers.append(await busy.api.report(sent.body, "succeeded", result={}))
    return answers


async def change(busy: Shop, policy: str) -> list[Answered]:
    """Publish the policy anew, and close the version and open it again."""
    answers: list[Answered] = []
    for most in range(1001, 1006):
        await busy.govern(policy.replace("max: 1000", f"max: {most}"))
        answers.append(await busy.api.retire(busy.tools["orders.refund"]))
        answers.append(await busy.api.rollback(busy.tools["orders.refund"]))
    return answers


async def let_run_out(owner: Owner, sweep: Sweep) -> list[Answered]:
    """Let some leases and approvals run out while all goes on."""
    for _ in range(12):
        await owner.rows(
            "UPDATE effect_open SET due_at = now() WHERE due_at > now() AND number % 3 = 0"
        )
        await sweep.once()
        await asyncio.sleep(0.05)
    return []


async def test_dispatches_approvals_publications_and_sweeps_wait_in_no_circle(
    busy: Shop, owner: Owner
):
    """Everything that takes a lock, at once and on the same few rows."""
    await busy.publish(REFUND | {"version": "2.0", "approval": "always"})
    limits = "".join(
        f"    - {{name: {name}, tools: [orders.get_order, orders.refund], max: 1000, per: {per}}}\n"
        for name, per in (("b", "tenant, slice: 7"), ("a", "tenant"), ("c", "run"))
    )
    policy = a_budget(max=1000, per="tenant", slice=3) + limits
    await busy.govern(policy)
    grace = busy.api.speaking_for(await owner.token("default", "approver", principal="grace"))
    async with grace.http, asking([]) as source:
        tasks = [work(busy, grace, f"run-{number % 3}") for number in range(9)]
        tasks += [let_run_out(owner, sweeper_of(busy.api, source, name=name)) for name in "ab"]
        found = await asyncio.wait_for(asyncio.gather(change(busy, policy), *tasks), 60)
    statuses = {answer.status for answers in found for answer in answers}
    assert 200 in statuses
    assert statuses <= {200, 403, 404, 409, 429}
    assert await deadlocks(owner) == 0
    pools = await owner.rows(
        "SELECT granted, (SELECT sum(granted) FROM budget_slice AS slice WHERE slice.scope ="
        " 'tenant' AND slice.name = pool.name) FROM budget_pool AS pool"
    )
    assert all(granted == given for granted, given in pools)

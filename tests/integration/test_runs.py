"""A run as a person reads it: on whose behalf it acts, what it did, what it was refused and why."""

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

from tests.api import Api
from tests.fixtures import Owner
from tests.gated import GET_ORDER, OWNED, POLICY, REFUND, Shop

SUBJECT: dict[str, Any] = {"customer_id": "C-1"}


async def put(api: Api, subject: dict[str, Any], run: str = "run-1"):
    return await api.ask("PUT", f"/v1/runs/{quote(run, safe='')}", {"subject": subject})


async def test_a_run_acts_for_one_subject(api: Api):
    made = await put(api, SUBJECT)
    assert made.status == 201
    assert (made.body["run"], made.body["subject"], made.body["set_by"]) == (
        "run-1",
        SUBJECT,
        "admin",
    )
    again = await put(api, SUBJECT)
    assert (again.status, again.body) == (200, made.body)
    for another in ({"customer_id": "C-2"}, SUBJECT | {"region": 7}):
        answer = await put(api, another)
        assert answer.refusal == (409, "effect_conflict")
        assert "C-1" not in str(answer.body)
    assert (await api.ask("GET", "/v1/runs/run-1")).body["subject"] == SUBJECT
    assert (await put(api, {"customer_id": "C-2"}, "run-2")).status == 201


async def test_of_many_at_once_one_subject_is_taken(api: Api):
    answers = await asyncio.gather(*(put(api, {"customer_id": f"C-{n % 3}"}) for n in range(12)))
    statuses = sorted(answer.status for answer in answers)
    assert statuses == [200] * 3 + [201] + [409] * 8


@pytest.mark.parametrize(
    "subject",
    [
        {},
        {"": "C-1"},
        {"customer_id": ""},
        {"customer_id": None},
        {"customer_id": True},
        {"customer_id": 1.5},
        {"customer_id": ["C-1"]},
        {"customer_id": "C" * 513},
        {f"member-{number}": "C-1" for number in range(21)},
    ],
)
async def test_what_is_no_subject(api: Api, owner: Owner, subject: dict[str, Any]):
    assert (await put(api, subject)).refusal == (422, "invalid_request")
    assert await owner.one("SELECT count(*) FROM run_subject") == 0


@pytest.mark.parametrize("run", ["ticket/80009", "a b", "ä?#%", "/"])
async def test_a_run_is_called_as_its_caller_likes(api: Api, run: str):
    shop = await Shop(api).publish(GET_ORDER)
    assert (await put(api, SUBJECT, run)).body["run"] == run
    effect = (await shop.call("orders.get_order", run, order_id="LK-1")).body
    shown = (await api.ask("GET", f"/v1/runs/{quote(run, safe='')}")).body
    assert (shown["run"], shown["subject"]) == (run, SUBJECT)
    assert [one["effect_id"] for one in shown["entries"]] == [effect["effect_id"]]


async def test_a_run_that_nobody_used_is_not_there(api: Api):
    assert (await api.ask("GET", "/v1/runs/run-1")).refusal == (404, "not_found")


async def test_a_trace_tells_what_was_done_and_what_was_refused(api: Api):
    shop = await Shop(api).publish(GET_ORDER, REFUND | {"ownership": OWNED})
    await shop.govern(POLICY)
    await shop.acts_for("C-1")
    assert (await shop.call("orders.refund", order_id="LK-1", amount=1)).status == 404
    await shop.looked("LK-1", customer_id="C-1", total=500)
    await shop.looked("LK-2", customer_id="C-2", total=500)
    assert (await shop.call("orders.refund", order_id="LK-2", amount=1)).status == 404
    assert (await shop.call("orders.refund", order_id="LK-1", amount=501)).status == 403
    large = await shop.call("orders.refund", order_id="LK-1", amount=500)
    small = await shop.call("orders.refund", order_id="LK-1", amount=5)
    shown = (await api.ask("GET", "/v1/runs/run-1")).body
    assert shown["subject"] == {"customer_id": "C-1"}
    told = [
        (one["decision"], one["tool"], one["state"])
        if one["kind"] == "effect"
        else (one["gate"], one["code"], one["true_code"], one["rule"])
        for one in shown["entries"]
    ]
    assert told == [
        ("permission", "not_found", "not_found", None),
        ("allow", "orders.get_order", "SUCCEEDED"),
        ("allow", "orders.get_order", "SUCCEEDED"),
        ("permission", "not_found", "not_owner", None),
        ("policy", "policy_blocked", "policy_blocked", "not-more-than-the-order"),
        ("needs_human", "orders.refund", "PLANNED"),
        ("policy", "needs_human", "needs_human", "large-refunds-need-a-person"),
        ("allow", "orders.refund", "DISPATCHED"),
    ]
    entries = shown["entries"]
    assert [one["at"] for one in entries] == sorted(one["at"] for one in entries)
    assert entries[3]["message"].startswith("No order LK-2 is available.")
    assert entries[5]["approval"]["status"] == "pending"
    assert entries[6]["effect_id"] == large.body["facts"]["effect_id"]
    assert entries[7]["effect_id"] == small.body["effect_id"]
    assert {one["principal"] for one in entries} == {"admin"}


async def test_the_same_refusal_again_is_one_line(api: Api):
    """However often a worker asks for what a policy blocks."""
    shop = await Shop(api).publish(GET_ORDER, REFUND)
    await shop.govern(POLICY)
    await shop.looked("LK-1", total=50)
    planned = (await shop.plan("orders.refund", order_id="LK-1", amount=40)).body
    await shop.looked("LK-1", total=30)
    for _ in range(4):
        assert (await api.dispatch(planned)).code == "policy_blocked"
    assert len(await shop.refusals()) == 1
    assert (await shop.trace())[-1]["effect_id"] == planned["effect_id"]


async def test_a_trace_is_read_page_by_page(api: Api):
    shop = await Shop(api).publish(GET_ORDER)
    for number in range(6):
        await shop.call("orders.get_order", **{"order_id": f"LK-{number}"} if number % 2 else {})
    whole = await shop.trace()
    assert [one["kind"] for one in whole] == ["refusal", "effect"] * 3
    paged: list[dict[str, Any]] = []
    after = ""
    while True:
        page = (await api.ask("GET", f"/v1/runs/run-1?limit=2{after}")).body
        paged += page["entries"]
        if page["next"] is None:
            break
        after = f"&after={quote(page['next'], safe='')}"
    assert paged == whole


@pytest.mark.parametrize("after", ["", "x", "2026-01-01,effect,7", "2026-01-01T00:00:00Z,other,7"])
async def test_what_no_page_ended_with(api: Api, after: str):
    await put(api, SUBJECT)
    answer = await api.ask("GET", f"/v1/runs/run-1?after={after}")
    assert answer.refusal == (422, "invalid_request")


async def test_a_run_whose_first_call_was_refused_has_a_trace(api: Api):
    shop = await Shop(api).publish(GET_ORDER)
    assert (await shop.plan("orders.get_order", order_id="nonsense")).status == 422
    (one,) = await shop.trace()
    assert (one["gate"], one["code"], one["effect_id"]) == ("arguments", "invalid_arguments", None)
    assert "nonsense" not in str(one)


async def test_a_run_is_its_tenants(api: Api, other: Api):
    await put(api, SUBJECT)
    assert (await other.ask("GET", "/v1/runs/run-1")).refusal == (404, "not_found")
    made = await put(other, {"customer_id": "C-2"})
    assert made.status == 201
    assert made.body["run_id"] != (await api.ask("GET", "/v1/runs/run-1")).body["run_id"]
    assert (await api.ask("GET", "/v1/runs/run-1")).body["subject"] == SUBJECT

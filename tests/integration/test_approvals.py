"""A person's word on an effect: asked for, given or refused, bound to what was asked, used once."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tests.api import Answered, Api, moment
from tests.builders import ARGUMENTS, a_contract
from tests.fixtures import Owner, Sweep
from tests.gated import GET_ORDER, POLICY, REFUND, Shop, a_budget, without

WAITS = (403, "needs_human")
STALE = (409, "approval_stale")
# Refunds need a person from an amount on that the order says.
ASKS_FROM = POLICY.replace("{source: const, value: 100}", "{source: fact, key: ask_from}").replace(
    "rules:", "  - {name: ask_from, from_tool: orders.get_order, path: ask_from}\nrules:", 1
)


@pytest.fixture
async def grace(api: Api, owner: Owner) -> AsyncGenerator[Api]:
    """An approver: another principal than the one who plans."""
    grace = api.speaking_for(await owner.token("default", "approver", principal="grace"))
    async with grace.http:
        yield grace


@pytest.fixture
async def asking(api: Api) -> dict[str, Any]:
    """The tuple of a tool that runs only with a person's approval."""
    return await api.publish(a_contract(approval="always"))


@pytest.fixture
async def shop(api: Api) -> Shop:
    """A shop whose policy wants a person's word on large refunds, with an order looked up."""
    shop = await Shop(api).publish(GET_ORDER, REFUND)
    await shop.govern(POLICY)
    await shop.looked("LK-1", total=500)
    return shop


async def approve(approver: Api, effect: dict[str, Any], **body: Any) -> Answered:
    return await approver.ask("POST", f"/v1/approvals/{effect['effect_id']}/approve", body)


async def reject(approver: Api, effect: dict[str, Any], reason: str = "too much") -> Answered:
    path = f"/v1/approvals/{effect['effect_id']}/reject"
    return await approver.ask("POST", path, {"reason": reason})


async def show(api: Api, effect: dict[str, Any]) -> dict[str, Any]:
    return (await api.ask("GET", f"/v1/approvals/{effect['effect_id']}")).body


async def queue(api: Api, query: str = "status=pending") -> list[str]:
    found = (await api.ask("GET", f"/v1/approvals?{query}")).body["approvals"]
    return [one["effect_id"] for one in found]


async def status(api: Api, effect: dict[str, Any]) -> str:
    return (await show(api, effect))["status"]


# --- asked and given ------------------------------------------------------------------------------


async def test_what_needs_a_person_waits_and_runs_on_its_word(
    api: Api, grace: Api, asking: dict[str, Any]
):
    answer = await api.plan(asking)
    assert answer.status == 201
    effect = answer.body
    assert effect["state"] == "PLANNED"
    waiting = effect["approval"]
    assert (waiting["approval_id"], waiting["status"]) == (effect["effect_id"], "pending")
    assert waiting["question"] == ("billing.send_invoice@2.1.0 runs only with a person's approval.")
    assert effect["due_at"] == waiting["expires_at"]
    asked = await api.dispatch(effect)
    assert asked.refusal == WAITS
    assert asked.body["retryable"]
    assert asked.body["facts"] == {
        "effect_id": effect["effect_id"],
        "approval_id": effect["effect_id"],
        "status": "pending",
        "expires_at": waiting["expires_at"],
        "rule": None,
        "policy": None,
    }
    assert await queue(grace) == [effect["effect_id"]]
    shown = await show(grace, effect)
    assert shown["arguments"] == ARGUMENTS
    assert shown["requested_by"] == "admin"
    given = await approve(grace, effect, reason="known customer")
    assert given.status == 200
    assert (given.body["status"], given.body["decided_by"]) == ("approved", "grace")
    assert await queue(grace) == []
    sent = await api.dispatch(effect)
    assert sent.body["dispatch"]["owned"]
    assert sent.body["approval"]["status"] == "consumed"
    shown = await show(grace, effect)
    assert [(one["to_status"], one["actor"].split(" ")[-1]) for one in shown["events"]] == [
        ("pending", "admin"),
        ("approved", "person:grace"),
        ("consumed", "admin"),
    ]
    assert (shown["decided_by"], shown["reason"]) == ("grace", "known customer")


async def test_a_call_that_was_to_run_at_once_is_kept_for_a_person(
    api: Api, grace: Api, shop: Shop
):
    answer = await shop.call("orders.refund", order_id="LK-1", amount=100)
    assert answer.refusal == WAITS
    assert answer.body["facts"]["rule"] == "large-refunds-need-a-person"
    assert answer.body["facts"]["policy"] == "refunds"
    effect = answer.body["facts"]
    assert await api.state(effect) == "PLANNED"
    again = await api.plan(
        shop.tools["orders.refund"],
        effect=f"call-{shop.calls}",
        arguments={"order_id": "LK-1", "amount": 100},
        dispatch=api.asking(),
    )
    assert again.refusal == WAITS, "the same call again is the same question"
    assert again.body["facts"] == effect
    assert (await approve(grace, effect)).status == 200
    assert (await api.dispatch(effect)).body["dispatch"]["owned"]
    assert await shop.refusals() == [
        ("policy", "needs_human", "needs_human", "large-refunds-need-a-person")
    ], "asked once, however often one comes back for the answer"


@pytest.mark.parametrize(
    ("approval", "policy", "waits"),
    [
        ("never", None, False),
        ("policy", None, True),
        ("always", None, True),
        ("never", "allows", False),
        ("policy", "allows", False),
        ("always", "allows", True),
        ("never", "asks", True),
        ("policy", "asks", True),
        ("always", "asks", True),
    ],
)
async def test_the_stricter_of_contract_and_policy_wins(
    api: Api, approval: str, policy: str | None, waits: bool
):
    shop = await Shop(api).publish(REFUND | {"approval": approval})
    if policy is not None:
        asks = "needs_human" if policy == "asks" else "allow"
        await shop.govern(
            f'version: "0.1"\nid: all\ntitle: All\n'
            f"defaults: {{unknown_tools: {asks}}}\ntools: {{}}\n"
        )
    answer = await shop.call("orders.refund", order_id="LK-1", amount=1)
    assert (answer.refusal == WAITS) is waits, answer


async def test_a_policy_that_asks_at_the_dispatch_asks_then(api: Api, grace: Api, shop: Shop):
    await shop.govern(ASKS_FROM)
    await shop.looked("LK-1", total=500, ask_from=100)
    effect = (await shop.plan("orders.refund", order_id="LK-1", amount=50)).body
    assert (effect["approval"], effect["due_at"]) == (None, None)
    await shop.looked("LK-1", total=500, ask_from=10)
    assert (await api.dispatch(effect)).refusal == WAITS
    shown = await api.show(effect)
    assert shown["due_at"] == shown["approval"]["expires_at"]
    assert (await approve(grace, effect)).status == 200
    assert (await api.dispatch(effect)).body["dispatch"]["owned"]


async def test_a_person_who_was_asked_is_waited_for(api: Api, shop: Shop):
    """Also where the policy would not ask any more."""
    await shop.govern(ASKS_FROM)
    await shop.looked("LK-1", total=500, ask_from=10)
    effect = (await shop.plan("orders.refund", order_id="LK-1", amount=50)).body
    await shop.looked("LK-1", total=500, ask_from=100)
    assert (await api.dispatch(effect)).refusal == WAITS


async def test_a_block_beats_an_approval(api: Api, grace: Api, shop: Shop):
    effect = (await shop.plan("orders.refund", order_id="LK-1", amount=400)).body
    assert (await approve(grace, effect)).status == 200
    await shop.looked("LK-1", total=300)
    assert (await api.dispatch(effect)).refusal == (403, "policy_blocked")
    assert await status(api, effect) == "approved", "it is not used up"
    await shop.looked("LK-1", total=500)
    assert (await api.dispatch(effect)).body["dispatch"]["owned"]


async def test_an_approval_covers_the_further_attempts(
    api: Api, grace: Api, owner: Owner, sweep: Sweep
):
    asks = a_contract(
        name="tools.again",
        effect_class="REPLAYABLE",
        idempotency=None,
        approval="always",
        max_duplicates=3,
    )
    effect = (await api.plan(await api.publish(asks))).body
    await approve(grace, effect)
    sent = (await api.dispatch(effect)).body
    await api.report(sent, "unknown")
    await sweep.until(api, effect, "RETRYABLE")
    assert (await api.dispatch(effect)).body["dispatch"]["owned"]
    assert [one["to_status"] for one in (await show(api, effect))["events"]].count("consumed") == 1
    await owner.check_ledger()


@pytest.fixture
async def doubtful(api: Api) -> Shop:
    """A shop whose refunds may be sent again, and are asked for from some amount on."""
    again = without(REFUND, "idempotency") | {"effect_class": "REPLAYABLE", "max_duplicates": 3}
    shop = await Shop(api).publish(GET_ORDER, again)
    await shop.govern(ASKS_FROM)
    await shop.looked("LK-1", total=500, ask_from=100)
    return shop


async def retryable(api: Api, shop: Shop, sweep: Sweep) -> dict[str, Any]:
    """Return a refund that may be sent again; the policy asks a person from now on."""
    effect = (await shop.call("orders.refund", order_id="LK-1", amount=50)).body
    await api.report(effect, "unknown")
    await sweep.until(api, effect, "RETRYABLE")
    await shop.looked("LK-1", total=500, ask_from=10)
    return effect


async def test_a_further_attempt_may_need_a_person_too(
    api: Api, grace: Api, doubtful: Shop, sweep: Sweep
):
    effect = await retryable(api, doubtful, sweep)
    assert (await api.dispatch(effect)).refusal == WAITS
    assert await api.state(effect) == "RETRYABLE"
    assert (await approve(grace, effect)).status == 200
    assert (await api.dispatch(effect)).body["dispatch"]["owned"]
    assert await status(api, effect) == "consumed"


async def test_a_further_attempt_that_a_person_refuses_stays_for_people(
    api: Api, grace: Api, owner: Owner, doubtful: Shop, sweep: Sweep
):
    """It was sent once, and may have taken effect: it is not closed."""
    effect = await retryable(api, doubtful, sweep)
    assert (await api.dispatch(effect)).refusal == WAITS
    assert (await reject(grace, effect)).status == 200
    shown = await api.show(effect)
    assert (shown["state"], shown["reason"]) == ("QUARANTINED", "approval_rejected")
    await owner.check_ledger()


async def test_an_approval_is_used_once_by_whoever_is_first(
    api: Api, grace: Api, asking: dict[str, Any]
):
    effect = (await api.plan(asking)).body
    await approve(grace, effect)
    answers = await asyncio.gather(*(api.dispatch(effect) for _ in range(12)))
    assert sum(answer.body["dispatch"]["owned"] for answer in answers) == 1
    assert [one["to_status"] for one in (await show(api, effect))["events"]].count("consumed") == 1


# --- two people -----------------------------------------------------------------------------------


async def test_whoever_planned_it_does_not_decide(api: Api, owner: Owner, asking: dict[str, Any]):
    effect = (await api.plan(asking)).body
    for decide in (approve, reject):
        assert (await decide(api, effect)).refusal == (403, "forbidden")
    another = api.speaking_for(await owner.token("default", "approver", principal="admin"))
    async with another.http:
        assert (await approve(another, effect)).refusal == (403, "forbidden"), "the same principal"
    assert await status(api, effect) == "pending"


async def test_the_database_wants_two_people_too(api: Api, owner: Owner, asking: dict[str, Any]):
    effect = (await api.plan(asking)).body
    for name in ("admin", None):
        with pytest.raises(psycopg.errors.CheckViolation):
            await owner.rows(
                "UPDATE approval SET step = 1, status = 'approved', decided_by = %s,"
                " decided_at = now()",
                name,
            )
    assert (await api.dispatch(effect)).refusal == WAITS


async def test_only_an_approver_decides(api: Api, owner: Owner, asking: dict[str, Any]):
    effect = (await api.plan(asking)).body
    for role in ("runtime", "publisher", "operator", "auditor"):
        token = await owner.token("default", role, principal=f"a-{role}")
        holder = api.speaking_for(token)
        async with holder.http:
            assert (await approve(holder, effect)).refusal == (403, "forbidden")
    assert await status(api, effect) == "pending"


async def test_one_of_two_people_decides(
    api: Api, grace: Api, owner: Owner, asking: dict[str, Any]
):
    ada = api.speaking_for(await owner.token("default", "approver", principal="ada"))
    async with ada.http:
        for number in range(6):
            effect = (await api.plan(asking, effect=f"effect-{number}")).body
            answers = await asyncio.gather(approve(grace, effect), reject(ada, effect))
            assert sorted(answer.status for answer in answers) == [200, 409]
            assert {answer.code for answer in answers} == {None, "illegal_transition"}
            decided_by = (await show(api, effect))["decided_by"]
            assert decided_by == ("grace" if answers[0].status == 200 else "ada")
            answer = await api.dispatch(effect)
            assert answer.body["dispatch"]["owned"] is (decided_by == "grace")
    await owner.check_ledger()


async def test_the_same_word_again_changes_nothing(api: Api, grace: Api, asking: dict[str, Any]):
    effect = (await api.plan(asking)).body
    first = await approve(grace, effect, reason="fine")
    again = await approve(grace, effect, reason="still fine")
    assert (again.status, again.body) == (200, first.body)
    assert (await reject(grace, effect)).refusal == (409, "illegal_transition")


# --- refused, run out, stale ----------------------------------------------------------------------


async def test_a_refused_effect_is_closed_at_once(
    api: Api, grace: Api, owner: Owner, asking: dict[str, Any]
):
    effect = (await api.plan(asking)).body
    answer = await reject(grace, effect, "not this customer")
    assert (answer.status, answer.body["status"]) == (200, "rejected")
    shown = await api.show(effect)
    assert (shown["state"], shown["reason"]) == ("REFUSED", "approval_rejected")
    assert shown["events"][-1]["actor"] == "person:grace"
    late = await api.dispatch(effect)
    assert not late.body["dispatch"]["owned"]
    assert late.body["reason"] == "approval_rejected"
    await owner.check_ledger()


async def let_run_out(owner: Owner, effect: dict[str, Any]) -> None:
    """Let an approval have been asked for long ago."""
    run_id, _, number = effect["effect_id"].partition(".")
    key = (run_id, int(number))
    await owner.rows(
        "UPDATE approval_event SET at = at - interval '2 days' WHERE run_id = %s AND number = %s",
        *key,
    )
    await owner.rows("ALTER TABLE approval DISABLE TRIGGER approval_goes_on")
    await owner.rows(
        "UPDATE approval SET (requested_at, expires_at) ="
        " ROW (requested_at - interval '2 days', expires_at - interval '2 days')"
        " WHERE run_id = %s AND number = %s",
        *key,
    )
    await owner.rows("ALTER TABLE approval ENABLE TRIGGER approval_goes_on")
    await owner.run_out(effect)


@pytest.mark.parametrize("is_given", [False, True])
async def test_a_sweep_closes_what_nobody_decided_on_in_time(
    api: Api, grace: Api, owner: Owner, sweep: Sweep, asking: dict[str, Any], is_given: bool
):
    effect = (await api.plan(asking)).body
    if is_given:
        await approve(grace, effect)
    await let_run_out(owner, effect)
    assert await queue(grace) == [], "it has run out, swept or not"
    assert await queue(grace, "status=expired") == [effect["effect_id"]]
    assert (await approve(grace, effect)).status == (200 if is_given else 409)
    await sweep.until(api, effect, "REFUSED")
    assert (await api.show(effect))["reason"] == "approval_expired"
    assert await status(api, effect) == "expired"
    assert (await show(api, effect))["events"][-1]["to_status"] == "expired"
    await owner.check_ledger()


async def test_a_dispatch_finds_that_an_approval_ran_out(
    api: Api, grace: Api, owner: Owner, asking: dict[str, Any]
):
    effect = (await api.plan(asking)).body
    await approve(grace, effect)
    await let_run_out(owner, effect)
    assert (await api.dispatch(effect)).refusal == (409, "approval_expired")
    assert (await api.show(effect))["state"] == "REFUSED"
    assert (await show(api, effect))["events"][-1]["to_status"] == "expired"


async def test_how_long_an_approval_waits_is_a_setting(api: Api, asking: dict[str, Any]):
    api.app.state.approval_seconds = 60
    waiting = (await api.plan(asking)).body["approval"]
    waits = moment(waiting["expires_at"]) - moment(waiting["requested_at"])
    assert waits.total_seconds() == 60


async def test_a_deadline_comes_before_an_approvals_end(
    api: Api, owner: Owner, sweep: Sweep, asking: dict[str, Any]
):
    effect = (await api.plan(asking, deadline_seconds=5)).body
    assert moment(effect["due_at"]) < moment(effect["approval"]["expires_at"])
    await owner.pass_deadline(effect)
    await sweep.until(api, effect, "REFUSED")
    assert (await api.show(effect))["reason"] == "the plan's deadline passed"
    assert await status(api, effect) == "stale"


async def test_a_cancelled_effect_is_nobodys_to_approve(
    api: Api, grace: Api, asking: dict[str, Any]
):
    effect = (await api.plan(asking)).body
    assert (await api.cancel(effect)).status == 200
    assert await status(api, effect) == "stale"
    assert await queue(grace) == []
    assert (await approve(grace, effect)).refusal == (409, "illegal_transition")


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ("policy", STALE),
        ("unassigned", STALE),
        ("credential", STALE),
        ("grant", (403, "capability_not_granted")),
        ("retired", (409, "contract_retired")),
    ],
)
async def test_an_approval_holds_for_what_was_approved_alone(
    api: Api, grace: Api, owner: Owner, change: str, refusal: tuple[int, str]
):
    shop = await Shop(api).publish(REFUND | {"credential": "shop-api", "approval": "always"})
    await shop.govern(a_budget(max=5))
    effect = (await shop.plan("orders.refund", order_id="LK-1", amount=1)).body
    late = (await shop.plan("orders.refund", order_id="LK-2", amount=1)).body
    assert (await approve(grace, effect)).status == 200
    match change:
        case "policy":
            await shop.govern(a_budget(max=6))
        case "unassigned":
            path = "/v1/policies/budgeted/assignments"
            await api.http.delete(path, params={"principal": "*"})
        case "credential":
            await api.rotate("shop-api")
        case "grant":
            capability = shop.tools["orders.refund"]["capabilities"][0]
            query = {"principal": "admin", "capability": capability}
            await api.http.delete("/v1/grants", params=query)
        case _:
            await owner.live("orders.refund", "1.0.0", "RETIRED")
    assert (await api.dispatch(effect)).refusal == refusal
    shown = await api.show(effect)
    assert (shown["state"], shown["reason"]) == ("REFUSED", refusal[1])
    assert await status(api, effect) == "stale"
    assert await owner.one("SELECT count(*) FROM budget_slice") == 0, "and nothing was spent"
    # Nor is approved what could not run any more: it can only be rejected.
    assert (await approve(grace, late)).refusal == refusal
    assert (await api.state(late), await status(api, late)) == ("PLANNED", "pending")
    assert (await reject(grace, late)).status == 200
    assert await api.state(late) == "REFUSED"


async def test_an_approval_is_of_no_other_effect(
    api: Api, grace: Api, owner: Owner, asking: dict[str, Any]
):
    """The database binds it: to the tenant, the fingerprint, the contract and the credential."""
    effects = [(await api.plan(asking, effect=name)).body for name in ("one", "two")]
    assert (await approve(grace, effects[0])).status == 200
    assert (await api.dispatch(effects[1])).refusal == WAITS
    for column, value in (
        ("fingerprint", "sha256('other')"),
        ("contract_digest", "'sha256:other'"),
        ("credential_version", "7"),
        ("policy_revision", "7"),
        ("requested_by", "'somebody'"),
    ):
        row = await owner.one("SELECT to_jsonb(approval) FROM approval LIMIT 1")
        columns = ", ".join(value if name == column else name for name in row)
        with pytest.raises(errors.CheckViolation) as caught:
            await owner.rows(
                f"WITH old AS (DELETE FROM approval RETURNING *)"
                f" INSERT INTO approval ({', '.join(row)}) SELECT {columns} FROM old"
            )
        assert caught.value.diag.constraint_name == "approval_is_bound", column


async def test_approvals_and_dispatches_race(
    api: Api, grace: Api, owner: Owner, asking: dict[str, Any]
):
    """Each takes its locks in one order, so that none waits for another in a circle."""
    for number in range(8):
        effect = (await api.plan(asking, effect=f"effect-{number}")).body
        decide = approve if number % 2 else reject
        answers = await asyncio.gather(
            *(api.dispatch(effect) for _ in range(3)),
            decide(grace, effect),
            *(api.dispatch(effect) for _ in range(3)),
        )
        assert all(answer.status in (200, 403) for answer in answers), answers
        sent = [one for one in answers if one.status == 200 and one.body.get("dispatch")]
        assert sum(one.body["dispatch"]["owned"] for one in sent) <= number % 2
    await owner.check_ledger()


# --- the queue ------------------------------------------------------------------------------------


async def test_the_queue_is_read_page_by_page(api: Api, grace: Api, asking: dict[str, Any]):
    planned = [(await api.plan(asking, effect=f"effect-{n}")).body["effect_id"] for n in range(5)]
    found: list[str] = []
    after = ""
    while True:
        page = (await grace.ask("GET", f"/v1/approvals?status=pending&limit=2{after}")).body
        found += [one["effect_id"] for one in page["approvals"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert found == planned, "the longest waiting first"
    await approve(grace, {"effect_id": planned[2]})
    assert await queue(grace, "status=approved") == [planned[2]]
    assert await queue(grace, "limit=500") == planned


async def test_what_is_secret_is_not_shown_to_whom_is_asked(api: Api, grace: Api):
    schema = {"type": "object", "properties": {"card": {"type": "string", "x-sensitive": True}}}
    tool = await api.publish(a_contract(approval="always", input_schema=schema))
    effect = (await api.plan(tool, arguments={"card": "4111111111111111"})).body
    assert (await show(grace, effect))["arguments"] == {"card": {"x-redacted": True}}


async def test_what_nobody_was_asked_about_has_no_approval(api: Api, grace: Api):
    effect = (await api.plan(await api.publish(a_contract()))).body
    for path in (f"/v1/approvals/{effect['effect_id']}", "/v1/approvals/nonsense"):
        answer = await grace.ask("GET", path)
        assert answer.refusal == (404, "not_found")
        assert answer.body["detail"] == "There is no such approval."
    assert (await approve(grace, effect)).refusal == (404, "not_found")


async def test_another_tenants_approval_is_not_there(api: Api, other: Api, asking: dict[str, Any]):
    effect = (await api.plan(asking)).body
    missing = {"effect_id": "019ad000-0000-7000-8000-000000000000.7"}
    for decide in (approve, reject):
        found, none = await decide(other, effect), await decide(other, missing)
        assert found.refusal == (404, "not_found")
        assert found.body == none.body
    assert await queue(other, "limit=50") == []
    assert await status(api, effect) == "pending"

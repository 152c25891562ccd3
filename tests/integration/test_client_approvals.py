"""Approvals and runs through the library and the command line, on the real service."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.app import app
from tallystick import AsyncClient, Client, ToolReference, errors
from tallystick.client import EffectNotOwned, PolicyRevision
from tests.api import Api
from tests.fixtures import Owner
from tests.gated import GET_ORDER, POLICY, REFUND, Shop
from tests.integration.test_lockfile_exchange import listening

RUN = "customer/4711"
LARGE = {"order_id": "LK-1", "amount": 120}


@dataclass
class Worker:
    """An agent's process with one of the two clients, and what it has really done."""

    client: Client | AsyncClient
    tools: Mapping[str, dict[str, Any]]
    done: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def ask(self, method: str, *arguments: Any, **terms: Any) -> Any:
        """Call a method of the client, blocking in a thread or awaited."""
        asked: Callable[..., Any] = getattr(self.client, method)
        if isinstance(self.client, AsyncClient):
            return await asked(*arguments, **terms)
        return await asyncio.to_thread(asked, *arguments, **terms)

    async def refund(self, effect: str = "refund-1", **changes: Any) -> Any:
        """Refund, as an agent would: under one name however often it asks."""

        def body(entered: Any) -> Any:
            self.done.append(entered.arguments)
            return {"refunded": True}

        async def awaited(entered: Any) -> Any:
            return body(entered)

        work = awaited if isinstance(self.client, AsyncClient) else body
        reference = ToolReference.from_json(self.tools["orders.refund"])
        terms = {"run": RUN, "effect": effect}
        return await self.ask("call", reference, LARGE | changes, work, **terms)


@pytest.fixture
async def url(api: Api) -> AsyncGenerator[str]:
    async with listening(api.app) as url:
        yield url


@pytest.fixture
async def shop(api: Api) -> Shop:
    shop = await Shop(api).publish(GET_ORDER, REFUND)
    await shop.govern(POLICY)
    return shop


@asynccontextmanager
async def working(kind: str, url: str, token: str, shop: Shop) -> AsyncGenerator[Worker]:
    if kind == "AsyncClient":
        async with AsyncClient(url, token, retry_seconds=0) as client:
            yield Worker(client, shop.tools)
    else:
        with Client(url, token, retry_seconds=0) as client:
            yield Worker(client, shop.tools)


@pytest.fixture(params=["Client", "AsyncClient"])
async def worker(
    request: pytest.FixtureRequest, api: Api, url: str, shop: Shop
) -> AsyncGenerator[Worker]:
    async with working(request.param, url, api.token, shop) as worker:
        await worker.ask(
            "call",
            ToolReference.from_json(shop.tools["orders.get_order"]),
            {"order_id": "LK-1"},
            _looked if request.param == "Client" else _looked_later,
            run=RUN,
            effect="look-1",
        )
        yield worker


def _looked(_effect: Any) -> Any:
    return {"order_id": "LK-1", "total": 500}


async def _looked_later(effect: Any) -> Any:
    return _looked(effect)


@pytest.fixture
async def grace(api: Api, owner: Owner) -> AsyncGenerator[Api]:
    """A person who may approve, and is not the one who asks."""
    grace = api.speaking_for(await owner.token("default", "approver", principal="grace"))
    async with grace.http:
        yield grace


async def waiting(worker: Worker) -> str:
    """Ask for a refund that a person has to approve, and return the approval's id."""
    with pytest.raises(errors.NeedsHuman) as raised:
        await worker.refund()
    facts = raised.value.facts
    assert (facts["status"], facts["rule"]) == ("pending", "large-refunds-need-a-person")
    return str(facts["approval_id"])


async def decide(person: Api, approval_id: str, word: str, **body: Any) -> None:
    answer = await person.ask("POST", f"/v1/approvals/{approval_id}/{word}", body)
    assert answer.status == 200, answer


# --- the library ----------------------------------------------------------------------------------


async def test_what_a_person_approves_is_done_once(worker: Worker, grace: Api):
    approval_id = await waiting(worker)
    assert await waiting(worker) == approval_id, "asking again does not ask a second time"
    assert worker.done == []
    await decide(grace, approval_id, "approve", reason="It is hers.")
    assert await worker.refund() == {"refunded": True}
    assert await worker.refund() == {"refunded": True}
    assert worker.done == [LARGE]
    approval = await worker.ask("approval", approval_id)
    assert (approval.status, approval.decided_by) == ("consumed", "grace")
    assert (approval.reason, approval.rule) == ("It is hers.", "large-refunds-need-a-person")
    entry = await worker.ask("show", approval_id)
    assert (entry.state, entry.policy) == ("SUCCEEDED", PolicyRevision("refunds", 1))
    assert entry.approval is not None
    assert entry.approval.status == "consumed"


async def test_what_a_person_rejects_is_never_done(worker: Worker, grace: Api):
    approval_id = await waiting(worker)
    await decide(grace, approval_id, "reject", reason="It is not hers.")
    with pytest.raises(EffectNotOwned) as raised:
        await worker.refund()
    assert (raised.value.state, raised.value.reason) == ("REFUSED", "approval_rejected")
    assert raised.value.said == "It is not hers."
    assert "(approval_rejected: It is not hers.)" in str(raised.value)
    approval = await worker.ask("approval", approval_id)
    assert (approval.status, approval.reason) == ("rejected", "It is not hers.")
    assert worker.done == []


async def test_what_was_approved_is_all_that_runs(worker: Worker, grace: Api):
    approval_id = await waiting(worker)
    await decide(grace, approval_id, "approve")
    with pytest.raises(errors.EffectConflict):
        await worker.refund(amount=500)
    with pytest.raises(errors.NeedsHuman):
        await worker.refund("refund-2")
    assert worker.done == []


async def test_a_run_tells_on_whose_behalf_it_acts_and_what_was_refused(worker: Worker):
    await worker.ask("begin_run", RUN, {"customer_id": "C-1"})
    await worker.ask("begin_run", RUN, {"customer_id": "C-1"})
    with pytest.raises(errors.EffectConflict):
        await worker.ask("begin_run", RUN, {"customer_id": "C-2"})
    with pytest.raises(errors.PolicyBlocked) as raised:
        await worker.refund(order_id="LK-2", amount=1)
    assert raised.value.facts["rule"] == "not-more-than-the-order"
    trace = await worker.ask("run", RUN)
    assert trace.subject == {"customer_id": "C-1"}
    told = [(one["kind"], one["tool"], one.get("true_code")) for one in trace.entries]
    assert told == [
        ("effect", "orders.get_order", None),
        ("refusal", "orders.refund", "policy_blocked"),
    ]
    with pytest.raises(errors.NotFound):
        await worker.ask("run", "another run")


# --- the command line -----------------------------------------------------------------------------


async def test_a_person_judges_on_the_command_line(api: Api, worker: Worker, grace: Api, url: str):
    approval_id = await waiting(worker)

    async def registry(*arguments: str, token: str = grace.token) -> Any:
        env = {"TALLYSTICK_URL": url, "TALLYSTICK_TOKEN": token, "COLUMNS": "200"}
        return await asyncio.to_thread(CliRunner().invoke, app, arguments, env=env)

    listed = await registry("approvals", "list")
    assert approval_id in listed.stdout
    assert '"amount": 120' in listed.stdout
    shown = await registry("approvals", "show", approval_id)
    assert "orders.refund@1.0.0  pending  expires in 23 h" in shown.stdout
    assert "large-refunds-need-a-person" in shown.stdout
    assert "refunds revision 1" in shown.stdout
    own = await registry("approvals", "approve", approval_id, token=api.token)
    assert (own.exit_code, "[forbidden]" in own.stderr) == (1, True)
    approved = await registry("approvals", "approve", approval_id, "--reason", "It is hers.")
    assert "approved orders.refund@1.0.0" in approved.stdout
    again = await registry("approvals", "reject", approval_id, "--reason", "It is not.")
    assert "[illegal_transition]" in again.stderr
    assert await worker.refund() == {"refunded": True}
    assert (await registry("approvals", "list")).stdout == "No approval matches.\n"
    trace = await registry("runs", "show", RUN)
    assert "needs_human: consumed, approved by grace" in trace.stdout
    assert "SUCCEEDED" in trace.stdout
    events = json.loads((await registry("approvals", "show", approval_id, "--json")).stdout)
    steps = [event["to_status"] for event in events["events"]]
    assert steps == ["pending", "approved", "consumed"]

"""Two tenants of one service: neither can tell whether the other has something, nor touch it."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from psycopg import errors
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed, Identifier
from psycopg.types.json import Jsonb

from server.tables import SCHEMA
from tests.api import Api
from tests.bookings import Reverse, keeping_books, listed
from tests.builders import ARGUMENTS, SEND_INVOICE, a_contract, a_contract_of, a_policy
from tests.fixtures import Owner
from tests.routes import places
from tests.sealing import seal_all
from tests.signers import Signer

# What answers everybody alike, with or without a token.
SIGNED = "/v1/webhooks/{tenant}/{source}"  # asked in test_webhooks, by signature
OPEN = {"/healthz", "/readyz", "/docs", "/openapi.json", "/docs/static", SIGNED}
REASON = {"reason": "because"}


@dataclass(frozen=True)
class Names:
    """How things are called: those of the first tenant, or those of nobody."""

    tool: dict[str, Any]
    credential: str
    principal: str
    capability: str
    run: str
    effect_id: str
    approval_id: str
    pin_id: str
    token_id: str
    key_id: str
    public_key: str
    policy: str
    shared_with: str
    owner: str
    worker: dict[str, str]

    def questions(self) -> dict[tuple[str, str], list[tuple[str, Any]]]:
        """Return, for each route that is given a name, the questions to ask it."""
        name, effect, word = self.tool["name"], f"/v1/effects/{self.effect_id}", {"to": "FAILED"}
        word |= {"reason": "seen", "evidence": "a ticket"}
        outcome = {"worker_id": self.worker["worker_id"], "fence": 1, "outcome": "succeeded"}
        told = {"answer": "applied", "observed_at": "2026-11-30T12:00:00Z", "detail": "seen"}
        plan = {"run": self.run, "effect": "effect-1", "tool": self.tool, "arguments": ARGUMENTS}
        pin = {"name": name, "version": "2.1", "holder": "queue", "ttl_seconds": 60}
        offer = {"owner": self.owner, "name": name, "version": "2.1"}
        holds = f"principal={self.principal}&capability={self.capability}"
        contract, rollout = f"/v1/contracts/{name}/2.1", f"/v1/rollouts/{name}/2.1"
        policy, principal = f"/v1/policies/{self.policy}", {"principal": self.principal}
        approval = f"/v1/approvals/{self.approval_id}"
        return {
            # The first one: later ones are refused, and leave a trace in a run of the caller's own.
            ("GET", "/v1/runs/{run:path}"): [(f"/v1/runs/{self.run}", None)],
            ("GET", "/v1/contracts"): [(f"/v1/contracts?name={name}", None)],
            ("GET", "/v1/contracts/{name}/{version}"): [(contract, None)],
            ("POST", "/v1/contracts/{name}/{version}/attest"): [(f"{contract}/attest", REASON)],
            ("POST", "/v1/compare"): [
                ("/v1/compare", {"old": f"{name}@2.1", "new": {}}),
                ("/v1/compare", {"old": {}, "new": f"{name}@2.1"}),
            ],
            ("POST", "/v1/resolve"): [("/v1/resolve", self.tool)],
            ("POST", "/v1/contracts/{name}/{version}/shares"): [
                (f"{contract}/shares", {"tenant": self.shared_with})
            ],
            ("GET", "/v1/contracts/{name}/{version}/shares"): [(f"{contract}/shares", None)],
            ("POST", "/v1/contracts/{name}/{version}/shares/{tenant}/revoke"): [
                (f"{contract}/shares/{self.shared_with}/revoke", REASON)
            ],
            ("GET", "/v1/shares"): [(f"/v1/shares?owner={self.owner}", None)],
            ("POST", "/v1/shares/accept"): [("/v1/shares/accept", offer)],
            ("POST", "/v1/shares/withdraw"): [("/v1/shares/withdraw", offer | REASON)],
            ("POST", "/v1/credentials/{name}/rotate"): [
                (f"/v1/credentials/{self.credential}/rotate", REASON)
            ],
            ("POST", "/v1/credentials/{name}/revoke"): [
                (f"/v1/credentials/{self.credential}/revoke", REASON)
            ],
            ("POST", "/v1/pins"): [("/v1/pins", pin)],
            ("DELETE", "/v1/pins/{pin_id}"): [(f"/v1/pins/{self.pin_id}", None)],
            ("GET", "/v1/grants"): [(f"/v1/grants?principal={self.principal}", None)],
            ("DELETE", "/v1/grants"): [(f"/v1/grants?{holds}", None)],
            ("POST", "/v1/contracts/{name}/{version}/signatures"): [
                (f"{contract}/signatures", {"key_id": self.key_id, "signature": "00" * 64})
            ],
            ("POST", "/v1/keys/{key_id}/revoke"): [(f"/v1/keys/{self.key_id}/revoke", REASON)],
            ("GET", "/v1/policies"): [(f"/v1/policies?in_force_for={self.principal}", None)],
            ("GET", "/v1/policies/{policy}"): [(policy, None), (f"{policy}?revision=1", None)],
            ("POST", "/v1/policies/{policy}/assignments"): [(f"{policy}/assignments", principal)],
            ("DELETE", "/v1/policies/{policy}/assignments"): [
                (f"{policy}/assignments?principal={self.principal}", None)
            ],
            ("POST", "/v1/tokens/{token_id}/revoke"): [(f"/v1/tokens/{self.token_id}/revoke", {})],
            ("POST", "/v1/tokens/{token_id}/rotate"): [(f"/v1/tokens/{self.token_id}/rotate", {})],
            ("POST", "/v1/rollouts/{name}/{version}/retire"): [(f"{rollout}/retire", REASON)],
            ("POST", "/v1/rollouts/{name}/{version}/rollback"): [(f"{rollout}/rollback", REASON)],
            ("POST", "/v1/effects"): [
                ("/v1/effects", plan),
                ("/v1/effects", plan | {"key": "key-1", "dispatch": self.worker}),
                ("/v1/effects", plan | {"origin": "queue"}),
            ],
            ("GET", "/v1/effects"): [
                (f"/v1/effects?run={self.run}", None),
                (f"/v1/effects?tool={name}", None),
                (f"/v1/effects?after={self.effect_id}", None),
            ],
            ("GET", "/v1/effects/{effect_id}"): [(effect, None)],
            ("POST", "/v1/effects/{effect_id}/dispatch"): [
                (f"{effect}/dispatch", self.worker),
                (f"{effect}/dispatch", self.worker | {"tool": self.tool}),
            ],
            ("POST", "/v1/effects/{effect_id}/outcome"): [
                (f"{effect}/outcome", outcome | {"result": {"invoice_id": "I-1"}}),
                (f"{effect}/outcome", outcome | {"fence": 7}),
            ],
            ("POST", "/v1/effects/{effect_id}/cancel"): [(f"{effect}/cancel", REASON)],
            ("POST", "/v1/effects/{effect_id}/resolve"): [(f"{effect}/resolve", word)],
            ("POST", "/v1/effects/{effect_id}/evidence"): [(f"{effect}/evidence", told)],
            ("POST", "/v1/effects/{effect_id}/retry"): [(f"{effect}/retry", REASON)],
            ("POST", "/v1/effects/{effect_id}/withdraw"): [(f"{effect}/withdraw", REASON)],
            ("POST", "/v1/effects/{effect_id}/migrate"): [
                (f"{effect}/migrate", REASON | {"version": "2.1"})
            ],
            ("GET", "/v1/quarantine"): [
                (f"/v1/quarantine?tool={name}", None),
                (f"/v1/quarantine?after={self.effect_id}", None),
            ],
            ("GET", "/v1/quarantine/{effect_id}"): [(f"/v1/quarantine/{self.effect_id}", None)],
            ("GET", "/v1/approvals"): [(f"/v1/approvals?after={self.approval_id}", None)],
            ("GET", "/v1/approvals/{approval_id}"): [(approval, None)],
            ("POST", "/v1/approvals/{approval_id}/approve"): [(f"{approval}/approve", {})],
            ("POST", "/v1/approvals/{approval_id}/reject"): [(f"{approval}/reject", REASON)],
        }

    def makings(self) -> dict[tuple[str, str], tuple[str, Any]]:
        """Return, for each route that makes something, how to make it under these names."""
        token = {"name": self.principal, "roles": ["runtime"], "expires_in_seconds": 60}
        grant = {"principal": self.principal, "capability": self.capability}
        heartbeat = f"/v1/workers/{self.worker['worker_id']}/heartbeat"
        document = a_contract(name=self.tool["name"], credential=self.credential)
        return {
            ("POST", "/v1/credentials"): ("/v1/credentials", {"name": self.credential}),
            ("POST", "/v1/contracts"): ("/v1/contracts", {"document": document}),
            ("POST", "/v1/grants"): ("/v1/grants", grant),
            ("POST", "/v1/keys"): ("/v1/keys", {"name": "key", "public_key": self.public_key}),
            ("POST", "/v1/policies"): ("/v1/policies", {"text": a_policy(self.policy)}),
            ("POST", "/v1/tokens"): ("/v1/tokens", token),
            ("PUT", "/v1/runs/{run:path}"): (f"/v1/runs/{self.run}", {"subject": {"id": "C-1"}}),
            ("PUT", "/v1/workers/{worker_id}/heartbeat"): (heartbeat, {"label": "label"}),
        }

    def hidden(self, answer: httpx.Response) -> tuple[int, str]:
        """Return an answer without the name that it was asked about, and what is always new."""
        text = answer.text
        for name in (
            self.tool["name"],
            self.credential,
            self.principal,
            self.pin_id,
            self.token_id,
            self.effect_id,
            self.approval_id,
            self.run,
            self.key_id,
            self.public_key,
            self.policy,
            self.worker["worker_id"],
            f" of {self.owner}.",
        ):
            text = text.replace(name, "<name>")
        return answer.status_code, NEW.sub("<new>", text)


# A time, an identifier, a token and its prefix, a digest.
NEW = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|tk_[\w-]{8,43}|sha256:[0-9a-f]{64}"
)
NOTHING = (
    {"contracts": []},
    {"grants": []},
    {"offers": []},
    {"policies": []},
    {"effects": [], "next": None},
    {"approvals": [], "next": None},
)

# What takes no name: it tells of the caller's own.
OWN = {
    ("GET", "/v1/credentials"),
    ("GET", "/v1/keys"),
    ("GET", "/v1/pins"),
    ("GET", "/v1/signature-policy"),
    ("GET", "/v1/tokens"),
    ("GET", "/v1/whoami"),
    ("GET", "/v1/workers"),
    ("GET", "/metrics"),
    ("GET", "/v1/audit/export"),
    ("GET", "/v1/audit/keys"),
    ("GET", "/v1/audit/seals"),
    ("POST", "/v1/signature-policy"),
}


@pytest.fixture
async def theirs(api: Api) -> Names:
    """What the first tenant has: one of each."""
    tool = await api.publish(a_contract())
    await api.ask("PUT", f"/v1/workers/{api.worker_id}/heartbeat", {"label": "theirs"})
    effect = await api.dispatched(tool, key="key-1")
    asks = await api.publish(a_contract(name="billing.ask", approval="always"))
    asked = await api.plan(asks, effect="asks")
    pin = {"name": tool["name"], "version": "2.1", "holder": "queue", "ttl_seconds": 60}
    pin_id = (await api.ask("POST", "/v1/pins", pin)).body["pin_id"]
    grant = {"principal": "agent", "capability": "invoice:write:{tenant}"}
    assert (await api.ask("POST", "/v1/grants", grant)).status == 201
    public_key = Signer(7).public_key
    key = {"name": "theirs", "public_key": public_key}
    await api.ask("POST", f"/v1/contracts/{tool['name']}/2.1/shares", {"tenant": "third"})
    assert (await api.ask("POST", "/v1/policies", {"text": a_policy()})).status == 201
    assigned = "/v1/policies/safe-refund/assignments"
    assert (await api.ask("POST", assigned, {"principal": "agent"})).status == 201
    return Names(
        tool=tool,
        credential="billing-api",
        principal="agent",
        capability="invoice:write:default",
        run="run-1",
        effect_id=effect["effect_id"],
        approval_id=asked.body["effect_id"],
        pin_id=pin_id,
        key_id=(await api.ask("POST", "/v1/keys", key)).body["key_id"],
        token_id=(await api.ask("GET", "/v1/tokens")).body["tokens"][0]["token_id"],
        public_key=public_key,
        policy="safe-refund",
        shared_with="third",
        owner="default",
        worker=api.asking(),
    )


NOBODYS = Names(
    tool={
        "name": "billing.send_invoicf",
        "version": "2.1.0",
        "schema_hash": "sha256:" + "0" * 64,
        "capabilities": ["invoice:write:default"],
        "effect_class": "IDEMPOTENT",
        "credential_version": 1,
    },
    credential="billing-apj",
    principal="nobody",
    capability="invoice:write:default",
    run="run-9",
    effect_id=f"{uuid4()}.4711",
    approval_id=f"{uuid4()}.4712",
    pin_id=str(uuid4()),
    token_id=str(uuid4()),
    key_id=Signer(8).key_id,
    public_key=Signer(8).public_key,
    policy="safe-refunf",
    shared_with="fourth",
    owner="unknown",
    worker={"worker_id": str(uuid4()), "nonce": str(uuid4())},
)


async def test_not_yours_is_as_if_not_there(api: Api, other: Api, owner: Owner, theirs: Names):
    await other.ask("GET", "/v1/whoami")  # its use is noted, once a minute
    before = await owner.dump(traces=False)
    real, made_up = theirs.questions(), NOBODYS.questions()
    asked = {(one.method, one.template) for one in places(api.app) if one.template not in OPEN}
    assert asked == real.keys() | theirs.makings().keys() | OWN, "a new route is asked here too"
    for route, questions in real.items():
        for (path, body), (path_of_none, body_of_none) in zip(
            questions, made_up[route], strict=True
        ):
            found = await other.http.request(route[0], path, json=body)
            missing = await other.http.request(route[0], path_of_none, json=body_of_none)
            assert theirs.hidden(found) == NOBODYS.hidden(missing), (route, body)
            assert found.status_code == 404 or found.json() in NOTHING, (route, found.text)
    assert await owner.dump(traces=False) == before


async def test_what_another_has_of_that_name_is_made_as_any(other: Api, theirs: Names):
    made_up = NOBODYS.makings()
    for (method, template), (path, body) in theirs.makings().items():
        path_of_none, body_of_none = made_up[method, template]
        named = await other.http.request(method, path, json=body)
        free = await other.http.request(method, path_of_none, json=body_of_none)
        assert theirs.hidden(named) == NOBODYS.hidden(free), template
        assert named.status_code in (200, 201), (template, named.text)


async def test_each_tenant_has_its_own_of_the_same_name(api: Api, other: Api, theirs: Names):
    lists = ("contracts", "credentials", "grants", "pins", "policies", "workers", "effects")
    assert len((await other.ask("GET", "/v1/tokens")).body["tokens"]) == 1
    paths = [*(f"/v1/{name}" for name in lists), f"/v1/effects/{theirs.effect_id}"]
    for name, path in zip(lists, paths, strict=False):
        assert (await other.ask("GET", path)).body[name] == [], path
        assert (await api.ask("GET", path)).body[name] != [], path
    before = [(await api.http.get(path)).content for path in paths]
    tool = await other.publish(a_contract(effect_class="NON_RETRYABLE", idempotency=None))
    assert tool["capabilities"] == ["invoice:write:other"]
    await other.rotate("billing-api")
    beat = f"/v1/workers/{api.worker_id}/heartbeat"
    assert (await other.ask("PUT", beat, {"label": "ours"})).status == 200
    assert (await other.ask("POST", f"/v1/contracts/{tool['name']}/2.1/attest", {})).status == 200
    other.worker_id = api.worker_id
    effect = await other.dispatched(tool | {"credential_version": 2}, key="key-1")
    assert effect["created"]
    assert effect["effect_id"] != theirs.effect_id
    assert effect["run_id"] != theirs.effect_id.partition(".")[0]
    assert (await other.report(effect, "unknown")).status == 200
    assert [(await api.http.get(path)).content for path in paths] == before


async def test_a_capability_of_another_tenant_gives_nothing(api: Api, other: Api, theirs: Names):
    tool = await other.publish(a_contract())
    await other.grant("invoice:write:default")
    theirs_in_ours = tool | {"capabilities": theirs.tool["capabilities"]}
    answer = await other.ask("POST", "/v1/resolve", theirs_in_ours)
    assert answer.refusal == (403, "capability_not_granted")
    assert (await api.ask("POST", "/v1/resolve", theirs.tool)).status == 200


# --- the tables -----------------------------------------------------------------------------------

OF_NO_TENANT = {"audit_progress", "legal_transition", "service_key"}
SHARED = {"contract", "contract_closing", "contract_content", "contract_state"}
"""Where the tenant that a contract is shared with reads a row of another, one of each."""
CARD: dict[str, Any] = {
    "type": "object",
    "properties": {"card": {"type": "string", "x-sensitive": True}},
    "required": ["card"],
}


@pytest.fixture
async def full(api: Api, owner: Owner, theirs: Names) -> Names:
    """The first tenant with a row in every table."""
    tool = theirs.tool
    late = await api.dispatched(tool, effect="late")
    for outcome in ("unknown", "succeeded"):
        await api.report(late, outcome)
    await api.cancel((await api.plan(tool, effect="cancelled")).body)
    sent = await api.dispatched(await api.publish(a_contract_of("NON_RETRYABLE")), effect="sent")
    for outcome in ("failed", "succeeded"):
        await api.report(sent, outcome)
    assert (await api.resolve(sent, "FAILED")).body["proposal"], "it came back, and takes two"
    card = await api.publish(a_contract(name="billing.card", input_schema=CARD))
    assert (await api.plan(card, effect="card", arguments={"card": "4111"})).status == 201
    await governed(api)
    await api.publish(a_contract(version="3.0"))
    assert (await api.retire(tool)).code == "contract_in_use", "and it has a closing mark"
    await api.publish(listed(name="billing.listed"))
    async with keeping_books() as bookings:
        await Reverse(api, owner, bookings.source).once()
    path = f"/v1/contracts/{tool['name']}/2.1/signatures"
    assert (await api.ask("POST", path, Signer(7).sign(SEND_INVOICE))).status == 201
    required = {"required": True, "confirm": True}
    assert (await api.ask("POST", "/v1/signature-policy", required)).status == 200
    await accepted_of(owner, api)
    await seal_all(api)
    return theirs


GOVERNED = """\
version: "0.2"
id: governed
title: Of everything something
defaults: {unknown_tools: block}
tools:
  billing.governed: {risk: write}
facts:
  - {name: invoice, from_tool: billing.governed, path: invoice_id}
budgets:
  limits:
    - {name: invoices, tools: [billing.governed], max: 10, per: tenant}
"""


async def governed(api: Api) -> None:
    """Let a call of the first tenant run under a policy, and another one be refused."""
    tool = await api.publish(a_contract(name="billing.governed"))
    assert (await api.ask("POST", "/v1/policies", {"text": GOVERNED})).status == 201
    path = "/v1/policies/governed/assignments"
    assert (await api.ask("POST", path, {"principal": "admin"})).status == 201
    done = await api.dispatched(tool, effect="governed")
    await api.report(done, "succeeded", result={"invoice_id": "I-1"})
    assert (await api.plan(tool, effect="refused", arguments={})).code == "invalid_arguments"
    subject = {"subject": {"customer_id": "C-42"}}
    assert (await api.ask("PUT", "/v1/runs/run-1", subject)).status == 201
    unassigned = {"principal": "admin"}
    assert (await api.http.delete(path, params=unassigned)).status_code in (200, 204)


async def accepted_of(owner: Owner, api: Api) -> None:
    """Let the first tenant accept a version of another one."""
    giver = api.speaking_for(await owner.tenant("giver"))
    async with giver.http:
        await giver.publish(a_contract(name="billing.given"))
        share = {"tenant": "default"}
        await giver.ask("POST", "/v1/contracts/billing.given/2.1/shares", share)
    offer = {"owner": "giver", "name": "billing.given", "version": "2.1"}
    assert (await api.ask("POST", "/v1/shares/accept", offer)).status == 200


class Service:
    """What the service can do for one tenant, in a database where another has rows."""

    def __init__(
        self, connection: psycopg.Connection[TupleRow], tenant_id: UUID, another: UUID
    ) -> None:
        self.connection = connection
        self.tenant_id = tenant_id
        self.another = another

    def touched(self, statement: Composed, *values: Any) -> int:
        """Return how many rows a statement finds or changes; 0 where it is denied."""
        setting = "SELECT set_config('tallystick.tenant', %s, true)"
        with (
            suppress(errors.InsufficientPrivilege),
            self.connection.transaction(force_rollback=True),
        ):
            self.connection.execute("SET LOCAL ROLE tallystick_service")
            self.connection.execute(setting, [str(self.tenant_id)])
            return self.connection.execute(statement, values).rowcount
        return 0

    def seen(self, table: str) -> int:
        """Count the rows of another tenant that are visible."""
        look = SQL("SELECT tenant_id FROM {} WHERE tenant_id = %s").format(Identifier(table))
        return self.touched(look, self.another)

    def inserted(self, table: str, row: dict[str, Any]) -> int:
        """Count the rows that can be written for another tenant."""
        paste = SQL("INSERT INTO {0} SELECT (jsonb_populate_record(NULL::{0}, %s)).*")
        return self.touched(paste.format(Identifier(table)), Jsonb(row))

    def updated(self, table: str, column: str) -> int:
        """Count the rows of another tenant whose column can be written."""
        write = SQL("UPDATE {0} SET {1} = {1} WHERE tenant_id = %s")
        return self.touched(write.format(Identifier(table), Identifier(column)), self.another)

    def given_away(self, table: str) -> int:
        """Count the rows that can be made another tenant's."""
        give = SQL("UPDATE {} SET tenant_id = %s").format(Identifier(table))
        return self.touched(give, self.another)

    def deleted(self, table: str) -> int:
        """Count the rows of another tenant that can be deleted."""
        delete = SQL("DELETE FROM {} WHERE tenant_id = %s").format(Identifier(table))
        return self.touched(delete, self.another)


@asynccontextmanager
async def a_service(owner: Owner, url: str, tenant: str) -> AsyncGenerator[Service]:
    """Give the service of a tenant, in sight of the first one; nothing is changed in the end."""
    named = "SELECT tenant_id FROM tenant WHERE slug = %s"
    asking, another = await owner.one(named, tenant), await owner.one(named, "default")
    before = await owner.dump()
    with psycopg.connect(url, autocommit=True) as connection:
        yield Service(connection, asking, another)
    assert await owner.dump() == before


async def test_every_table_is_held_to_its_tenant(owner: Owner):
    """A table without a policy fails, and one that nobody declared."""
    held = await owner.rows(
        "SELECT relname::text FROM pg_class WHERE relrowsecurity AND EXISTS (SELECT FROM pg_policy"
        " WHERE polrelid = pg_class.oid AND polname = 'tenant_isolation' AND polcmd = '*'"
        " AND pg_get_expr(polqual, polrelid) = '(tenant_id = current_tenant())')"
    )
    assert set(SCHEMA.tables) == {name for (name,) in held} | OF_NO_TENANT
    assert set(await owner.tables()) == set(SCHEMA.tables) | {"alembic_version"}


async def test_no_row_of_another_tenant_is_seen_or_written(
    other: Api, owner: Owner, database_url: str, full: Names
):
    await other.publish(a_contract())
    assert full.shared_with != "other"
    async with a_service(owner, database_url, "other") as service:
        for table in SCHEMA.tables.keys() - OF_NO_TENANT:
            await nothing_is_touched(owner, service, table)
            assert service.seen(table) == 0, table


async def nothing_is_touched(owner: Owner, service: Service, table: str) -> None:
    """Hold one table to it that no row of the other tenant can be written."""
    query = f"SELECT to_jsonb(row) FROM {table} AS row WHERE tenant_id = %s LIMIT 1"
    found = await owner.rows(query, service.another)
    assert found, f"let `full` make a row in {table}"
    assert service.inserted(table, found[0][0]) == 0, table
    for column in SCHEMA.tables[table].columns:
        assert service.updated(table, column.name) == 0, (table, column)
    assert service.given_away(table) == 0, table
    assert service.deleted(table) == 0, table


async def test_of_what_is_shared_the_contract_is_read_and_nothing_else(
    api: Api, owner: Owner, database_url: str, full: Names
):
    """What the one sees who accepted it: one version of three, and what is said of it."""
    assert full.shared_with == "third"
    third = api.speaking_for(await owner.tenant("third"))
    async with a_service(owner, database_url, "third") as service:
        for table in SHARED:
            assert service.seen(table) == 0, "nothing before it is accepted"
    offer = {"owner": "default", "name": full.tool["name"], "version": "2.1"}
    async with third.http:
        assert (await third.ask("POST", "/v1/shares/accept", offer)).status == 200
    async with a_service(owner, database_url, "third") as service:
        for table in SCHEMA.tables.keys() - OF_NO_TENANT:
            await nothing_is_touched(owner, service, table)
            assert service.seen(table) == (table in SHARED), table
        lock = SQL("SELECT FROM contract_state WHERE tenant_id = %s FOR SHARE").format()
        assert service.touched(lock, service.another) == 1, "a dispatch holds it"

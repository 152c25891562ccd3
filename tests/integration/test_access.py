"""Who may ask: nobody without a token, and no tenant after what is another's."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest

from server.bootstrap import token_hash
from server.gatehouse import Authenticator
from tests.api import Api
from tests.builders import ARGUMENTS, a_contract
from tests.fixtures import Owner
from tests.problems import problem_in
from tests.routes import Place, places

OPEN = {"/healthz", "/readyz", "/docs", "/openapi.json", "/docs/static"}


@pytest.fixture
async def nobody(api: Api) -> AsyncGenerator[httpx.AsyncClient]:
    """Who speaks without a token."""
    async with api.speaking_for("").http as http:
        yield http


async def test_no_route_answers_without_a_token(api: Api, nobody: httpx.AsyncClient, owner: Owner):
    before = await owner.counts()
    closed = [place for place in places(api.app) if place.template not in OPEN]
    assert len(closed) > 20
    answers: dict[str, set[str]] = {"absent": set(), "wrong": set()}
    for place in [*closed, Place("GET", "/nowhere", False), Place("POST", "/", False)]:
        for kind, headers in (
            ("absent", {}),
            ("absent", {"Authorization": ""}),
            ("absent", {"Authorization": "Bearer"}),
            ("absent", {"Authorization": "Bearer  "}),
            ("absent", {"Authorization": f"Basic {api.token}"}),
            ("absent", {"Authorization": api.token}),
            ("wrong", {"Authorization": f"Bearer {api.token}x"}),
            ("wrong", {"Authorization": f"Bearer {api.token[:-1]}"}),
            ("wrong", {"Authorization": f"Bearer {api.token.swapcase()}"}),
            ("wrong", {"Authorization": f"Bearer {token_hash(api.token).hex()}"}),
            ("wrong", {"Authorization": "Bearer \xe9"}),
            ("wrong", {"Authorization": "Bearer ' OR true --"}),
        ):
            raw = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
            response = await nobody.request(place.method, place.path, headers=raw, content=b"{")
            assert response.status_code == 401, (place, headers)
            assert problem_in(response)["code"] == "unauthenticated"
            answers[kind].add(response.text)
    assert [len(same) for same in answers.values()] == [1, 1], "the answer tells nothing else"
    assert await owner.counts() == before


async def test_what_is_open_to_everybody(api: Api, nobody: httpx.AsyncClient):
    told = {place.template for place in places(api.app)}
    assert told >= OPEN
    page = await nobody.get("/docs")
    scripts = [word for word in page.text.split('"') if word.startswith("/docs/static/")]
    assert len(scripts) >= 2
    for path in ("/healthz", "/readyz", "/docs", "/openapi.json", *scripts):
        response = await nobody.get(path)
        assert response.status_code == 200, path
        assert api.token not in response.text


async def test_no_spelling_of_an_open_address_opens_another(nobody: httpx.AsyncClient):
    for path in (
        "/healthz/",
        "//healthz",
        "/HEALTHZ",
        "/healthz/%2e%2e/metrics",
        "/docs/static/..%2f..%2fmetrics",
        "/docs/static/..%2f..%2fv1%2fwhoami",
        "/docs/static/%2e%2e/%2e%2e/etc/passwd",
        "/docs/static//etc/passwd",
        "/docs/staticx/v1/whoami",
        "/v1/whoami?/healthz",
        "/v1/whoami#/healthz",
        "/v1/whoami;/docs/static/",
    ):
        response = await nobody.get(path)
        assert response.status_code in (401, 404), path
        problem_in(response)


async def test_a_token_is_kept_as_its_hash_alone(api: Api, owner: Owner):
    await api.dispatched(await api.publish(a_contract()))
    dump = await owner.dump()
    assert api.token not in dump
    assert api.token.removeprefix("tk_") not in dump
    assert api.token.encode().hex() not in dump
    assert token_hash(api.token).hex() in dump


async def test_any_case_of_the_scheme_is_one(api: Api, nobody: httpx.AsyncClient):
    """RFC 9110, 11.1."""
    for scheme in ("Bearer", "bearer", "BEARER"):
        headers = {"Authorization": f"{scheme} {api.token}"}
        assert (await nobody.get("/v1/whoami", headers=headers)).status_code == 200


async def test_a_revoked_token_opens_nothing(api: Api, other: Api, owner: Owner):
    assert (await other.ask("GET", "/v1/whoami")).body["tenant"] == "other"
    hashed = token_hash(other.token)
    revoke = "UPDATE api_token SET revoked_at = clock_timestamp() WHERE token_hash = %s"
    await owner.rows(revoke, hashed)
    # A new one has heard of no token yet, as after the few seconds that the old one believes it.
    api.app.state.authenticator = Authenticator(api.app.state.database)
    assert (await other.ask("GET", "/v1/whoami")).refusal == (401, "unauthenticated")
    assert (await api.ask("GET", "/v1/whoami")).body["tenant"] == "default"


# --- two tenants ----------------------------------------------------------------------------------

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
    pin_id: str
    worker: dict[str, str]

    def questions(self) -> dict[tuple[str, str], list[tuple[str, Any]]]:
        """Return, for each route that is given a name, the questions to ask it."""
        name, effect, word = self.tool["name"], f"/v1/effects/{self.effect_id}", {"to": "FAILED"}
        word |= {"reason": "seen", "evidence": "a ticket", "by": "ada", "second": "grace"}
        outcome = {"worker_id": self.worker["worker_id"], "fence": 1, "outcome": "succeeded"}
        plan = {"run": self.run, "effect": "effect-1", "tool": self.tool, "arguments": ARGUMENTS}
        pin = {"name": name, "version": "2.1", "holder": "queue", "ttl_seconds": 60}
        holds = f"principal={self.principal}&capability={self.capability}"
        contract, rollout = f"/v1/contracts/{name}/2.1", f"/v1/rollouts/{name}/2.1"
        return {
            ("GET", "/v1/contracts"): [(f"/v1/contracts?name={name}", None)],
            ("GET", "/v1/contracts/{name}/{version}"): [(contract, None)],
            ("POST", "/v1/contracts/{name}/{version}/attest"): [(f"{contract}/attest", REASON)],
            ("POST", "/v1/compare"): [
                ("/v1/compare", {"old": f"{name}@2.1", "new": {}}),
                ("/v1/compare", {"old": {}, "new": f"{name}@2.1"}),
            ],
            ("POST", "/v1/resolve"): [("/v1/resolve", self.tool)],
            ("POST", "/v1/credentials/{name}/rotate"): [
                (f"/v1/credentials/{self.credential}/rotate", REASON)
            ],
            ("POST", "/v1/pins"): [("/v1/pins", pin)],
            ("DELETE", "/v1/pins/{pin_id}"): [(f"/v1/pins/{self.pin_id}", None)],
            ("GET", "/v1/grants"): [(f"/v1/grants?principal={self.principal}", None)],
            ("DELETE", "/v1/grants"): [(f"/v1/grants?{holds}", None)],
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
        }

    def hidden(self, answer: httpx.Response) -> tuple[int, str]:
        """Return an answer without the name that it was asked about."""
        text = answer.text
        for name in (
            self.tool["name"],
            self.credential,
            self.principal,
            self.pin_id,
            self.effect_id,
        ):
            text = text.replace(name, "<name>")
        return answer.status_code, text


NOTHING = ({"contracts": []}, {"grants": []}, {"effects": [], "next": None})

# What names nothing of another's: it makes the caller's own, or lists it.
OWN = {
    ("POST", "/v1/contracts"),
    ("POST", "/v1/credentials"),
    ("POST", "/v1/grants"),
    ("PUT", "/v1/workers/{worker_id}/heartbeat"),
    ("GET", "/v1/credentials"),
    ("GET", "/v1/pins"),
    ("GET", "/v1/workers"),
    ("GET", "/v1/whoami"),
    ("GET", "/metrics"),
}


@pytest.fixture
async def theirs(api: Api) -> Names:
    """What the first tenant has: one of each."""
    tool = await api.publish(a_contract())
    await api.ask("PUT", f"/v1/workers/{api.worker_id}/heartbeat", {"label": "theirs"})
    effect = await api.dispatched(tool, key="key-1")
    pin = {"name": tool["name"], "version": "2.1", "holder": "queue", "ttl_seconds": 60}
    pin_id = (await api.ask("POST", "/v1/pins", pin)).body["pin_id"]
    return Names(
        tool=tool,
        credential="billing-api",
        principal="admin",
        capability="invoice:write:default",
        run="run-1",
        effect_id=effect["effect_id"],
        pin_id=pin_id,
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
    pin_id=str(uuid4()),
    worker={"worker_id": str(uuid4()), "nonce": str(uuid4())},
)


async def test_not_yours_is_as_if_not_there(api: Api, other: Api, owner: Owner, theirs: Names):
    before = await owner.dump()
    real, made_up = theirs.questions(), NOBODYS.questions()
    asked = {(one.method, one.template) for one in places(api.app) if one.template not in OPEN}
    assert asked == real.keys() | OWN, "a new route is asked here, or named as one of the caller's"
    for route, questions in real.items():
        for (path, body), (path_of_none, body_of_none) in zip(
            questions, made_up[route], strict=True
        ):
            found = await other.http.request(route[0], path, json=body)
            missing = await other.http.request(route[0], path_of_none, json=body_of_none)
            assert theirs.hidden(found) == NOBODYS.hidden(missing), (route, body)
            assert found.status_code == 404 or found.json() in NOTHING, (route, found.text)
    assert await owner.dump() == before


async def test_each_tenant_has_its_own_of_the_same_name(api: Api, other: Api, theirs: Names):
    lists = ("contracts", "credentials", "grants", "pins", "workers", "effects")
    paths = [*(f"/v1/{listed}" for listed in lists), f"/v1/effects/{theirs.effect_id}"]
    for listed, path in zip(lists, paths, strict=False):
        assert (await other.ask("GET", path)).body[listed] == [], path
        assert len((await api.ask("GET", path)).body[listed]) == 1, path
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

"""Who may ask: nobody without a token."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from access.authentication import Authenticator
from access.token import token_hash
from tests.api import Api
from tests.builders import a_contract
from tests.fixtures import Owner
from tests.problems import problem_in
from tests.routes import Place, places

SIGNED = "/v1/webhooks/{tenant}/{source}"  # see test_webhooks
OPEN = {"/healthz", "/readyz", "/docs", "/openapi.json", "/docs/static", SIGNED}


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
    api.app.state.authenticator = Authenticator(api.app.state.database.transact)
    assert (await other.ask("GET", "/v1/whoami")).refusal == (401, "unauthenticated")
    assert (await api.ask("GET", "/v1/whoami")).body["tenant"] == "default"

"""Tokens of an outside issuer: what is believed of them, and what nobody can make us believe."""

import asyncio
import base64
import gzip
import hashlib
import hmac
import json
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from access import oidc
from access.oidc import Issuer as Verifier
from access.oidc import Trust
from tallystick.errors import RegistryUnavailable, Unauthenticated
from tests.api import Answered, Api, running
from tests.fixtures import Owner
from tests.issuer import AUDIENCE, DISCOVERY, PRIVATE, PUBLIC, Issuer, issuing

WORDS = "The token is not known here, has expired, or was revoked."
STRANGER = ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
async def issuer() -> AsyncGenerator[Issuer]:
    """An issuer with three keys."""
    async with issuing() as issuer:
        yield issuer


@pytest.fixture
async def trusting(database_url: str, tmp_path: Path, issuer: Issuer) -> AsyncGenerator[Api]:
    """The application that trusts the issuer."""
    trust = {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE}
    async with running(database_url, tmp_path / "home", **trust) as api:
        yield api


async def present(api: Api, token: str, path: str = "/v1/whoami") -> Answered:
    async with api.speaking_for(token).http as http:
        response = await http.get(path)
        return Answered(response.status_code, response.json())


def segment(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def signed(header: Any, claims: Any, key: Any = PRIVATE["ec"]) -> str:
    """Sign any header and claims with ES256, whatever a library would say of them."""
    signing_input = f"{segment(header)}.{segment(claims)}"
    algorithm = jwt.get_algorithm_by_name("ES256")
    return f"{signing_input}.{segment(algorithm.sign(signing_input.encode(), key))}"


# --- what is believed -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [("rsa", "RS256"), ("rsa", "RS512"), ("rsa", "PS384"), ("ec", "ES256"), ("ed", "EdDSA")],
)
async def test_a_token_speaks_for_its_subject(
    trusting: Api, issuer: Issuer, key: str, algorithm: str
):
    token = issuer.token(key, algorithm, tallystick_roles=["auditor", "runtime", "other"])
    answer = await present(trusting, token)
    assert (answer.status, answer.body) == (
        200,
        {"tenant": "default", "principal": "agent-7", "roles": ["auditor", "runtime"]},
    )


async def test_its_roles_and_tenant_are_those_of_any_token(
    trusting: Api, issuer: Issuer, owner: Owner
):
    await owner.tenant("acme")
    ours = issuer.token(tallystick_roles=["publisher"], tallystick_tenant="acme")
    assert (await present(trusting, ours)).body["tenant"] == "acme"
    assert (await present(trusting, ours, "/v1/contracts")).status == 200
    for path in ("/v1/effects", "/v1/tokens", "/metrics"):
        assert (await present(trusting, ours, path)).refusal == (403, "forbidden")


async def test_our_own_tokens_need_no_issuer(trusting: Api, issuer: Issuer):
    issuer.status = 500
    assert (await trusting.ask("GET", "/v1/whoami")).status == 200
    assert issuer.asked == []


async def test_without_an_issuer_no_such_token_is_one(api: Api, issuer: Issuer):
    answer = await present(api, issuer.token())
    assert (answer.refusal, answer.body["detail"]) == ((401, "unauthenticated"), WORDS)
    assert issuer.asked == []


async def test_the_claims_have_the_names_that_the_settings_say(
    database_url: str, tmp_path: Path, issuer: Issuer
):
    names = {"oidc_tenant_claim": "org", "oidc_roles_claim": "groups"}
    keys = {"oidc_jwks_url": f"{issuer.url}/elsewhere"}
    trust = {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE}
    async with running(database_url, tmp_path / "home", **trust, **names, **keys) as api:
        token = issuer.token(org="default", groups=["operator"], tallystick_tenant=None)
        assert (await present(api, token)).body["roles"] == ["operator"]
    assert issuer.asked == ["/elsewhere"], "where the address is told, nothing is discovered"


async def test_a_clock_may_be_half_a_minute_off(trusting: Api, issuer: Issuer):
    now = int(time.time())
    samples: list[dict[str, Any]] = [
        {"exp": now - 20},
        {"nbf": now + 20},
        {"iat": now + 20},
        {"nbf": None},
    ]
    for times in samples:
        assert (await present(trusting, issuer.token(**times))).status == 200, times


# --- what is not ----------------------------------------------------------------------------------


def the_public_key_as_a_secret(issuer: Issuer) -> str:
    """Sign with HMAC and the public key, which everybody has."""
    pem = (
        PRIVATE["rsa"]
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    signing_input = f"{segment({'alg': 'HS256', 'kid': 'rsa'})}.{segment(issuer.claims())}"
    mac = hmac.digest(pem, signing_input.encode(), hashlib.sha256)
    return f"{signing_input}.{segment(mac)}"


def tampered(token: str, **changes: Any) -> str:
    header, claims, signature = token.split(".")
    read = json.loads(base64.urlsafe_b64decode(claims + "=="))
    return f"{header}.{segment(read | changes)}.{signature}"


GOOD = {"alg": "ES256", "kid": "ec"}
NOW = time.time()

# what it is: how it is made from the issuer
FORGED: dict[str, Any] = {
    "no signature": lambda it: f"{segment({'alg': 'none', 'kid': 'ec'})}.{segment(it.claims())}.",
    "alg none": lambda it: signed(GOOD | {"alg": "none"}, it.claims()),
    "alg None": lambda it: signed(GOOD | {"alg": "None"}, it.claims()),
    "alg null": lambda it: signed(GOOD | {"alg": None}, it.claims()),
    "alg missing": lambda it: signed({"kid": "ec"}, it.claims()),
    "HMAC with the public key": the_public_key_as_a_secret,
    "another algorithm than the key's": lambda it: signed(GOOD | {"alg": "RS256"}, it.claims()),
    "another key of the issuer": lambda it: signed(GOOD | {"kid": "ed"}, it.claims()),
    "a stranger's key": lambda it: signed(GOOD, it.claims(), STRANGER),
    "a cut signature": lambda it: it.token()[:-4],
    "an empty signature": lambda it: it.token().rpartition(".")[0] + ".",
    "another tenant": lambda it: tampered(it.token(), tallystick_tenant="acme"),
    "more roles": lambda it: tampered(it.token(), tallystick_roles=["admin"]),
    "no kid": lambda it: signed({"alg": "ES256"}, it.claims()),
    "kid of a number": lambda it: signed(GOOD | {"kid": 1}, it.claims()),
    "kid as a path": lambda it: signed(GOOD | {"kid": "../../etc/passwd"}, it.claims()),
    "kid as SQL": lambda it: signed(GOOD | {"kid": "ec' OR true --"}, it.claims()),
    "kid as a list": lambda it: signed(GOOD | {"kid": ["ec"]}, it.claims()),
    "kid empty": lambda it: signed(GOOD | {"kid": ""}, it.claims()),
    "crit": lambda it: signed(GOOD | {"crit": ["x"], "x": 1}, it.claims()),
    "b64": lambda it: signed(GOOD | {"crit": ["b64"], "b64": False}, it.claims()),
    "another issuer": lambda it: it.token(iss="https://issuer.example"),
    "an issuer with a slash": lambda it: it.token(iss=f"{it.url}/"),
    "no issuer": lambda it: it.token(iss=None),
    "for somebody else": lambda it: it.token(aud="another"),
    "for others": lambda it: it.token(aud=["another", "yet another"]),
    "for nobody": lambda it: it.token(aud=None),
    "for an empty list": lambda it: it.token(aud=[]),
    "expired": lambda it: it.token(exp=int(NOW) - 60),
    "without an end": lambda it: it.token(exp=None),
    "an end that is no time": lambda it: signed(GOOD, it.claims(exp="never")),
    "an end beyond all": lambda it: signed(GOOD, it.claims(exp=float("inf"))),
    "not yet": lambda it: it.token(nbf=int(NOW) + 3600),
    "made in the future": lambda it: it.token(iat=int(NOW) + 3600),
    "made at no time": lambda it: it.token(iat=None),
    "no subject": lambda it: it.token(sub=None),
    "a subject that is no text": lambda it: signed(GOOD, it.claims(sub=7)),
    "no tenant": lambda it: it.token(tallystick_tenant=None),
    "a tenant that is not there": lambda it: it.token(tallystick_tenant="nobody"),
    "a tenant of several": lambda it: it.token(tallystick_tenant=["default"]),
    "a claim twice": lambda it: signed(
        GOOD, json.dumps(it.claims()).replace("{", '{"sub": "root", ', 1).encode()
    ),
    "a header twice": lambda it: signed(b'{"alg":"none","alg":"ES256","kid":"ec"}', it.claims()),
    "claims as a list": lambda it: signed(GOOD, [it.claims()]),
    "claims as no JSON": lambda it: signed(GOOD, b"{"),
    "claims too deep": lambda it: signed(GOOD, b'{"a":' + b"[" * 4000 + b"]" * 4000 + b"}"),
    "a header too deep": lambda it: signed(b'{"a":' * 4000 + b"1" + b"}" * 4000, it.claims()),
    "too large": lambda it: it.token(padding="x" * 20_000),
    "not base64": lambda it: "!" + it.token(),
    "not ASCII": lambda it: "\xe9" + it.token(),
    "nothing": lambda it: "..",
}


async def test_no_other_token_is_believed(trusting: Api, issuer: Issuer):
    for kind, forge in FORGED.items():
        headers = [(b"Authorization", b"Bearer " + forge(issuer).encode("latin-1"))]
        async with trusting.speaking_for("").http as http:
            response = await http.get("/v1/whoami", headers=headers)
        assert response.status_code == 401, (kind, response.text)
        assert response.json()["detail"] == WORDS, (kind, "it does not tell what is wrong")


async def test_but_for_what_is_forged_the_samples_are_good(trusting: Api, issuer: Issuer):
    assert (await present(trusting, signed(GOOD, issuer.claims()))).status == 200
    assert (await present(trusting, issuer.token(padding="x" * 8000))).status == 200


async def test_without_a_role_that_is_known_nothing_is_allowed(trusting: Api, issuer: Issuer):
    for roles in (None, [], ["root"], "admin"):
        answer = await present(trusting, issuer.token(tallystick_roles=roles))
        assert answer.refusal == (403, "forbidden"), roles


async def test_a_token_leads_nowhere(trusting: Api, issuer: Issuer):
    """The keys that a header brings or points to are passed over (RFC 8725, 3.10)."""
    async with issuing() as stranger:
        own = dict.fromkeys(("jku", "x5u"), f"{stranger.url}/keys")
        own_key = {"jwk": json.loads(ECAlgorithm.to_jwk(STRANGER.public_key()))}
        for more in (own, own_key, own | own_key | {"x5c": ["AAAA"]}):
            forged = signed(GOOD | more, issuer.claims(), STRANGER)
            assert (await present(trusting, forged)).status == 401
            assert (await present(trusting, signed(GOOD | more, issuer.claims()))).status == 200
        assert stranger.asked == []


# --- the issuer's keys ----------------------------------------------------------------------------


class Clock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Return its seconds."""
        return self.now


@pytest.fixture
async def client() -> AsyncGenerator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as client:
        yield client


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def verifier(issuer: Issuer, client: httpx.AsyncClient, clock: Clock) -> Verifier:
    trust = Trust(issuer.url, AUDIENCE, "tallystick_tenant", "tallystick_roles")
    return Verifier(trust, client, clock=clock)


async def test_keys_are_fetched_once_in_five_minutes(
    verifier: Verifier, issuer: Issuer, clock: Clock
):
    for _ in range(3):
        await verifier.identify(issuer.token())
    clock.now += 299
    await verifier.identify(issuer.token("rsa", "RS256"))
    assert issuer.asked == [DISCOVERY, "/keys"]
    clock.now += 1
    await verifier.identify(issuer.token())
    assert issuer.asked == [DISCOVERY, "/keys"] * 2


async def test_a_new_key_is_found_and_a_withdrawn_one_forgotten(
    verifier: Verifier, issuer: Issuer, clock: Clock
):
    issuer.published = ["rsa"]
    await verifier.identify(issuer.token("rsa", "RS256"))
    issuer.published = ["ec"]
    clock.now += 10
    await verifier.identify(issuer.token("ec"))
    with pytest.raises(Unauthenticated):
        await verifier.identify(issuer.token("rsa", "RS256"))


async def test_an_unknown_key_asks_at_most_every_ten_seconds(
    verifier: Verifier, issuer: Issuer, clock: Clock
):
    await verifier.identify(issuer.token())
    for number in range(50):
        clock.now += 1
        with pytest.raises(Unauthenticated):
            await verifier.identify(issuer.token(headers={"kid": f"made-up-{number}"}))
    assert issuer.asked.count("/keys") == 1 + 5


async def test_one_fetch_serves_all_who_wait(verifier: Verifier, issuer: Issuer):
    issuer.hold = asyncio.Event()
    waiting = [asyncio.create_task(verifier.identify(issuer.token())) for _ in range(20)]
    await issuer.was_asked.wait()
    issuer.hold.set()
    assert {one.principal for one in await asyncio.gather(*waiting)} == {"agent-7"}
    assert issuer.asked == [DISCOVERY, "/keys"]


async def test_an_issuer_that_hangs_is_an_outage_and_asked_no_more_for_a_while(
    verifier: Verifier, issuer: Issuer, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(oidc, "FETCH_SECONDS_MAX", 0.2)
    issuer.hold = asyncio.Event()
    asked = [verifier.identify(issuer.token()) for _ in range(20)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(answer) for answer in answers} == {RegistryUnavailable}
    assert issuer.asked == [DISCOVERY]
    issuer.hold.set()
    clock.now += 9
    with pytest.raises(RegistryUnavailable):
        await verifier.identify(issuer.token())
    clock.now += 1
    assert (await verifier.identify(issuer.token())).principal == "agent-7"


async def test_keys_that_are_too_old_are_not_believed(
    verifier: Verifier, issuer: Issuer, clock: Clock
):
    await verifier.identify(issuer.token())
    issuer.status = 500
    clock.now += 20
    with pytest.raises(RegistryUnavailable):
        await verifier.identify(issuer.token(headers={"kid": "perhaps new"}))
    with pytest.raises(RegistryUnavailable):
        await verifier.identify(issuer.token(headers={"kid": "perhaps new"}))
    await verifier.identify(issuer.token())
    clock.now += 280
    with pytest.raises(RegistryUnavailable):
        await verifier.identify(issuer.token())
    issuer.status = 200
    clock.now += 10
    await verifier.identify(issuer.token())


BAD_DISCOVERY: dict[str, dict[str, Any]] = {
    "another issuer's": {"issuer": "https://issuer.example"},
    "with a slash": {"issuer": "http://127.0.0.1/"},
    "no issuer": {"issuer": None},
    "no keys": {"jwks_uri": None},
    "keys in the open": {"jwks_uri": "http://issuer.example/keys"},
    "keys in a file": {"jwks_uri": "file:///etc/passwd"},
    "keys nowhere": {"jwks_uri": "http://127.0.0.1:1/keys"},
    "keys as a list": {"jwks_uri": []},
}


@pytest.mark.parametrize("kind", BAD_DISCOVERY)
async def test_a_discovery_that_cannot_be_believed(verifier: Verifier, issuer: Issuer, kind: str):
    issuer.changes = BAD_DISCOVERY[kind]
    with pytest.raises(RegistryUnavailable):
        await verifier.identify(issuer.token())


KEYS = json.dumps({"keys": [PUBLIC["ec"]]}).encode()


@pytest.mark.parametrize(
    ("body", "status", "headers"),
    [
        (b"", 200, b""),
        (b"[]", 200, b""),
        (b'{"keys": 1}', 200, b""),
        (b"[" * 100_000, 200, b""),
        (KEYS[:-2], 200, b""),
        (KEYS[:-1] + b', "keys": []}', 200, b""),
        (KEYS[:-1] + b', "x": "' + b"x" * oidc.DOCUMENT_BYTES_MAX + b'"}', 200, b""),
        (gzip.compress(KEYS), 200, b"Content-Encoding: gzip\r\n"),
        (KEYS, 404, b""),
        (KEYS, 302, b"Location: /keys\r\n"),
        (KEYS, 500, b""),
    ],
)
async def test_keys_that_cannot_be_read_are_an_outage(
    trusting: Api, issuer: Issuer, body: bytes, status: int, headers: bytes
):
    issuer.raw["/keys"] = body
    issuer.status, issuer.headers = status, headers
    answer = await present(trusting, issuer.token())
    assert answer.refusal == (503, "registry_unavailable")
    assert answer.body["retryable"]
    assert len(issuer.asked) <= 2, "no redirect is followed"


async def test_nobody_at_the_issuers_address_is_an_outage(
    database_url: str, tmp_path: Path, issuer: Issuer
):
    gone = {"oidc_issuer": "http://127.0.0.1:1", "oidc_audience": AUDIENCE}
    async with running(database_url, tmp_path / "home", **gone) as api:
        answer = await present(api, issuer.token(iss="http://127.0.0.1:1"))
        assert answer.refusal == (503, "registry_unavailable")
        assert (await api.ask("GET", "/v1/whoami")).status == 200


async def test_no_log_holds_a_token(
    trusting: Api, issuer: Issuer, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("DEBUG", logger="tallystick")
    refused = issuer.token(aud="another")
    await present(trusting, refused)
    assert "InvalidAudienceError" in caplog.text
    assert not any(part in caplog.text for part in refused.split("."))

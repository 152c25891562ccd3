"""What the clients make of answers, of their surroundings, and of the process that they are in."""

import asyncio
import pickle
import subprocess
import sys
import threading
from contextlib import ExitStack
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from tallystick import errors
from tallystick.client import (
    AsyncClient,
    Client,
    EffectFailed,
    EffectNotOwned,
    NotSent,
    Outcome,
    OutcomeUnreported,
)
from tallystick.tool_contract import Contract
from tests.unit.tallystick.client.far_side import (
    ARGUMENTS,
    CONTRACT,
    INVOICE,
    RUN,
    TOKEN,
    Service,
    an_effect,
    answer,
    options_for,
    problem,
)

# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (404, "tool_contract_not_found", errors.ToolContractNotFound),
        (409, "tool_schema_drift", errors.ToolSchemaDrift),
        (409, "contract_suspended", errors.ContractSuspended),
        (403, "needs_human", errors.NeedsHuman),
        (422, "invalid_arguments", errors.InvalidArguments),
        (429, "budget_exhausted", errors.BudgetExhausted),
        (401, "unauthenticated", errors.Unauthenticated),
        (503, "registry_unavailable", errors.RegistryUnavailable),
        (409, "made_tomorrow", errors.UnknownRefusal),
    ],
)
def test_a_problem_becomes_the_class_of_its_code(connect, status, code, expected):
    service = Service(problem(status, code, pointer="/x", facts={"n": 1}, retryable=False))
    with pytest.raises(expected) as raised:
        connect(service).resolve(INVOICE)
    refusal = raised.value
    assert (refusal.code, refusal.detail) == (code, f"No: {code}.")
    assert (refusal.pointer, refusal.facts) == ("/x", {"n": 1})
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    "strange",
    [
        answer(200, "text/html", "<html>Sign in</html>"),
        answer(200, "application/json", '{"effect_id": "0'),
        answer(200, "application/json", "[]"),
        answer(200, "application/json", '{"a": 1, "a": 2}'),
        answer(200, "text/plain", '{"effect_id": "x.1", "state": "DISPATCHED"}'),
        answer(200, "application/json", '{"effect_id": "x.1"}'),
        answer(200, "application/json", '{"effect_id": "x.1", "state": 7}'),
        answer(204, "application/json", ""),
        answer(302, "text/html", "", Location="http://registry.test/login"),
        answer(500, "text/plain", "Internal Server Error"),
        answer(404, "application/problem+json", '{"title": "no code"}'),
        answer(418, "application/problem+json", "{"),
    ],
)
def test_what_is_no_answer_of_the_registry_is_an_outage(connect, strange):
    service = Service(strange)
    ran = []
    with (
        pytest.raises(errors.RegistryUnavailable),
        connect(service).effect(INVOICE, ARGUMENTS, run="run-1"),
    ):
        ran.append(1)
    assert (ran, len(service.asked)) == ([], 1)


@pytest.mark.parametrize(
    "passing",
    [
        problem(503, "registry_unavailable", retryable=True),
        problem(429, "rate_limited", retryable=True),
        problem(429, "rate_limited", retryable=True, headers={"Retry-After": "0"}),
        answer(429, "text/plain", "Slow down"),
        answer(502, "text/html", "<html>Bad gateway</html>"),
    ],
)
def test_a_passing_refusal_is_asked_again(connect, passing):
    service = Service(passing, passing)
    with connect(service).effect(INVOICE, ARGUMENTS, run="run-1") as effect:
        effect.succeeded()
    assert len(service.asked) == 4


def test_nobody_waits_longer_than_there_is_time_for_asking(connect):
    service = Service(problem(429, "rate_limited", retryable=True, headers={"Retry-After": "60"}))
    with pytest.raises(errors.RateLimited):
        connect(service).show(f"{RUN}.7")
    assert len(service.asked) == 1


# --- the rest of the client -----------------------------------------------------------------------


def contract_answer(contract=CONTRACT):
    return {
        "state": "ACTIVE",
        "suspended": False,
        "document": dict(contract.document),
        "reference": INVOICE.to_json(),
    }


def resolution(contract=CONTRACT):
    expiry = {"lease": "signed", "lease_expires_at": "2030-01-02T03:04:05Z"}
    return httpx.Response(200, json={"contract": contract_answer(contract), **expiry})


def test_a_resolution_is_the_contract_and_a_lease(connect):
    service = Service(resolution())
    answered = connect(service).resolve(INVOICE)
    assert answered.contract.contract_digest == CONTRACT.contract_digest
    assert answered.reference == INVOICE
    assert answered.lease == "signed"
    assert answered.lease_expires_at.isoformat() == "2030-01-02T03:04:05+00:00"
    assert service.asked == [("POST", "/v1/resolve", INVOICE.to_json())]


def test_a_contract_that_was_rewritten_on_its_way_is_drift(connect):
    rewritten = Contract.parse({**CONTRACT.document, "input_schema": {"type": "object"}})
    service = Service(resolution(rewritten))
    with pytest.raises(errors.ToolSchemaDrift):
        connect(service).resolve(INVOICE)


def test_a_contract_comes_with_its_tuple(connect):
    service = Service(httpx.Response(200, json=contract_answer()))
    entry = connect(service).contract("billing.send_invoice", "1.0")
    assert (entry.state, entry.suspended, entry.reference) == ("ACTIVE", False, INVOICE)
    assert service.asked == [("GET", "/v1/contracts/billing.send_invoice/1.0", None)]


LISTED = {
    "name": "billing.send_invoice",
    "version": "1.10",
    "state": "DEPRECATED",
    "suspended": True,
    "schema_hash": CONTRACT.schema_hash,
    "contract_digest": CONTRACT.contract_digest,
}
WARNING = {"code": "accepts_nothing", "path": "/input_schema", "detail": "No call is valid."}


def publication(**members):
    told = {"published": True, "equivalent_to": ["0.9.0"], "warnings": [WARNING]}
    return httpx.Response(201, json=contract_answer() | told | members)


def test_published_versions_are_listed_and_can_be_ordered(connect):
    older = LISTED | {"version": "1.9.0", "state": "ACTIVE", "suspended": False}
    service = Service(httpx.Response(200, json={"contracts": [LISTED, older]}))
    listed = connect(service).contracts()
    assert [(str(one.version), one.state, one.suspended) for one in listed] == [
        ("1.10.0", "DEPRECATED", True),
        ("1.9.0", "ACTIVE", False),
    ]
    assert max(listed, key=lambda one: one.version) is listed[0]
    assert {(one.name, one.contract_digest, one.schema_hash) for one in listed} == {
        (CONTRACT.name, CONTRACT.contract_digest, CONTRACT.schema_hash)
    }
    assert service.asked == [("GET", "/v1/contracts", None)]


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("billing.send_invoice", "/v1/contracts?name=billing.send_invoice"),
        ("a&state=RETIRED#/..", "/v1/contracts?name=a%26state%3DRETIRED%23%2F.."),
        ("", "/v1/contracts?name="),
    ],
)
def test_the_versions_of_one_tool_are_asked_for_by_its_name(connect, name, asked):
    service = Service(httpx.Response(200, json={"contracts": []}))
    assert connect(service).contracts(name) == []
    assert service.asked == [("GET", asked, None)]


@pytest.mark.parametrize("given", [CONTRACT, dict(CONTRACT.document)])
def test_a_contract_or_its_document_is_published(connect, given):
    service = Service(publication())
    published = connect(service).publish(given)
    assert published.entry.contract == CONTRACT
    assert published.entry.reference == INVOICE
    assert (published.is_new, published.equivalent_to) == (True, ("0.9.0",))
    assert [warning["code"] for warning in published.warnings] == ["accepts_nothing"]
    assert service.asked == [("POST", "/v1/contracts", {"document": dict(CONTRACT.document)})]


def test_what_is_published_already_is_not_new(connect):
    service = Service(publication(published=False, equivalent_to=[], warnings=[]))
    published = connect(service).publish(CONTRACT)
    assert (published.is_new, published.equivalent_to, published.warnings) == (False, (), ())


def test_a_publication_whose_answer_was_lost_is_asked_for_again(connect):
    service = Service("lost", publication(published=False))
    assert not connect(service).publish(CONTRACT).is_new
    assert [body for _, _, body in service.asked] == [{"document": dict(CONTRACT.document)}] * 2


def test_a_review_is_sent_whole_or_not_at_all(connect):
    service = Service(publication())
    client = connect(service)
    client.publish(CONTRACT, reviewer="grace", reason="callers were asked")
    review = {"reviewer": "grace", "reason": "callers were asked"}
    assert service.asked[0][2]["review"] == review
    for half in ({"reviewer": "grace"}, {"reason": "callers were asked"}):
        with pytest.raises(errors.InvalidRequest, match="together"):
            client.publish(CONTRACT, **half)
    assert len(service.asked) == 1


def test_a_document_that_is_not_json_is_refused_before_it_is_sent(connect):
    service = Service()
    with pytest.raises(errors.InvalidContract) as raised:
        connect(service).publish({**CONTRACT.document, "input_schema": {"default": object()}})
    assert raised.value.pointer == "/input_schema/default"
    assert service.asked == []


@pytest.mark.parametrize(
    ("method", "arguments", "strange"),
    [
        ("contracts", (), {}),
        ("contracts", (), {"contracts": {}}),
        ("contracts", (), {"contracts": ["billing.send_invoice"]}),
        ("contracts", (), {"contracts": [LISTED | {"version": "newest"}]}),
        ("contracts", (), {"contracts": [LISTED | {"contract_digest": None}]}),
        ("publish", (CONTRACT,), {"published": "yes"}),
        ("publish", (CONTRACT,), {"equivalent_to": [1]}),
        ("publish", (CONTRACT,), {"warnings": ["careful"]}),
        ("publish", (CONTRACT,), {"reference": None}),
    ],
)
def test_a_list_or_a_publication_of_another_form_is_an_outage(connect, method, arguments, strange):
    whole = publication(**strange) if method == "publish" else httpx.Response(200, json=strange)
    with pytest.raises(errors.RegistryUnavailable, match="documented form"):
        getattr(connect(Service(whole)), method)(*arguments)


def test_effects_are_shown_and_cancelled_by_id(connect):
    service = Service()
    service.effect = an_effect(events=[{"number": 1}])
    client = connect(service)
    assert client.show("a/b?c").document["events"] == [{"number": 1}]
    assert client.cancel("x.1", "not needed").state == "CANCELLED"
    assert service.asked == [
        ("GET", "/v1/effects/a%2Fb%3Fc", None),
        ("POST", "/v1/effects/x.1/cancel", {"reason": "not needed"}),
    ]
    with pytest.raises(errors.InvalidRequest):
        client.show("..")


def test_an_operator_releases_an_effect_by_id(connect):
    service = Service()
    service.effect = an_effect(state="QUARANTINED")
    client = connect(service)
    assert client.retry("x.1", "the provider lost it").state == "RETRYABLE"
    assert client.retry("x.1", "again", evidence="ticket 7").state == "RETRYABLE"
    assert service.asked == [
        ("POST", "/v1/effects/x.1/retry", {"reason": "the provider lost it"}),
        ("POST", "/v1/effects/x.1/retry", {"reason": "again", "evidence": "ticket 7"}),
    ]


def test_what_was_seen_is_told_with_its_time(connect):
    service = Service()
    service.effect = an_effect(state="UNKNOWN")
    client = connect(service)
    seen_at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert client.add_evidence("x.1", "absent", "ticket 7", observed_at=seen_at).state == "UNKNOWN"
    client.add_evidence(
        "x.1", "applied", "ticket 8", observed_at=seen_at, provider_reference="inv_1"
    )
    body = {"answer": "absent", "detail": "ticket 7", "observed_at": "2026-01-02T03:04:05+00:00"}
    more = {"answer": "applied", "detail": "ticket 8", "provider_reference": "inv_1"}
    assert service.asked == [
        ("POST", "/v1/effects/x.1/evidence", body),
        ("POST", "/v1/effects/x.1/evidence", body | more),
    ]
    with pytest.raises(errors.InvalidRequest):
        client.add_evidence("x.1", "absent", "ticket 7", observed_at=seen_at.replace(tzinfo=None))


def test_the_token_is_in_no_text(connect):
    client = connect(Service(otherwise="down"), retry_seconds=0)
    with pytest.raises(errors.RegistryUnavailable) as raised:
        client.show("x.1")
    effect = client.effect(INVOICE, ARGUMENTS, run="run-1")
    texts = [repr(client), str(raised.value), repr(raised.value), repr(effect)]
    texts += [repr(value) for value in vars(getattr(client, "target", client)).values()]
    assert not [text for text in texts if TOKEN in text]


@pytest.mark.parametrize(
    ("url", "token", "expected"),
    [
        ("", TOKEN, errors.InvalidRequest),
        ("registry.test", TOKEN, errors.InvalidRequest),
        ("ftp://registry.test", TOKEN, errors.InvalidRequest),
        ("http://[registry.test", TOKEN, errors.InvalidRequest),
        ("http://registry.test:port", TOKEN, errors.InvalidRequest),
        ("http://registry.test:65536", TOKEN, errors.InvalidRequest),
        ("http://me:s3cret@registry.test", TOKEN, errors.InvalidRequest),
        ("http://registry.test", "", errors.Unauthenticated),
        ("http://registry.test", "s3cret\nHost: x", errors.Unauthenticated),
        ("http://registry.test", "s3crét", errors.Unauthenticated),
    ],
)
def test_a_client_without_a_usable_url_and_token_is_not_made(monkeypatch, url, token, expected):
    monkeypatch.setenv("TALLYSTICK_URL", url)
    monkeypatch.setenv("TALLYSTICK_TOKEN", token)
    for kind in (Client, AsyncClient):
        with pytest.raises(expected) as raised:
            kind()
        assert "s3cr" not in str(raised.value)


def test_url_and_token_come_from_the_environment(monkeypatch, connect):
    monkeypatch.setenv("TALLYSTICK_URL", "http://registry.test")
    monkeypatch.setenv("TALLYSTICK_TOKEN", f"{TOKEN}\n")
    service = Service()
    service.effect = an_effect()
    assert connect(service, url=None, token=None).show("x.1").effect_id == f"{RUN}.7"


@pytest.mark.parametrize(
    "error",
    [
        EffectFailed("declined", "No."),
        EffectNotOwned("x.1", "SUCCEEDED", Outcome("SUCCEEDED", [1], None, None), "why", "no"),
        OutcomeUnreported("x.1", {"a": 1}),
        NotSent("why"),
    ],
)
def test_errors_survive_the_way_between_processes(error):
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


# --- the process ----------------------------------------------------------------------------------


def test_a_process_has_one_heartbeat():
    service = Service()
    before = threading.enumerate()
    with ExitStack() as clients:
        for effect in ("a", "b", "c"):
            client = clients.enter_context(Client(**options_for(service)))
            service.effect = None
            with client.effect(INVOICE, ARGUMENTS, run="run-1", effect=effect) as entered:
                entered.succeeded()
        assert service.heard_heartbeat.wait(30)
        [heart] = [thread for thread in threading.enumerate() if thread not in before]
        assert (heart.name, heart.daemon) == ("tallystick-heartbeat", True)
        paths = {beat.url.path for beat in service.heartbeats}
        assert paths == {f"/v1/workers/{client.worker_id}/heartbeat"}


async def test_a_process_has_one_heartbeat_also_when_it_awaits():
    service = Service()
    before = asyncio.all_tasks()
    async with (
        AsyncClient(**options_for(service)) as one,
        AsyncClient(**options_for(service)) as two,
    ):
        for client in (one, two):
            service.effect = None
            async with client.effect(INVOICE, ARGUMENTS, run="run-1") as effect:
                await effect.succeeded()
        assert len(asyncio.all_tasks() - before) == 1
        assert await asyncio.to_thread(service.heard_heartbeat.wait, 30)
    assert asyncio.all_tasks() == before


def test_a_heartbeat_that_fails_disturbs_nobody(connect):
    class Deaf(Service):
        def __call__(self, request):
            if request.url.path.endswith("/heartbeat"):
                self.heard_heartbeat.set()
                raise RuntimeError("no heartbeat gets through")
            return super().__call__(request)

    service = Deaf()
    assert connect(service).call(INVOICE, ARGUMENTS, lambda effect: "sent", run="r") == "sent"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_process_is_another_worker():
    program = """
import os
from tallystick.client import Client
client = Client("http://registry.test", "token")
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, client.worker_id.encode())
    os._exit(0)
assert os.wait()[1] == 0
child = os.read(read, 100).decode()
assert len(child) == len(client.worker_id) and child != client.worker_id
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_proxy_of_the_environment_never_sees_what_is_meant_for_this_machine(monkeypatch):
    """The answer is the service's own problem, not the refusal of a proxy that is not there."""
    told = b'{"code": "not_found", "detail": "There is nothing at this address."}'

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(404)
            self.send_header("Content-Type", "application/problem+json")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_: object):
            pass

    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            with Client(url, TOKEN, retry_seconds=0) as client, pytest.raises(errors.NotFound):
                client.contract("billing.send_invoice", "1.0")
        finally:
            server.shutdown()

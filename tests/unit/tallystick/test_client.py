"""The clients against the wire: `Service` plays the far side, and each test holds for both shells."""

import asyncio
import inspect
import json
import pickle
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from dataclasses import replace

import anyio
import httpx
import pytest

from tallystick import errors
from tallystick._effect import Lease
from tallystick.client import (
    AsyncClient,
    AsyncEffect,
    Client,
    EffectFailed,
    EffectNotOwned,
    NotSent,
    Outcome,
    OutcomeUnreported,
)
from tallystick.contract import Contract, EffectClass

TOKEN = "s3cret-t0ken"
RUN = "01890000-0000-7000-8000-000000000001"
CONTRACT = Contract.of(
    name="billing.send_invoice",
    version="1.0",
    description="Sends an invoice.",
    input_schema={"type": "object", "properties": {"customer_id": {"type": "string"}}},
    capabilities=["invoice:write:acme"],
    effect_class="IDEMPOTENT",
    idempotency={"header": "Idempotency-Key", "retention_seconds": 86400},
)
INVOICE = CONTRACT.reference(credential_version=0)
LOOKUP = replace(INVOICE, name="billing.look_up", effect_class=EffectClass.PURE)
ARGUMENTS = {"customer_id": "c-1"}


class Service:
    """Answers as the service does, for one effect, and keeps what it was asked.

    Its clock goes on by a second with every request. A fault stands for what becomes of a request:
    "down" (it never arrives), "lost" (it is obeyed, and its answer is lost), or another answer.
    """

    def __init__(self, *faults, otherwise=None):
        self.now = 1000.0
        self.faults = list(faults)
        self.otherwise = otherwise
        self.asked = []
        self.heartbeats = []
        self.heard_heartbeat = threading.Event()
        self.effect = None
        self.lease_seconds = 60.0

    def clock(self):
        return self.now

    def __call__(self, request):
        if request.url.path.endswith("/heartbeat"):
            self.heartbeats.append(request)
            self.heard_heartbeat.set()
            return httpx.Response(200, json={})
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        self.now += 1
        body = json.loads(request.content) if request.content else None
        self.asked.append((request.method, request.url.raw_path.decode(), body))
        fault = self.faults.pop(0) if self.faults else self.otherwise
        if fault == "down":
            raise httpx.ConnectError("Connection refused", request=request)
        answer = fault if isinstance(fault, httpx.Response) else self.answer(request.url.path, body)
        if fault == "lost":
            raise httpx.ReadTimeout("timed out", request=request)
        return answer

    def answer(self, path, body):
        if path.endswith("/outcome"):
            return self.complete(body)
        if path.endswith("/cancel"):
            self.effect["state"] = "CANCELLED"
        elif body is not None:
            self.plan(body)
        return httpx.Response(200, json=self.effect)

    def plan(self, body):
        claim = body.get("dispatch", body if "nonce" in body else None)
        self.effect = self.effect or an_effect(state="PLANNED")
        if claim and self.effect["state"] == "PLANNED":
            self.effect |= {"state": "DISPATCHED", "claim": claim, "fence": 1}
        owned = self.effect["state"] == "DISPATCHED" and self.effect["claim"] == claim
        self.effect["dispatch"] = {
            "owned": owned,
            "fence": 1,
            "attempt": 1,
            "lease_seconds": self.lease_seconds,
            "idempotency_key": "key-1",
            "idempotency": {"header": "Idempotency-Key"},
        }

    def complete(self, body):
        if body["fence"] != self.effect["fence"]:
            return problem(409, "fence_stale")
        outcome = {
            "status": body["outcome"].upper(),
            "result": body.get("result"),
            "error": body.get("error"),
        }
        self.effect |= {"state": outcome["status"], "outcome": outcome, "dispatch": None}
        return httpx.Response(200, json=self.effect)

    @property
    def reports(self):
        return [body for _, path, body in self.asked if path.endswith("/outcome")]


def an_effect(**members):
    return {"effect_id": f"{RUN}.7", "state": "PLANNED", "outcome": None, **members}


def problem(status, code, *, headers=None, **members):
    document = {"type": "about:blank", "status": status, "code": code, "detail": f"No: {code}."}
    media_type = "application/problem+json; charset=utf-8"
    content = json.dumps(document | members).encode()
    return httpx.Response(
        status, content=content, headers={"Content-Type": media_type, **(headers or {})}
    )


class Blocking:
    """An asynchronous client, or one of its effects, driven as the blocking one is."""

    def __init__(self, runner, target):
        self.runner = runner
        self.target = target

    def __getattr__(self, name):
        member = getattr(self.target, name)
        return self.wrapped(member) if inspect.ismethod(member) else member

    def wrapped(self, method):
        def invoke(*arguments, **options):
            value = method(*arguments, **options)
            if inspect.iscoroutine(value):
                return self.runner.run(value)
            return Blocking(self.runner, value) if isinstance(value, AsyncEffect) else value

        return invoke

    def call(self, reference, arguments, body, **terms):
        async def awaited(effect):
            return body(effect)

        return self.runner.run(self.target.call(reference, arguments, awaited, **terms))

    def __enter__(self):
        self.runner.run(self.target.__aenter__())
        return self

    def __exit__(self, *error):
        self.runner.run(self.target.__aexit__(*error))

    def __repr__(self):
        return repr(self.target)


@pytest.fixture(params=["Client", "AsyncClient"])
def connect(request):
    with ExitStack() as clients:

        def connect(service, **options):
            options = options_for(service) | options
            if request.param == "Client":
                return clients.enter_context(Client(**options))
            runner = clients.enter_context(asyncio.Runner())
            return clients.enter_context(Blocking(runner, AsyncClient(**options)))

        yield connect


def options_for(service):
    return {
        "url": "http://registry.test/",
        "token": TOKEN,
        "transport": httpx.MockTransport(service),
        "clock": service.clock,
        "random": lambda: 0.0,
    }


# --- dispatch -------------------------------------------------------------------------------------


def test_an_effect_is_dispatched_before_its_body_and_reported_after(connect):
    service = Service()
    with connect(service).effect(INVOICE, ARGUMENTS, run="run-1", effect="invoice-42") as effect:
        assert service.effect["state"] == "DISPATCHED"
        assert effect.recorded
        assert effect.headers() == {"Idempotency-Key": "key-1"}
        assert effect.idempotency_key == "key-1"
        effect.succeeded({"id": "inv_1"}, provider_reference="inv_1")
    method, path, body = service.asked[0]
    assert (method, path) == ("POST", "/v1/effects")
    assert (body["run"], body["effect"], body["arguments"]) == ("run-1", "invoice-42", ARGUMENTS)
    assert body["tool"] == INVOICE.to_json()
    assert service.asked[1][1] == f"/v1/effects/{RUN}.7/outcome"
    assert service.reports == [
        {
            "worker_id": body["dispatch"]["worker_id"],
            "fence": 1,
            "outcome": "succeeded",
            "result": {"id": "inv_1"},
            "provider_reference": "inv_1",
        }
    ]


def test_a_lost_dispatch_answer_is_asked_for_again_with_the_same_nonce(connect):
    service = Service("lost", "down", "lost")
    with connect(service).effect(INVOICE, ARGUMENTS, run="run-1") as effect:
        effect.succeeded()
    dispatches = [body for _, path, body in service.asked if path == "/v1/effects"]
    assert len(dispatches) == 4
    assert all(body == dispatches[0] for body in dispatches)
    assert service.effect["state"] == "SUCCEEDED"


def test_each_effect_has_its_own_nonce_and_the_process_one_worker_id(connect):
    service = Service()
    for client in (connect(service), connect(service)):
        with suppress(EffectNotOwned), client.effect(INVOICE, ARGUMENTS, run="r") as effect:
            effect.succeeded()
    claims = [body["dispatch"] for _, path, body in service.asked if path == "/v1/effects"]
    assert len({claim["nonce"] for claim in claims}) == 2
    assert len({claim["worker_id"] for claim in claims}) == 1


def test_a_planned_effect_is_dispatched_by_its_id(connect):
    service = Service()
    client = connect(service, worker_id="0d7f39a4-6a6e-4b44-8e54-5a5b0d6f8a11")
    entry = client.plan(INVOICE, ARGUMENTS, run="run-1", key="k", origin="queue")
    assert entry.state == "PLANNED"
    assert "dispatch" not in service.asked[0][2]
    with client.dispatch(entry.effect_id, INVOICE) as effect:
        effect.succeeded([1])
    _, path, body = service.asked[1]
    assert path == f"/v1/effects/{RUN}.7/dispatch"
    assert body["worker_id"] == client.worker_id == "0d7f39a4-6a6e-4b44-8e54-5a5b0d6f8a11"
    assert body["tool"] == INVOICE.to_json()


def test_a_write_that_cannot_be_recorded_does_not_run(connect):
    service = Service(otherwise="down")
    ran = []
    with pytest.raises(errors.RegistryUnavailable, match=r"registry\.test.*ConnectError"):
        with connect(service, retry_seconds=5).effect(INVOICE, ARGUMENTS, run="run-1"):
            ran.append(1)
    assert ran == []
    assert len(service.asked) == 5  # the clock goes on by a second with each


def test_a_read_that_cannot_be_recorded_runs_all_the_same(connect):
    service = Service(otherwise="down")
    client = connect(service)
    with client.effect(LOOKUP, ARGUMENTS, run="run-1") as effect:
        assert not effect.recorded
        assert (effect.headers(), effect.timeout(), effect.effect_id) == ({}, 5, "")
        effect.succeeded({"id": "c-1"})
    assert effect.result() == {"id": "c-1"}
    assert service.reports == []
    assert client.call(LOOKUP, ARGUMENTS, lambda effect: "found", run="run-1") == "found"


def test_a_read_is_not_lost_for_want_of_a_report(connect):
    service = Service(None, otherwise="down")
    assert connect(service).call(LOOKUP, ARGUMENTS, lambda effect: "found", run="r") == "found"


def test_arguments_that_are_not_json_are_refused_before_anything_is_sent(connect):
    service = Service()
    with pytest.raises(errors.InvalidArguments) as refusal:
        connect(service).effect(INVOICE, {"total": [float("nan")]}, run="run-1")
    assert refusal.value.pointer == "/total/0"
    assert service.asked == []


NOT_OURS = {
    "SUCCEEDED": {"status": "SUCCEEDED", "result": {"id": "inv_1"}},
    "FAILED": {"status": "FAILED", "error": {"code": "card_declined", "message": "Declined."}},
    "DISPATCHED": None,
    "UNKNOWN": None,
    "QUARANTINED": None,
}


@pytest.mark.parametrize("state", NOT_OURS)
def test_an_effect_that_is_not_ours_does_not_run(connect, state):
    service = Service()
    service.effect = an_effect(state=state, claim={}, outcome=NOT_OURS[state], reason="why")
    ran = []
    with pytest.raises(EffectNotOwned) as refusal:
        with connect(service).effect(INVOICE, ARGUMENTS, run="run-1"):
            ran.append(1)
    assert ran == []
    assert refusal.value.effect_id == f"{RUN}.7"
    assert (refusal.value.state, refusal.value.reason) == (state, "why")
    assert (refusal.value.outcome is None) == (NOT_OURS[state] is None)
    assert service.reports == []


# --- the lease ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lease_seconds", "usable_seconds"),
    [(3600, 3240), (60, 54), (5, 4.5), (2, 1.5), (1, 0.5), (0.4, 0.2)],
)
def test_a_margin_of_the_lease_is_kept(lease_seconds, usable_seconds):
    assert Lease.measured(100, lease_seconds).send_until == pytest.approx(100 + usable_seconds)


@pytest.mark.parametrize("method", ["headers", "timeout"])
def test_nothing_is_sent_when_the_lease_is_over(connect, method):
    service = Service()
    with pytest.raises(errors.LeaseExpired) as refusal:
        with connect(service).effect(INVOICE, ARGUMENTS, run="run-1") as effect:
            getattr(effect, method)()
            service.now += 53.5
            getattr(effect, method)()
    assert refusal.value.facts == {"effect_id": f"{RUN}.7"}
    assert [report["outcome"] for report in service.reports] == ["unknown"]


def test_the_lease_is_counted_from_before_the_request_that_was_answered(connect):
    service = Service("lost")
    service.lease_seconds = 10
    with connect(service).effect(INVOICE, ARGUMENTS, run="run-1") as effect:
        # Sent at 1001, and answered at 1002: by the clock of the database up to a second later.
        assert service.now == 1002
        assert effect.timeout() == pytest.approx(1001 + 9 - 1002)
        effect.succeeded()


def test_nothing_is_sent_for_an_effect_that_was_not_entered(connect):
    effect = connect(Service()).effect(INVOICE, ARGUMENTS, run="run-1")
    for method in (effect.headers, effect.timeout, effect.succeeded):
        with pytest.raises(errors.IllegalTransition):
            method()


# --- what is reported -----------------------------------------------------------------------------

LEAVING = [
    # how the body ends     outcome    error code   message
    (ValueError("card 4242"), "unknown", "exception", "ValueError"),
    (KeyboardInterrupt(), "unknown", "exception", "KeyboardInterrupt"),
    (SystemExit(1), "unknown", "exception", "SystemExit"),
    (NotSent("no route"), "failed", "not_sent", "no route"),
]


@pytest.mark.parametrize(("error", "outcome", "code", "message"), LEAVING)
def test_a_body_that_raises_is_reported_and_its_error_goes_on(
    connect, error, outcome, code, message
):
    service = Service()
    with pytest.raises(type(error)) as raised:
        with connect(service).effect(INVOICE, ARGUMENTS, run="run-1"):
            raise error
    assert raised.value is error
    [report] = service.reports
    assert (report["outcome"], report.get("not_sent", False)) == (outcome, outcome == "failed")
    assert report["error"] == {"code": code, "message": message}


def test_a_body_that_reports_nothing_leaves_an_unknown_effect(connect):
    service = Service()
    with connect(service).effect(INVOICE, ARGUMENTS, run="run-1") as effect:
        pass
    assert [report["outcome"] for report in service.reports] == ["unknown"]
    with pytest.raises(EffectNotOwned):
        effect.result()


@pytest.mark.parametrize(
    ("method", "arguments", "expected"),
    [
        ("failed", ("declined", "No."), {"outcome": "failed", "error": {"code": "declined"}}),
        ("not_sent", ("why",), {"outcome": "failed", "not_sent": True}),
        ("unknown", ("why",), {"outcome": "unknown"}),
        ("succeeded", (), {"outcome": "succeeded", "result": None}),
    ],
)
def test_a_report_says_what_the_body_said(connect, method, arguments, expected):
    service = Service()
    with connect(service).effect(INVOICE, ARGUMENTS, run="run-1") as effect:
        getattr(effect, method)(*arguments)
        with pytest.raises(errors.IllegalTransition):
            effect.failed("other", "A second report.")
    [report] = service.reports
    if method == "failed":
        assert report.pop("error") == {"code": "declined", "message": "No."}
        expected = {"outcome": "failed"}
    assert report | expected == report


def test_a_lost_answer_to_a_report_is_asked_for_again(connect):
    service = Service(None, "lost", "down")
    with connect(service).effect(INVOICE, ARGUMENTS, run="run-1") as effect:
        effect.succeeded("sent")
    assert len(service.reports) == 3
    assert all(report == service.reports[0] for report in service.reports)


def test_a_report_that_never_gets_through_gives_the_result_back(connect):
    service = Service(None, otherwise="down")
    with pytest.raises(OutcomeUnreported) as raised:
        with connect(service, retry_seconds=3).effect(INVOICE, ARGUMENTS, run="run-1") as effect:
            effect.succeeded({"id": "inv_1"})
    assert raised.value.effect_id == f"{RUN}.7"
    assert raised.value.result == {"id": "inv_1"}
    assert "inv_1" not in str(raised.value) + repr(raised.value)
    assert {report["outcome"] for report in service.reports} == {"succeeded"}


def test_a_report_that_the_body_gave_up_is_made_again_on_leaving(connect):
    service = Service(None, "down", "down")
    with connect(service, retry_seconds=1.5).effect(INVOICE, ARGUMENTS, run="run-1") as effect:
        with pytest.raises(OutcomeUnreported):
            effect.succeeded("sent")
    assert service.effect["outcome"]["result"] == "sent"


def test_an_error_on_its_way_is_not_replaced_by_that_of_its_report(connect):
    service = Service(None, otherwise="down")
    with pytest.raises(ValueError, match="mine") as raised:
        with connect(service).effect(INVOICE, ARGUMENTS, run="run-1"):
            raise ValueError("mine")
    [note] = raised.value.__notes__
    assert f"{RUN}.7 could not be reported" in note


def test_a_worker_that_was_superseded_is_told(connect):
    service = Service()
    with pytest.raises(errors.FenceStale) as raised:
        with connect(service).effect(INVOICE, ARGUMENTS, run="run-1") as effect:
            service.effect["fence"] = 2
            effect.succeeded("sent")
    assert raised.value.facts["effect_id"] == f"{RUN}.7"
    assert [report["outcome"] for report in service.reports] == ["succeeded"]


def test_a_result_that_is_not_json_may_be_reported_otherwise(connect):
    service = Service()
    with connect(service).effect(INVOICE, ARGUMENTS, run="run-1") as effect:
        with pytest.raises(errors.InvalidResult):
            effect.succeeded({"at": object()})
        effect.succeeded({"at": "noon"})
    assert [report["result"] for report in service.reports] == [{"at": "noon"}]


def test_a_report_that_the_service_refuses_may_be_made_otherwise(connect):
    service = Service(None, problem(413, "too_large"))
    with connect(service).effect(INVOICE, ARGUMENTS, run="run-1") as effect:
        with pytest.raises(errors.TooLarge):
            effect.succeeded("x" * 1000)
        effect.succeeded("x")
    assert service.effect["outcome"]["result"] == "x"


# --- call -----------------------------------------------------------------------------------------


def test_a_call_runs_once_and_answers_its_result_ever_after(connect):
    service = Service()
    client = connect(service)
    ran = []

    def body(effect):
        ran.append(effect.headers())
        return {"id": "inv_1"}

    results = [client.call(INVOICE, ARGUMENTS, body, run="run-1") for _ in range(3)]
    assert results == [{"id": "inv_1"}] * 3
    assert ran == [{"Idempotency-Key": "key-1"}]


def test_a_call_of_a_failed_effect_says_why_it_failed(connect):
    service = Service()
    service.effect = an_effect(state="FAILED", outcome=NOT_OURS["FAILED"])
    with pytest.raises(EffectFailed) as raised:
        connect(service).call(INVOICE, ARGUMENTS, lambda effect: None, run="run-1")
    assert (raised.value.code, raised.value.message) == ("card_declined", "Declined.")


def test_a_call_never_takes_an_open_effect_for_a_result(connect):
    service = Service()
    service.effect = an_effect(state="UNKNOWN")
    with pytest.raises(EffectNotOwned, match="UNKNOWN"):
        connect(service).call(INVOICE, ARGUMENTS, lambda effect: None, run="run-1")


def test_a_call_whose_body_meets_another_effect_hands_that_on(connect):
    service = Service()

    def body(effect):
        raise EffectNotOwned("other.1", "SUCCEEDED", Outcome("SUCCEEDED", "not mine", None, None))

    with pytest.raises(EffectNotOwned, match=r"other\.1"):
        connect(service).call(INVOICE, ARGUMENTS, body, run="run-1")
    assert [report["outcome"] for report in service.reports] == ["unknown"]


def failing(effect):
    return effect.failed("card_declined", "Declined.")


async def failing_async(effect):
    await effect.failed("card_declined", "Declined.")


def test_a_call_raises_what_its_body_reported():
    with Client(**options_for(Service())) as client, pytest.raises(EffectFailed, match="declined"):
        client.call(INVOICE, ARGUMENTS, failing, run="run-1")


async def test_an_awaited_call_raises_what_its_body_reported():
    async with AsyncClient(**options_for(Service())) as client:
        with pytest.raises(EffectFailed, match="declined"):
            await client.call(INVOICE, ARGUMENTS, failing_async, run="run-1")


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


def answer(status, media_type, text, **headers):
    return httpx.Response(status, text=text, headers={"Content-Type": media_type, **headers})


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
    with pytest.raises(errors.RegistryUnavailable):
        with connect(service).effect(INVOICE, ARGUMENTS, run="run-1"):
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
    document = dict(CONTRACT.document) | {"input_schema": {"type": "object"}}
    service = Service(resolution(Contract.parse(document)))
    with pytest.raises(errors.ToolSchemaDrift):
        connect(service).resolve(INVOICE)


def test_a_contract_comes_with_its_tuple(connect):
    service = Service(httpx.Response(200, json=contract_answer()))
    entry = connect(service).contract("billing.send_invoice", "1.0")
    assert (entry.state, entry.suspended, entry.reference) == ("ACTIVE", False, INVOICE)
    assert service.asked == [("GET", "/v1/contracts/billing.send_invoice/1.0", None)]


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
        EffectNotOwned("x.1", "SUCCEEDED", Outcome("SUCCEEDED", [1], None, None), "why"),
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
    with ExitStack() as clients:
        for effect in ("a", "b", "c"):
            client = clients.enter_context(Client(**options_for(service)))
            service.effect = None
            with client.effect(INVOICE, ARGUMENTS, run="run-1", effect=effect) as entered:
                entered.succeeded()
        assert service.heard_heartbeat.wait(30)
        hearts = [thread.name for thread in threading.enumerate() if "heartbeat" in thread.name]
        assert hearts == ["tallystick-heartbeat"]
        [beat] = service.heartbeats
        assert beat.url.path == f"/v1/workers/{client.worker_id}/heartbeat"


async def test_a_process_has_one_heartbeat_also_when_it_awaits():
    service = Service()
    before = asyncio.all_tasks()
    async with AsyncClient(**options_for(service)) as one, AsyncClient(**options_for(service)) as two:
        for client in (one, two):
            service.effect = None
            async with client.effect(INVOICE, ARGUMENTS, run="run-1") as effect:
                await effect.succeeded()
        assert len(asyncio.all_tasks() - before) == 1
        while not service.heartbeats:
            await asyncio.sleep(0)
        assert len(service.heartbeats) == 1
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


async def test_a_cancelled_body_is_reported_as_unknown():
    service = Service()
    async with AsyncClient(**options_for(service)) as client:
        with anyio.move_on_after(3600) as scope:
            async with client.effect(INVOICE, ARGUMENTS, run="run-1"):
                scope.cancel()
                await asyncio.sleep(3600)
        assert scope.cancelled_caught
        service.effect = None
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0), client.effect(INVOICE, ARGUMENTS, run="run-2"):
                await asyncio.sleep(3600)
    assert [report["error"]["message"] for report in service.reports] == ["CancelledError"] * 2

"""What becomes of an effect, whatever its body, the registry and the network between do."""

import asyncio
from contextlib import suppress

import anyio
import pytest

from tallystick import errors
from tallystick._effect import Lease
from tallystick.client import (
    AsyncClient,
    Client,
    EffectFailed,
    EffectNotOwned,
    NotSent,
    Outcome,
    OutcomeUnreported,
)
from tests.unit.tallystick.client.far_side import (
    ARGUMENTS,
    INVOICE,
    LOOKUP,
    RUN,
    Service,
    an_effect,
    options_for,
    problem,
)

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
    with (
        pytest.raises(errors.RegistryUnavailable, match=r"registry\.test.*ConnectError"),
        connect(service, retry_seconds=5).effect(INVOICE, ARGUMENTS, run="run-1"),
    ):
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
    with (
        pytest.raises(EffectNotOwned) as refusal,
        connect(service).effect(INVOICE, ARGUMENTS, run="run-1"),
    ):
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
    with (
        pytest.raises(errors.LeaseExpired) as refusal,
        connect(service).effect(INVOICE, ARGUMENTS, run="run-1") as effect,
    ):
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
    with (
        pytest.raises(type(error)) as raised,
        connect(service).effect(INVOICE, ARGUMENTS, run="run-1"),
    ):
        raise error
    assert raised.value is error
    [report] = service.reports
    assert (report["outcome"], report.get("not_sent", False)) == (outcome, outcome == "failed")
    assert report["error"] == {"code": code, "message": message}


async def test_a_cancelled_body_is_reported_as_unknown():
    service = Service()
    async with AsyncClient(**options_for(service)) as client:
        task = asyncio.current_task()
        assert task
        with pytest.raises(asyncio.CancelledError):
            async with client.effect(INVOICE, ARGUMENTS, run="run-1"):
                task.cancel()
                await asyncio.sleep(3600)
        task.uncancel()
    assert [report["error"]["message"] for report in service.reports] == ["CancelledError"]


async def test_a_scope_that_cancels_again_and_again_does_not_stop_the_report():
    service = Service()
    async with AsyncClient(**options_for(service)) as client:
        with anyio.CancelScope() as scope:
            async with client.effect(INVOICE, ARGUMENTS, run="run-1"):
                scope.cancel()
                await anyio.sleep_forever()
        assert scope.cancelled_caught
    assert [report["error"]["message"] for report in service.reports] == ["CancelledError"]


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
    with (
        pytest.raises(OutcomeUnreported) as raised,
        connect(service, retry_seconds=3).effect(INVOICE, ARGUMENTS, run="run-1") as effect,
    ):
        effect.succeeded({"id": "inv_1"})
    assert raised.value.effect_id == f"{RUN}.7"
    assert raised.value.result == {"id": "inv_1"}
    assert "inv_1" not in str(raised.value) + repr(raised.value)
    assert [report["outcome"] for report in service.reports] == ["succeeded"] * 3


def test_a_body_that_reports_nothing_to_nobody_is_told_so(connect):
    service = Service(None, otherwise="down")
    client = connect(service)
    with pytest.raises(OutcomeUnreported), client.effect(INVOICE, ARGUMENTS, run="run-1"):
        pass


def test_an_interrupted_report_is_made_again_on_leaving():
    service = Service(None, "interrupted")
    with (
        Client(**options_for(service)) as client,
        pytest.raises(KeyboardInterrupt),
        client.effect(INVOICE, ARGUMENTS, run="run-1") as effect,
    ):
        effect.succeeded("sent")
    assert service.effect["outcome"]["result"] == "sent"


def test_a_report_that_the_body_gave_up_is_made_again_on_leaving(connect):
    service = Service(None, "down", "down")
    client = connect(service, retry_seconds=1.5)
    with client.effect(INVOICE, ARGUMENTS, run="run-1") as effect, pytest.raises(OutcomeUnreported):
        effect.succeeded("sent")
    assert service.effect["outcome"]["result"] == "sent"


def test_an_error_on_its_way_is_not_replaced_by_that_of_its_report(connect):
    service = Service(None, otherwise="down")
    with (
        pytest.raises(ValueError, match="mine") as raised,
        connect(service).effect(INVOICE, ARGUMENTS, run="run-1"),
    ):
        raise ValueError("mine")
    [note] = raised.value.__notes__
    assert f"{RUN}.7 could not be reported" in note


def test_a_worker_that_was_superseded_is_told(connect):
    service = Service()
    with (
        pytest.raises(errors.FenceStale) as raised,
        connect(service).effect(INVOICE, ARGUMENTS, run="run-1") as effect,
    ):
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

"""Refusals on the wire: every error is a problem document, and no problem tells a secret."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from server.problems import STATUS, problem
from tallystick.errors import LocalRefusal, Outage, Refusal, TallystickError, UnknownRefusal
from tests.api import Api
from tests.builders import a_contract
from tests.fixtures import Owner
from tests.problems import problem_in

CANARY = "canary-4111111111111111"


def classes(base: type[TallystickError] = TallystickError) -> Iterator[type[Any]]:
    """Return every error that goes over the wire, but for the one that stands for future codes."""
    for found in base.__subclasses__():
        if "code" in vars(found) and not issubclass(found, UnknownRefusal | LocalRefusal):
            yield found
        yield from classes(found)


def test_every_error_has_a_status_and_every_status_an_error():
    found = list(classes())
    assert len(found) == len(STATUS)
    assert {one.code for one in found} == STATUS.keys()


@pytest.mark.parametrize("error", list(classes()), ids=lambda error: error.code)
def test_an_error_becomes_a_problem(error: type[Refusal | Outage]):
    raised = error("This happened.", pointer="/a~1b", facts={"count": 1})
    answer = problem(raised)
    assert answer.status_code == STATUS[error.code]
    assert (answer.status_code >= 500) == issubclass(error, Outage)
    assert raised.retryable or not issubclass(error, Outage)
    assert answer.media_type == "application/problem+json"


async def test_a_problem_says_what_a_program_and_a_person_need(api: Api):
    reference = await api.publish(a_contract())
    await api.plan(reference)
    response = await api.http.post(
        "/v1/effects",
        json={
            "run": "run-1",
            "effect": "effect-1",
            "tool": reference,
            "arguments": {"customer_id": "C-1", "amount_cents": 1},
        },
    )
    (effect,) = await api.effects()
    assert problem_in(response) == {
        "type": "urn:tallystick:problem:effect_conflict",
        "title": "The key already belongs to an effect with other arguments.",
        "status": 409,
        "detail": f"Effect {effect['effect_id']} is recorded for another call.",
        "code": "effect_conflict",
        "retryable": False,
        "facts": {"effect_id": effect["effect_id"], "run": "run-1"},
    }


async def test_addresses_and_methods_that_are_not_there(api: Api):
    for method, path, status, code in (
        ("GET", "/", 404, "not_found"),
        ("GET", "/v1", 404, "not_found"),
        ("GET", "/v1/contracts/a", 404, "not_found"),
        ("GET", "/v2/contracts", 404, "not_found"),
        ("GET", "/docs/static/missing.js", 404, "not_found"),
        ("GET", "/docs/static/..%2f..%2fhttp.py", 404, "not_found"),
        ("PUT", "/v1/contracts", 405, "invalid_request"),
        ("DELETE", "/v1/contracts/a/1.0", 405, "invalid_request"),
        ("POST", "/healthz", 405, "invalid_request"),
        ("BREW", "/v1/contracts", 405, "invalid_request"),
    ):
        response = await api.http.request(method, path)
        assert (response.status_code, problem_in(response)["code"]) == (status, code), path
        assert ("allow" in response.headers) == (status == 405), "RFC 9110, 15.5.6"


async def test_a_defect_tells_nothing_of_the_inside(
    api: Api, owner: Owner, caplog: pytest.LogCaptureFixture
):
    await owner.rows(f'ALTER TABLE credential RENAME TO "{CANARY}"')
    async with api.speaking_for(api.token, tells_defects=False).http as http:
        response = await http.get(f"/v1/credentials?{CANARY}")
        assert problem_in(response) == {
            "type": "urn:tallystick:problem:internal_error",
            "title": "The service has a defect.",
            "status": 500,
            "detail": "The service could not finish the request; its log says why.",
            "code": "internal_error",
            "retryable": False,
        }
        assert (await http.get("/v1/whoami")).status_code == 200
    assert "UndefinedTable" in caplog.text
    assert api.token not in caplog.text


async def test_no_problem_quotes_a_value(api: Api, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    tool = await api.publish(a_contract())
    plan = {"run": "run-1", "effect": "effect-1", "tool": tool, "arguments": {}}
    worker = {"worker_id": CANARY, "nonce": CANARY}
    for method, path, body in (
        ("POST", "/v1/effects", plan | {"run": [CANARY]}),
        ("POST", "/v1/effects", plan | {"occurrence": CANARY}),
        ("POST", "/v1/effects", plan | {"origin": CANARY}),
        ("POST", "/v1/effects", plan | {"dispatch": worker}),
        ("POST", "/v1/effects", plan | {"extra": CANARY}),
        ("POST", "/v1/effects", plan | {"lease": CANARY}),
        ("POST", "/v1/effects", plan | {"arguments": CANARY}),
        ("POST", "/v1/effects", plan | {"arguments": {"customer_id": CANARY, "amount_cents": 1}}),
        ("POST", "/v1/effects", plan | {"tool": tool | {"schema_hash": CANARY}}),
        ("POST", "/v1/effects", plan | {"tool": tool | {"version": CANARY}}),
        ("POST", "/v1/effects", plan | {"tool": tool | {"effect_class": CANARY}}),
        ("POST", "/v1/effects", plan | {"tool": tool | {"capabilities": [CANARY]}}),
        ("POST", "/v1/effects", CANARY),
        ("POST", "/v1/credentials", {"name": f"{CANARY} "}),
        ("POST", "/v1/grants", {"principal": "admin", "capability": CANARY}),
        ("POST", "/v1/contracts", {"document": a_contract(version=CANARY)}),
        ("POST", "/v1/contracts", {"document": a_contract(effect_class=CANARY)}),
        ("POST", "/v1/contracts", {"document": a_contract(lease_seconds=CANARY)}),
        ("GET", f"/v1/effects?limit={CANARY}", None),
        ("GET", f"/v1/effects?state={CANARY}", None),
        ("GET", f"/v1/effects/{CANARY}", None),
        ("DELETE", f"/v1/pins/{CANARY}", None),
        ("PUT", f"/v1/workers/{CANARY}/heartbeat", {}),
    ):
        response = await api.http.request(method, path, json=body)
        assert 400 <= response.status_code < 500, (path, body, response.text)
        assert CANARY not in str(problem_in(response)), (path, body)
    service = [one.getMessage() for one in caplog.records if not one.name.startswith("httpx")]
    assert CANARY not in "\n".join(service)

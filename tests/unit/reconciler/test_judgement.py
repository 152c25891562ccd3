"""How a provider's answer is read: as the contract says, and never as a guess."""

import json
from typing import Any

import pytest

from ledger.evidence import Answer
from ledger.judgement import Judgement
from reconciler.judgement import judge, url_of
from tallystick.provider import HttpEvidence
from tallystick.tool_contract import Contract
from tests.builders import a_contract, a_question, http_evidence

SENT = {"amount_cents": 1250, "lines": [{"sku": "a/b", "count": 1}], "urgent": True}
QUESTION = a_question("run.7", "key/1", SENT)
WHOLE = {"effect_id": "run.7", "id": "inv_1", "status": "applied", "amount_cents": 1250}


def contract(**changes: Any) -> Contract:
    evidence = http_evidence(80)
    evidence["answer"] = {
        name: value for name, value in (evidence["answer"] | changes).items() if value is not None
    }
    return Contract.parse(a_contract(evidence=evidence))


def judged(answer: Any, status: int = 200, **changes: Any) -> Judgement:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return judge(contract(**changes), QUESTION, status, body)


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (200, Answer.APPLIED),
        (201, Answer.APPLIED),
        (299, Answer.APPLIED),
        (404, Answer.ABSENT),
        (410, Answer.ABSENT),
        (100, Answer.UNAVAILABLE),
        (300, Answer.UNAVAILABLE),
        (304, Answer.UNAVAILABLE),
        (400, Answer.UNAVAILABLE),
        (401, Answer.UNAVAILABLE),
        (429, Answer.UNAVAILABLE),
        (500, Answer.UNAVAILABLE),
    ],
)
def test_what_a_status_says(status: int, answer: Answer):
    assert judged(WHOLE, status, absent_statuses=[404, 410]).answer is answer


def test_a_status_says_absent_only_where_the_contract_says_so():
    assert judged(WHOLE, 404, absent_statuses=None).answer is Answer.UNAVAILABLE
    assert judged(WHOLE, 200, absent_statuses=[200]).answer is Answer.ABSENT


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        ("applied", Answer.APPLIED),
        (1, Answer.APPLIED),
        (1.0, Answer.APPLIED),
        ("rejected", Answer.REJECTED),
        (False, Answer.REJECTED),
        ("pending", Answer.IN_PROGRESS),
        ("Applied", Answer.UNAVAILABLE),
        (True, Answer.UNAVAILABLE),  # in Python, True equals 1
        (0, Answer.UNAVAILABLE),  # and False equals 0
        ("1", Answer.UNAVAILABLE),
        (None, Answer.UNAVAILABLE),
        (["applied"], Answer.UNAVAILABLE),
    ],
)
def test_what_a_state_says(state: Any, answer: Answer):
    told = judged(WHOLE | {"status": state}, applied=["applied", 1], rejected=["rejected", False])
    assert told.answer is answer
    assert told.provider_reference == "inv_1"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"null",
        b'{"status": NaN}',
        b'{"status":"applied","status":"applied"}',
        b"[" * 200 + b"]" * 200,
        b"{}",
        b"[]",
        b'"applied"',
    ],
)
def test_what_is_not_an_answer_says_nothing(body: bytes):
    for bind in (None, {"pointer": "/effect_id", "equals": "effect_id"}):
        told = judged(body, bind=bind)
        assert (told.answer, told.provider_reference) == (Answer.UNAVAILABLE, None)


@pytest.mark.parametrize(
    ("equals", "bound", "answer"),
    [
        ("effect_id", "run.7", Answer.APPLIED),
        ("effect_id", "run.8", Answer.UNAVAILABLE),
        ("effect_id", "key/1", Answer.UNAVAILABLE),
        ("effect_id", 7, Answer.UNAVAILABLE),
        ("effect_id", None, Answer.UNAVAILABLE),
        ("idempotency_key", "key/1", Answer.APPLIED),
        ("idempotency_key", "run.7", Answer.UNAVAILABLE),
    ],
)
def test_an_answer_is_about_what_was_asked(equals: str, bound: Any, answer: Answer):
    bind = {"pointer": "/for", "equals": equals}
    assert judged(WHOLE | {"for": bound}, bind=bind).answer is answer
    assert judged(WHOLE | {"for": bound}, bind=None).answer is Answer.APPLIED


@pytest.mark.parametrize(
    ("match", "facts", "answer"),
    [
        (None, {"amount_cents": 9}, Answer.APPLIED),
        ({"/amount_cents": "/amount_cents"}, {}, Answer.APPLIED),
        ({"/amount_cents": "/amount_cents"}, {"amount_cents": 1250.0}, Answer.APPLIED),
        ({"/amount_cents": "/amount_cents"}, {"amount_cents": 1251}, Answer.CONTRADICTS),
        ({"/amount_cents": "/amount_cents"}, {"amount_cents": "1250"}, Answer.CONTRADICTS),
        ({"/total": "/amount_cents"}, {}, Answer.CONTRADICTS),
        ({"/amount_cents": "/not_sent"}, {}, Answer.CONTRADICTS),
        ({"/sku": "/lines/0/sku"}, {"sku": "a/b"}, Answer.APPLIED),
        ({"/lines": "/lines"}, {"lines": [{"count": 1, "sku": "a/b"}]}, Answer.APPLIED),
        ({"/lines": "/lines"}, {"lines": [{"count": True, "sku": "a/b"}]}, Answer.CONTRADICTS),
        ({"/urgent": "/urgent"}, {"urgent": 1}, Answer.CONTRADICTS),
        (
            {"/amount_cents": "/amount_cents", "/urgent": "/urgent"},
            {"urgent": False},
            Answer.CONTRADICTS,
        ),
    ],
)
def test_what_was_applied_is_what_was_sent(match: Any, facts: dict[str, Any], answer: Answer):
    told = judged(WHOLE | facts, match=match)
    assert told.answer is answer
    assert "1250" not in told.detail
    refused = judged(WHOLE | facts | {"status": "rejected"}, match=match)
    assert refused.answer is Answer.REJECTED, "what was refused need not match"


@pytest.mark.parametrize(
    ("value", "shown"),
    [("inv_1", "inv_1"), (7, "7"), ("x" * 300, "x" * 200), (None, None), (["inv_1"], None)],
)
def test_the_providers_own_name_of_it(value: Any, shown: str | None):
    assert judged(WHOLE | {"id": value}).provider_reference == shown
    assert judged(WHOLE | {"id": value}, reference=None).provider_reference is None


@pytest.mark.parametrize(
    ("template", "url"),
    [
        ("https://a.example/{effect_id}", "https://a.example/run%2F7%3Fx"),
        ("https://a.example/?k={idempotency_key}&e={effect_id}", "https://a.example/?k=%7Beffect_id%7D%26&e=run%2F7%3Fx"),
        ("https://a.example/{effect_id}/{effect_id}", "https://a.example/run%2F7%3Fx/run%2F7%3Fx"),
    ],
)  # fmt: skip
def test_what_is_asked_for_is_encoded_into_the_address(template: str, url: str):
    http = HttpEvidence.of({"url": template})
    assert url_of(http, a_question("run/7?x", "{effect_id}&", {})) == url

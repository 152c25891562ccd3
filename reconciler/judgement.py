"""Reads a provider's answer to a look-up as evidence, as the contract says. Pure."""

from typing import Final
from urllib.parse import quote

from ledger.evidence import Answer
from ledger.judgement import Judgement, is_bound, judge_body
from tallystick.canonical import MalformedJson, parse_json
from tallystick.evidence_source import EvidenceQuestion
from tallystick.provider import HttpEvidence
from tallystick.tool_contract import Contract

_OK_MIN: Final = 200
_OK_MAX: Final = 299


def url_of(http: HttpEvidence, question: EvidenceQuestion) -> str:
    """Return the address to ask, with the effect and its key percent-encoded into the template."""
    return http.url.replace("{effect_id}", quote(question.effect_id, safe="")).replace(
        "{idempotency_key}", quote(question.idempotency_key, safe="")
    )


def is_success(status: int) -> bool:
    """Tell whether a status of HTTP is one of success (RFC 9110, section 15.3)."""
    return _OK_MIN <= status <= _OK_MAX


def judge(contract: Contract, question: EvidenceQuestion, status: int, body: bytes) -> Judgement:
    """Judge one HTTP answer.

    Whatever the contract does not say how to read is `unavailable`, never a guess.
    """
    assert contract.evidence is not None
    form = contract.evidence.answer
    assert form is not None, "who is asked over HTTP has a form of answer"
    if status in form.absent_statuses:
        return Judgement(Answer.ABSENT, f"status {status}")
    if not is_success(status):
        return Judgement(Answer.UNAVAILABLE, f"status {status}")
    try:
        told = parse_json(body)
    except MalformedJson as fault:
        return Judgement(Answer.UNAVAILABLE, f"the answer is not JSON: {fault.detail}")
    if not is_bound(form.bind, told, question.effect_id, question.idempotency_key):
        return Judgement(Answer.UNAVAILABLE, "the answer is about something else")
    return judge_body(form, question.arguments, told)

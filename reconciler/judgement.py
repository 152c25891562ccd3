"""Reads a provider's answer as evidence, as the contract says that it is to be read. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from ledger.settlement import Answer
from tallystick.canonical import (
    MISSING,
    Json,
    MalformedJson,
    canonical_bytes,
    parse_json,
    resolve_pointer,
)
from tallystick.provider import HttpEvidence
from tallystick.tool_contract import Contract

_OK_MIN: Final = 200
_OK_MAX: Final = 299


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: which effect, under which key, sent with which arguments."""

    effect_id: str
    idempotency_key: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an answer says of the effect, in a sentence that quotes none of its values."""

    answer: Answer
    detail: str
    provider_reference: str | None = None


def url_of(http: HttpEvidence, question: Question) -> str:
    """Return the address to ask, with the effect and its key percent-encoded into the template."""
    return http.url.replace("{effect_id}", quote(question.effect_id, safe="")).replace(
        "{idempotency_key}", quote(question.idempotency_key, safe="")
    )


def judge(contract: Contract, question: Question, status: int, body: bytes) -> Judgement:
    """Judge one HTTP answer.

    Whatever the contract does not say how to read is `unavailable`, never a guess.
    """
    assert contract.evidence is not None
    form = contract.evidence.answer
    if status in form.absent_statuses:
        return Judgement(Answer.ABSENT, f"status {status}")
    if not _OK_MIN <= status <= _OK_MAX:
        return Judgement(Answer.UNAVAILABLE, f"status {status}")
    try:
        told = parse_json(body)
    except MalformedJson as fault:
        return Judgement(Answer.UNAVAILABLE, f"the answer is not JSON: {fault.detail}")
    if form.bind is not None:
        bound = resolve_pointer(told, form.bind.pointer)
        wanted = {"effect_id": question.effect_id, "idempotency_key": question.idempotency_key}
        if bound != wanted[form.bind.equals]:
            return Judgement(Answer.UNAVAILABLE, "the answer is about something else")
    reference = resolve_pointer(told, form.reference) if form.reference else None
    shown = str(reference)[:200] if isinstance(reference, str | int) else None
    return _by_state(contract, question, told, shown)


def _by_state(
    contract: Contract, question: Question, told: Json, reference: str | None
) -> Judgement:
    assert contract.evidence is not None
    form = contract.evidence.answer
    state = resolve_pointer(told, form.state)
    if state is MISSING:
        return Judgement(Answer.UNAVAILABLE, f"the answer has no {form.state}")
    if _is_one_of(state, form.in_progress):
        return Judgement(Answer.IN_PROGRESS, "the provider is still at it", reference)
    if _is_one_of(state, form.rejected):
        return Judgement(Answer.REJECTED, "the provider refused it", reference)
    if not _is_one_of(state, form.applied):
        return Judgement(
            Answer.UNAVAILABLE, f"the contract does not say what {form.state} means", reference
        )
    for there, here in form.match.items():
        sent = resolve_pointer(dict(question.arguments), here)
        has = resolve_pointer(told, there)
        if sent is MISSING or has is MISSING or not _is_one_of(has, (sent,)):
            detail = f"the provider has another {there} than was sent as {here}"
            return Judgement(Answer.CONTRADICTS, detail, reference)
    return Judgement(Answer.APPLIED, "the provider has it", reference)


def _is_one_of(value: Json, wanted: tuple[Json, ...]) -> bool:
    # By canonical form, as JSON has it: in Python, True equals 1.
    return canonical_bytes(value) in {canonical_bytes(one) for one in wanted}

"""Reads what a provider says of an effect, as the contract says that it is to be read. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from ledger.evidence import Answer
from tallystick.canonical import MISSING, Json, canonical_bytes, resolve_pointer
from tallystick.provider import Bind, EvidenceAnswer


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an answer says of the effect, in a sentence that quotes none of its values."""

    answer: Answer
    detail: str
    provider_reference: str | None = None


def judge_body(form: EvidenceAnswer, arguments: Mapping[str, Json], told: Json) -> Judgement:
    """Judge what the provider said of an effect that was sent with these arguments.

    Whatever the contract does not say how to read is `unavailable`, never a guess.
    """
    reference = _reference(form, told)
    state = resolve_pointer(told, form.state)
    if state is MISSING:
        return Judgement(Answer.UNAVAILABLE, f"the answer has no {form.state}", reference)
    if is_one_of(state, form.in_progress):
        return Judgement(Answer.IN_PROGRESS, "the provider is still at it", reference)
    if is_one_of(state, form.rejected):
        return Judgement(Answer.REJECTED, "the provider refused it", reference)
    if not is_one_of(state, form.applied):
        return Judgement(
            Answer.UNAVAILABLE, f"the contract does not say what {form.state} means", reference
        )
    for there, here in form.match.items():
        sent = resolve_pointer(dict(arguments), here)
        has = resolve_pointer(told, there)
        if sent is MISSING or has is MISSING or not is_one_of(has, (sent,)):
            detail = f"the provider has another {there} than was sent as {here}"
            return Judgement(Answer.CONTRADICTS, detail, reference)
    return Judgement(Answer.APPLIED, "the provider has it", reference)


def is_bound(bind: Bind | None, told: Json, effect_id: str, idempotency_key: str) -> bool:
    """Tell whether what a provider says repeats what it is about, where the contract asks that."""
    if bind is None:
        return True
    wanted = {"effect_id": effect_id, "idempotency_key": idempotency_key}
    return resolve_pointer(told, bind.pointer) == wanted[bind.equals]


def _reference(form: EvidenceAnswer, told: Json) -> str | None:
    reference = resolve_pointer(told, form.reference) if form.reference else None
    return str(reference)[:200] if isinstance(reference, str | int) else None


def is_one_of(value: Json, wanted: tuple[Json, ...]) -> bool:
    """Tell whether a value equals one of those that are wanted."""
    # By canonical form, as JSON has it: in Python, True equals 1.
    return canonical_bytes(value) in {canonical_bytes(one) for one in wanted}

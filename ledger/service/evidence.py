"""Takes evidence that nobody asked for: late workers, people, and the provider's own messages."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from ledger import admission, evidence, settlement
from ledger.effect import Attempt, Effect, Evidence, OpenEffect, Outcome, reopening
from ledger.evidence import Act, Answer
from ledger.identity import NUMBER_MAX, EffectId
from ledger.judgement import Judgement, judge_body
from ledger.service import approvals
from ledger.service.view import Ledger, View, contract_of, found, sent_arguments, view_of
from ledger.state import State
from tallystick.canonical import Json, Missing, resolve_pointer, values_in
from tallystick.errors import InvalidRequest, NotFound, TooLarge
from tallystick.provider import EvidenceAnswer, WebhookEvidence
from tallystick.schema import REDACTED

_log = logging.getLogger("tallystick.ledger")

_OFF: Final = timedelta(minutes=5)
"""How far another machine's clock may be off."""

_NAMED_MAX: Final = 64
"""How many effects a provider's message may name."""

_ID_CHARS_MAX: Final = len(f"{UUID(int=0)}.{NUMBER_MAX}")


@dataclass(frozen=True, slots=True)
class Told:
    """What somebody says of an effect.

    ``fence`` is that of the attempt or the question that it answers; None where it is about the
    effect as it stands. With an ``evidence_id`` of its own it is kept once, however often it comes.
    """

    source: str
    answer: Answer
    observed_at: datetime
    detail: str
    provider_reference: str | None = None
    fence: int | None = None
    evidence_id: UUID | None = None

    def __str__(self) -> str:
        """Write what is told as the records have it."""
        return f"{self.source} says {self.answer}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Message:
    """A provider's signed message: under which source and id it came, and what it says."""

    source: str
    message_id: str
    evidence_id: UUID
    sent_at: datetime
    body: Json


async def give(ledger: Ledger, effect_id: EffectId, told: Told) -> View:
    """Record what a person or a machine knows of an effect.

    Raises NotFound, and InvalidRequest for what is said to be observed in the future, or before
    the effect was planned.
    """
    effect = await found(ledger, effect_id)
    held = await ledger.store.look(effect_id)
    if not effect.planned_at - _OFF <= told.observed_at <= held.read_at + _OFF:
        raise InvalidRequest(
            "It is observed after the effect was planned, and not in the future.",
            pointer="/observed_at",
        )
    await take(ledger, effect, told)
    return await view_of(ledger, effect)


async def receive(ledger: Ledger, message: Message) -> None:
    """Take a provider's message, in whatever order and however often it comes.

    An effect is recorded before anything of it is sent, so a message about one that is not there
    cannot be early; it is refused, so that the provider sends it again, and nothing is stored for
    whoever guesses ids. One that names none, or names one where its contract does not say so, is
    not for us, and passed over. What this takes does not depend on how many contracts there are.

    Raises:
        NotFound: It names an effect that is not there, and none that it tells of.
        TooLarge: It names more effects than a message does.
    """
    named = {effect_id for one in values_in(message.body) if (effect_id := _effect_id(one))}
    if len(named) > _NAMED_MAX:
        raise TooLarge(f"A message names at most {_NAMED_MAX} effects.")
    known, is_told = await ledger.store.effects(named), False
    for effect in known:
        declared = (await contract_of(ledger, effect)).evidence
        webhook = declared.webhook if declared else None
        if webhook is None or webhook.source != message.source:
            continue
        if resolve_pointer(message.body, webhook.id) == str(effect.id):
            await _receive(ledger, effect, webhook, message)
            is_told = True
    if not is_told and len(known) < len(named):
        raise NotFound("There is no such effect.")


async def _receive(
    ledger: Ledger, effect: Effect, webhook: WebhookEvidence, message: Message
) -> None:
    judgement = await judge(ledger, effect, webhook.answer, message.body)
    told = Told(
        source=evidence.webhook(message.source),
        answer=judgement.answer,
        observed_at=message.sent_at,
        detail=f"message {message.message_id}: {judgement.detail}",
        provider_reference=judgement.provider_reference,
        evidence_id=message.evidence_id,
    )
    await take(ledger, effect, told)


async def judge(ledger: Ledger, effect: Effect, form: EvidenceAnswer, body: Json) -> Judgement:
    """Judge what a provider says unasked, by what is still known of the arguments."""
    arguments = await sent_arguments(ledger, effect)
    if await ledger.store.sealed(effect.id) is None:
        # What was sensitive is gone once an effect is closed, and cannot be compared any more.
        kept = {
            there: here
            for there, here in form.match.items()
            if not _is_redacted(resolve_pointer(dict(arguments), here))
        }
        form = replace(form, match=kept)
    return judge_body(form, arguments, body)


async def take(ledger: Ledger, effect: Effect, told: Told) -> bool:
    """Keep what was said of an effect, and do what it does to an effect in this state.

    Returns whether that was new.
    """
    held = await ledger.store.hold(effect.id)
    attempts = await ledger.store.attempts(effect.id)
    before: OpenEffect | Outcome | None = held.open
    if held.open is None:
        # Nobody else opens it meanwhile. It may have been opened, or closed again, before this.
        await ledger.store.hold_closed(effect.id)
        held = await ledger.store.hold(effect.id)
        before = held.open or (await ledger.store.outcomes(effect.id))[-1]
    assert before is not None
    fence = before.fence if told.fence is None else told.fence
    state = before.state if isinstance(before, OpenEffect) else before.status
    act = evidence.act(
        state, effect.effect_class, len(attempts), source=told.source, answer=told.answer
    )
    if not await _is_new(ledger, effect, told, fence, (state, act)):
        return False
    await keep(ledger, effect, told, fence=fence, now=held.read_at)
    await _do(ledger, effect, told, act, before, attempts, held.read_at)
    return True


async def _do(
    ledger: Ledger,
    effect: Effect,
    told: Told,
    act: Act,
    before: OpenEffect | Outcome,
    attempts: Sequence[Attempt],
    now: datetime,
) -> None:
    actor, reason = told.source, str(told)
    match act, before:
        case Act.WAKE, _:
            await ledger.store.wake(effect.id)
        case Act.DOUBT, OpenEffect():
            step = settlement.doubted(before, actor=actor, reason=reason, now=now)
            await ledger.store.advance(effect, step)
        case Act.STOP, OpenEffect():
            step = admission.stopped(before, actor=actor, reason=reason, now=now)
            await ledger.store.advance(effect, step)
            await approvals.close(ledger, effect, actor=actor, reason=reason, now=now)
            refused = (await ledger.store.outcomes(effect.id))[-1]
            await _reopen(ledger, effect, refused, attempts, told, now)
        case Act.REOPEN, Outcome():
            await _reopen(ledger, effect, before, attempts, told, now)
        case _:
            pass


async def _reopen(
    ledger: Ledger,
    effect: Effect,
    outcome: Outcome,
    attempts: Sequence[Attempt],
    told: Told,
    now: datetime,
) -> None:
    """Open a closed effect again, for a person, and stop what took its place."""
    reason = f"it was {outcome.status}, and {told}"
    step = reopening(outcome, attempts, actor=told.source, reason=reason, at=now)
    await ledger.store.advance(effect, step)
    _log.warning("effect %s of %s is quarantined: %s", effect.id, effect.tool, reason)
    following = await ledger.quarantine.successor(effect.id)
    if following is not None:
        detail = f"{effect.id}, whose place it took, took effect"
        twice = replace(told, answer=Answer.CONTRADICTS, detail=detail, fence=None)
        await take(ledger, await found(ledger, following), twice)


async def keep(
    ledger: Ledger, effect: Effect, told: Told, *, fence: int, now: datetime
) -> Evidence:
    """Keep what was said of an effect, and nothing else; returns it as it is kept."""
    evidence_id = await ledger.store.keep(
        effect.id,
        fence=fence,
        source=told.source,
        answer=told.answer,
        observed_at=told.observed_at,
        detail=told.detail,
        provider_reference=told.provider_reference,
        evidence_id=told.evidence_id,
    )
    return Evidence(
        evidence_id,
        fence,
        told.source,
        told.answer,
        told.provider_reference,
        told.observed_at,
        now,
        told.detail,
    )


async def _is_new(
    ledger: Ledger, effect: Effect, told: Told, fence: int, now: tuple[State, Act]
) -> bool:
    """Tell whether this was not kept before: a listing repeats everything, and others may."""
    heard = await ledger.store.evidence(effect.id)
    if told.source == evidence.LISTING:
        reference = told.provider_reference
        return evidence.is_news(heard, *now, answer=told.answer, provider_reference=reference)
    is_new = evidence.is_new(
        heard, source=told.source, answer=told.answer, fence=fence, evidence_id=told.evidence_id
    )
    return is_new and all(_facts(one) != _facts(told) for one in heard)


def _facts(one: Evidence | Told) -> tuple[str, str, datetime, str, str | None]:
    return one.source, one.answer, one.observed_at, one.detail, one.provider_reference


def _effect_id(named: Json) -> EffectId | None:
    if not isinstance(named, str) or len(named) > _ID_CHARS_MAX or "." not in named:
        return None
    try:
        return EffectId.parse(named)
    except NotFound:
        return None


def _is_redacted(value: Json | Missing) -> bool:
    if isinstance(value, dict):
        return value.get(REDACTED) is True or any(map(_is_redacted, value.values()))
    return isinstance(value, list) and any(map(_is_redacted, value))

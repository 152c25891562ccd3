"""Takes evidence that nobody asked for: late workers, people, and the provider's own messages."""

import logging
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from ledger import evidence, settlement
from ledger.effect import Effect, Evidence, OpenEffect, Outcome, reopening
from ledger.evidence import Act, Answer
from ledger.identity import EffectId
from ledger.judgement import Judgement, judge_body
from ledger.service.view import Ledger, View, contract_of, found, sent_arguments, view_of
from tallystick.canonical import Json, Missing, resolve_pointer
from tallystick.errors import InvalidRequest, NotFound
from tallystick.provider import WebhookEvidence
from tallystick.schema import REDACTED

_log = logging.getLogger("tallystick.ledger")

_OFF: Final = timedelta(minutes=5)
"""How far another machine's clock may be off."""


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
    whoever guesses ids. One that names no effect where the contracts say is not for us, and passed
    over.

    Raises NotFound where it names an effect that is not there.
    """
    named = False
    for pointer in await ledger.store.webhook_pointers(message.source):
        effect_id = _effect_id(resolve_pointer(message.body, pointer))
        if effect_id is None:
            continue
        named = True
        effect = await ledger.store.effect(effect_id)
        if effect is None:
            continue
        declared = (await contract_of(ledger, effect)).evidence
        webhook = declared.webhook if declared else None
        if webhook is not None and (webhook.source, webhook.id) == (message.source, pointer):
            await _receive(ledger, effect, webhook, message)
            return
    if named:
        raise NotFound("There is no such effect.")


async def _receive(
    ledger: Ledger, effect: Effect, webhook: WebhookEvidence, message: Message
) -> None:
    judgement = await _judge(ledger, effect, webhook, message.body)
    told = Told(
        source=evidence.webhook(message.source),
        answer=judgement.answer,
        observed_at=message.sent_at,
        detail=f"message {message.message_id}: {judgement.detail}",
        provider_reference=judgement.provider_reference,
        evidence_id=message.evidence_id,
    )
    await take(ledger, effect, told)


async def _judge(ledger: Ledger, effect: Effect, webhook: WebhookEvidence, body: Json) -> Judgement:
    form, arguments = webhook.answer, await sent_arguments(ledger, effect)
    if await ledger.store.sealed(effect.id) is None:
        # What was sensitive is gone once an effect is closed, and cannot be compared any more.
        kept = {
            there: here
            for there, here in form.match.items()
            if not _is_redacted(resolve_pointer(dict(arguments), here))
        }
        form = replace(form, match=kept)
    return judge_body(form, arguments, body)


async def take(ledger: Ledger, effect: Effect, told: Told) -> None:
    """Keep what was said of an effect, and do what it does to an effect in this state."""
    held = await ledger.store.hold(effect.id)
    attempts = await ledger.store.attempts(effect.id)
    before: OpenEffect | Outcome | None = held.open
    if held.open is None:
        # Nobody else opens it meanwhile. It may have been opened, or closed again, before this.
        await ledger.store.hold_closed(effect.id)
        held = await ledger.store.look(effect.id)
        before = held.open or (await ledger.store.outcomes(effect.id))[-1]
    assert before is not None
    fence = before.fence if told.fence is None else told.fence
    if not await _is_new(ledger, effect, told, fence):
        return
    await keep(ledger, effect, told, fence=fence, now=held.read_at)
    state = before.state if isinstance(before, OpenEffect) else before.status
    act = evidence.act(
        state, effect.effect_class, len(attempts), source=told.source, answer=told.answer
    )
    reason = f"{told.source} says {told.answer}: {told.detail}"
    match act, before:
        case Act.WAKE, _:
            await ledger.store.wake(effect.id)
        case Act.DOUBT, OpenEffect():
            step = settlement.doubted(before, actor=told.source, reason=reason, now=held.read_at)
            await ledger.store.advance(effect, step)
        case Act.REOPEN, Outcome():
            reason = f"it was {before.status}, and {reason}"
            step = reopening(before, attempts, actor=told.source, reason=reason, at=held.read_at)
            await ledger.store.advance(effect, step)
            _log.warning("effect %s of %s is quarantined: %s", effect.id, effect.tool, reason)
        case _:
            pass


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


async def _is_new(ledger: Ledger, effect: Effect, told: Told, fence: int) -> bool:
    """Tell whether this was not kept before.

    A message is known by its id; a worker that was not answered says the same of its fence again.
    """
    for one in await ledger.store.evidence(effect.id):
        if told.evidence_id is not None and one.evidence_id == told.evidence_id:
            return False
        same = (one.source, one.fence, one.answer) == (told.source, fence, told.answer)
        if told.source == evidence.LATE_WORKER and same:
            return False
    return True


def _effect_id(named: Json | Missing) -> EffectId | None:
    try:
        return EffectId.parse(named) if isinstance(named, str) else None
    except NotFound:
        return None


def _is_redacted(value: Json | Missing) -> bool:
    if isinstance(value, dict):
        return value.get(REDACTED) is True or any(map(_is_redacted, value.values()))
    return isinstance(value, list) and any(map(_is_redacted, value))

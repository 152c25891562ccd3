"""Takes what a provider lists: evidence on effects that are recorded, and orphans (T10)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from ledger.effect import Effect
from ledger.evidence import LISTING, Answer
from ledger.judgement import Judgement, judge_body
from ledger.listing import Found, Item, first_of, orphan, version_of
from ledger.service import evidence
from ledger.service.evidence import Told
from ledger.service.view import Ledger
from tallystick.provider import EvidenceAnswer


async def take_listed(
    ledger: Ledger, item: Item, form: EvidenceAnswer, listed_by: Sequence[UUID], asked_at: datetime
) -> Found:
    """Take one item of a listing, in whatever order and however often it comes.

    ``listed_by`` are the versions of one tool whose contracts have this listing, the newest first:
    what is recorded under another one is read as that one says, and by nothing else. ``asked_at``
    is the database's time from before the page was asked for.
    """
    effect = await ledger.store.effect(item.effect_id)
    if effect is None:
        recorded = await _record(ledger, item, form, listed_by, asked_at)
        if recorded is not Found.KNOWN:
            return recorded
        # Another transaction recorded it meanwhile: ours, or another tenant's, which is not seen.
        effect = await ledger.store.effect(item.effect_id)
    if effect is None or effect.contract_id not in listed_by:
        return Found.FOREIGN
    judgement = await evidence.judge(ledger, effect, form, item.body)
    if judgement.answer is Answer.UNAVAILABLE:
        return Found.KNOWN
    is_news = await evidence.take(ledger, effect, _told(judgement, asked_at))
    return Found.NEWS if is_news else Found.KNOWN


async def _record(
    ledger: Ledger, item: Item, form: EvidenceAnswer, listed_by: Sequence[UUID], asked_at: datetime
) -> Found:
    """Record an orphan, unless it cannot be one (or `KNOWN`: another transaction was first)."""
    newest = await ledger.registry.contract(listed_by[0])
    run = await ledger.store.known_run(item.effect_id.run_id, newest.name)
    if run.standing is not None:
        return run.standing
    contract_id = version_of(run, listed_by)
    effect: Effect = orphan(await ledger.registry.contract(contract_id), contract_id, item, run)
    if not await ledger.store.record(effect):
        return Found.KNOWN
    # There is nothing that was sent to hold it against: its state is all that it says.
    judgement = judge_body(replace(form, match={}), {}, item.body)
    now = (await ledger.store.look(effect.id)).read_at
    step = first_of(judgement.detail, actor=ledger.caller.principal, now=now)
    await ledger.store.begin(effect, [step], None)
    await evidence.keep(ledger, effect, _told(judgement, asked_at), fence=step.fence, now=now)
    return Found.ORPHAN


def _told(judgement: Judgement, asked_at: datetime) -> Told:
    return Told(
        source=LISTING,
        answer=judgement.answer,
        observed_at=asked_at,
        detail=judgement.detail,
        provider_reference=judgement.provider_reference,
    )

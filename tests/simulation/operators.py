"""Everyone else: reconcilers, and the people who retire, rotate, suspend, approve and decide."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from ledger.approval import Status
from ledger.evidence import Answer, person
from ledger.state import State
from reconciler.judgement import url_of
from tallystick.effect_class import EffectClass
from tallystick.errors import FenceStale, TallystickError
from tallystick.evidence_source import EvidenceQuestion
from tests.simulation.catalogue import LEASE_SECONDS, SETTLE_SECONDS
from tests.simulation.engine import Script
from tests.simulation.settling import Judged
from tests.simulation.site import Asking, Site
from tests.simulation.store import Record, Version

LOOK_SECONDS_MAX: Final = 5.0
LOOK_SECONDS_MAX_LATER: Final = 60.0
WORKDAY_SECONDS: Final = 150.0
THINK_SECONDS: Final = LEASE_SECONDS + SETTLE_SECONDS + 5.0
"""How long a person waits until nothing can be under way any more."""
_SAID: Final = {
    "applied": Answer.APPLIED,
    "declined": Answer.REJECTED,
    "pending": Answer.IN_PROGRESS,
}


def reconciler(site: Site, name: str) -> Script:
    """Sweep: take what is due, one at a time, ask the provider, settle. Any number may."""
    engine, store = site.engine, site.store
    yield 0.0
    while True:
        record = store.due() if site.product.sweeps else None
        if record is None:
            bound = LOOK_SECONDS_MAX if engine.faults.are_on else LOOK_SECONDS_MAX_LATER
            soon = store.next_due_seconds()
            yield min(max(soon, 0.2) if soon is not None else bound, bound)
            continue
        before = record.open
        assert before is not None
        yield engine.chance.between(0.0, 0.1)  # Read, and then written: another may come first.
        try:
            if before.state is State.UNKNOWN:
                yield from _reconcile(site, record, name)
            else:
                site.settling.overdue(record, before, name)
        except FenceStale:
            engine.note(name, "comes too late", record.id)


def _reconcile(site: Site, record: Record, name: str) -> Asking[None]:
    before, engine = record.open, site.engine
    if before is None or before.state is not State.UNKNOWN:
        return
    fence = site.settling.claim(record, before, name)
    asked_at = site.store.now
    told = None
    if record.version.contract.evidence is not None:
        told = yield from _ask_provider(site, record)
    yield engine.chance.between(0.01, 0.3)
    site.settling.settle(record, name, fence=fence, asked_at=asked_at, told=told)


def _ask_provider(site: Site, record: Record) -> Asking[Judged]:
    engine, real = site.engine, record.version.contract
    contract = site.product.reads(real)
    assert contract.evidence is not None
    assert contract.evidence.http is not None
    assert real.evidence is not None
    question = EvidenceQuestion(
        record.id,
        site.dispatching.key_of(record),
        record.effect.arguments,
        record.tenant,
        record.effect.tool,
        record.effect.version,
    )
    yield engine.chance.between(0.01, 0.4)
    status, body = site.provider.look_up(
        url_of(contract.evidence.http, question),
        lag_seconds=real.evidence.lag_seconds,
        is_eventual=real.evidence.consistency == "eventual",
    )
    yield engine.chance.between(0.01, 0.4)
    if engine.fault("lost_evidence"):
        return Judged(Answer.UNAVAILABLE, "no answer", None)
    judged = site.product.judge(contract, question, status, body)
    return Judged(judged.answer, judged.detail, judged.provider_reference)


# --- people ---------------------------------------------------------------------------------------


def retirement(site: Site, version: Version) -> Script:
    """Close a version, try to retire it a few times, and roll back where that does not come."""
    engine = site.engine
    yield engine.chance.between(1.0, 60.0)
    site.registry.close(version)
    for _ in range(4):
        yield engine.chance.between(0.5, 15.0)
        try:
            yield from site.registry.retire(version)
        except TallystickError:
            continue
        return
    if engine.chance.happens(0.7):
        yield from site.registry.reopen(version)


def rotation(site: Site, version: Version) -> Script:
    """Rotate a credential, and attest its versions some time later."""
    engine = site.engine
    yield engine.chance.between(1.0, 60.0)
    yield from site.registry.rotate(version)
    yield engine.chance.between(0.5, 20.0)
    for one in site.store.versions:
        if one.slot is version.slot:
            yield from site.registry.attest(one)


def suspension(site: Site, version: Version) -> Script:
    """Suspend a version for a while."""
    engine = site.engine
    yield engine.chance.between(1.0, 60.0)
    yield from site.registry.suspend(version, suspended=True)
    yield engine.chance.between(5.0, 30.0)
    yield from site.registry.suspend(version, suspended=False)


def approver(site: Site) -> Script:
    """Approve most of what waits, reject some of it, and overlook the rest."""
    engine = site.engine
    while True:
        yield engine.chance.between(1.0, 15.0)
        for record in list(site.store.records.values()):
            if record.approval is None or record.approval.status is not Status.PENDING:
                continue
            says = engine.chance.pick((Status.APPROVED, Status.APPROVED, Status.REJECTED, None))
            if says is not None:
                by = "agent" if engine.fault("own_approval") else "grace"
                _tried(partial(site.settling.decide_approval, record, says, by))


def operator(site: Site) -> Script:
    """Give work up now and then, and decide on what is quarantined, after a look at the books."""
    engine = site.engine
    while engine.now < WORKDAY_SECONDS:
        yield engine.chance.between(1.0, 25.0)
        for record in list(site.store.records.values()):
            if engine.chance.happens(0.1):
                _tell(site, record)
            if engine.fault("cancellation"):
                _tried(partial(site.settling.cancel, record, "ada"))
            elif record.state is State.QUARANTINED and engine.chance.happens(0.5):
                _decide(site, record)


def _tell(site: Site, record: Record) -> None:
    """Say what the books say, whether or not anybody asked."""
    if record.effect.effect_class is not EffectClass.PURE:
        said = _SAID.get(site.provider.status_of(record.id), Answer.ABSENT)
        site.settling.take(record, person("grace"), said)


def _decide(site: Site, record: Record) -> None:
    since = record.events[-1].at
    if (site.store.now - since).total_seconds() < THINK_SECONDS:
        return
    says = site.engine.chance.pick((State.FAILED, State.RETRYABLE, State.ABANDONED))
    if site.provider.status_of(record.id) == "applied":
        says = State.SUCCEEDED
    # Where it takes two, the second one says the same; sometimes it is only the first one again.
    for by in ("ada", "ada" if site.engine.chance.happens(0.2) else "grace"):
        _tried(partial(site.settling.resolve, record, says, by))


def _tried(work: Callable[[], object]) -> None:
    with suppress(TallystickError):  # A refusal is an answer.
        work()
